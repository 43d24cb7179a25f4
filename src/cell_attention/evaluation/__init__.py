"""Cross-validation: jobs, protocols, run folders, comparison, ablation, tables."""
