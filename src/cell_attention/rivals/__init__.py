"""Models that cell attention is measured beside, by the same protocols on the same folds."""
