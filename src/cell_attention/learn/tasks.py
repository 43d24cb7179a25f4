"""What a network is trained for: classes, labels or values, with loss and score of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from cell_attention.errors import DataError
from cell_attention.topology.complex import CellComplex

Kind = Literal["classes", "labels", "values"]


@dataclass(frozen=True)
class Task:
    """How outputs are compared with targets."""

    kind: Kind
    outputs: int
    score_name: str
    loss: Callable[[Tensor, Tensor], Tensor]
    score: Callable[[Tensor, Tensor], float]
    """Higher is better; accuracy in percent for classes."""

    @staticmethod
    def is_known(complexes: CellComplex, graphs: Tensor) -> bool:
        """Whether any of these graphs has a target; one that is not a number is not known."""
        targets = complexes.targets
        return targets is not None and not bool(targets[graphs].isnan().all())


def task_of(complexes: CellComplex, train: Tensor, class_weights: bool = False) -> Task:
    """The task that the targets tell: integers are classes, zeros and ones labels, else values.

    train: the graphs that may be looked at; class weights are those of these alone.
    """
    targets = complexes.targets
    if targets is None:
        raise DataError("training needs graphs with targets")
    if not targets.is_floating_point():
        return _classes(int(targets.max()) + 1, targets[train], class_weights)
    if class_weights:
        raise DataError("class weights need classes as targets, got floating-point values")
    known = targets[~targets.isnan()]
    outputs = 1 if targets.dim() == 1 else targets.size(1)
    if bool(((known == 0) | (known == 1)).all()):
        return Task("labels", outputs, "accuracy in %", _labels_loss, _labels_score)
    return Task("values", outputs, "negative RMSE", _values_loss, _values_score)


def _classes(count: int, seen: Tensor, weighted: bool) -> Task:
    weights = None
    if weighted:
        sizes = torch.bincount(seen, minlength=count).float()
        weights = seen.numel() / (count * sizes.clamp(min=1))

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(logits, targets, weights)

    def score(logits: Tensor, targets: Tensor) -> float:
        return 100.0 * float((logits.argmax(1) == targets).double().mean())

    return Task("classes", count, "accuracy in %", loss, score)


def _given(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and targets where there is a target."""
    there = ~targets.isnan()
    return logits.view_as(targets)[there], targets[there]


def _mean(loss: Callable[..., Tensor], logits: Tensor, targets: Tensor) -> Tensor:
    """The mean over known targets; a batch without any has nothing to teach."""
    guessed, known = _given(logits, targets)
    return loss(guessed, known) if known.numel() else logits.sum() * 0.0


def _labels_loss(logits: Tensor, targets: Tensor) -> Tensor:
    return _mean(functional.binary_cross_entropy_with_logits, logits, targets)


def _labels_score(logits: Tensor, targets: Tensor) -> float:
    guessed, known = _given(logits, targets)
    return 100.0 * float(((guessed > 0) == (known > 0.5)).double().mean())


def _values_loss(logits: Tensor, targets: Tensor) -> Tensor:
    return _mean(functional.mse_loss, logits, targets)


def _values_score(logits: Tensor, targets: Tensor) -> float:
    guessed, known = _given(logits, targets)
    return -float((guessed - known).double().square().mean().sqrt())
