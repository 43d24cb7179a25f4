"""Trained models: their folders, their predictions, streams of molecules for them."""
