"""Molecules: one text, a file of them, their features as graphs."""
