"""Numbers that others printed, to stand beside ours."""

PAPER = {
    "MUTAG": (94.1, 4.8),
    "PTC_MM": (72.8, 8.3),
    "PROTEINS": (78.2, 2.0),
    "NCI1": (84.5, 1.6),
    "NCI109": (83.6, 1.2),
}
"""Giusti et al. 2022, Table 3: CAN, mean and standard deviation over ten folds."""
