"""The registry of models: cell attention and its rivals, each with a way to fit it to a fold."""
