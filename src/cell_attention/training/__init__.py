"""The training loop, tasks, metrics and settings."""
