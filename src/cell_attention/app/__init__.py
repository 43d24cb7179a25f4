"""The local page and its API: a trained model behind HTTP, for this machine."""
