"""Rivals without epochs: one number per fold, with nothing to choose by the held-out graphs."""

from collections.abc import Callable

import torch

from cell_attention.data.splits import Fold
from cell_attention.errors import InputError
from cell_attention.topology.complex import CellComplex


def majority(complexes: CellComplex, fold: Fold) -> float:
    """Accuracy in percent of always naming the class that most of the other graphs have."""
    targets = complexes.targets
    if targets is None or targets.is_floating_point():
        raise InputError("model 'majority' needs classes as targets")
    common = targets[torch.tensor(fold.rest)].bincount().argmax()
    return 100.0 * float((targets[torch.tensor(fold.held_out)] == common).double().mean())


WITHOUT_EPOCHS: dict[str, Callable[[CellComplex, Fold], float]] = {"majority": majority}
