"""The registry of models: cell attention and its rivals, each with one way to fit a fold."""
