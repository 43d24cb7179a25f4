"""Trained models: their folders, their predictions, and the molecules to predict."""
