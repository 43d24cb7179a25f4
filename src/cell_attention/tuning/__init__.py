"""The search for a configuration by inner validation."""
