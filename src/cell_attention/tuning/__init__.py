"""Configurations chosen by inner validation."""
