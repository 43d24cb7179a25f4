"""Molecules from text and from files, and their features as graphs."""
