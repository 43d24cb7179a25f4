"""Rivals without epochs: one number per fold, with nothing to choose by the held-out graphs."""

from collections.abc import Sequence
from typing import Any

import torch

from cell_attention.models.graph_kernels import classes_of, kernel_score, require_kernel
from cell_attention.topology.complex import CellComplex


def held_out_score(
    name: str,
    complexes: CellComplex,
    train: Sequence[int],
    held_out: Sequence[int],
    seed: tuple[int, ...],
) -> dict[str, Any]:
    """What a model of MODELS without epochs says of the held-out graphs: `score`, a list of one
    number, and what it chose on the way.
    """
    if name == "majority":
        return {"score": [majority(complexes, train, held_out)]}
    return kernel_score(name, complexes, train, held_out, seed)


def require(name: str, complexes: CellComplex) -> None:
    """Refuse a model that could not answer, before anything is begun."""
    classes_of(name, complexes)
    if name != "majority":
        require_kernel(name, complexes)


def majority(complexes: CellComplex, train: Sequence[int], held_out: Sequence[int]) -> float:
    """Accuracy in percent of always naming the class that most of the other graphs have."""
    targets = classes_of("majority", complexes)
    common = targets[torch.tensor(train)].bincount().argmax()
    return 100.0 * float((targets[torch.tensor(held_out)] == common).double().mean())
