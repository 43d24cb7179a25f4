"""Training, cross-validation, and what they leave on disk."""
