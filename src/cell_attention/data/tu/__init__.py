"""Sets in the text format of the TU collection."""
