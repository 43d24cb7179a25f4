"""The majority class: the accuracy that needs no look at the graphs."""

from collections.abc import Sequence
from typing import Any

import torch

from cell_attention.models.fitting import FoldTask
from cell_attention.models.settings import Settings
from cell_attention.topology.complex import CellComplex
from cell_attention.training.tasks import require_classes


class MajorityFitter:
    """Always predicts the most common class of the training graphs."""

    def __init__(self, name: str = "majority") -> None:
        self.name = name

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Require classes, and accuracy as the metric."""
        require_classes(self.name, complexes, settings.metric)

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Return accuracy in percent on the held-out graphs."""
        return {"score": [majority(task.complexes, task.fold.rest, task.fold.held_out)]}


def majority(complexes: CellComplex, train: Sequence[int], held_out: Sequence[int]) -> float:
    """Return accuracy in percent of predicting the most common class of the training graphs."""
    targets = require_classes("majority", complexes)
    common = targets[torch.tensor(train)].bincount().argmax()
    return 100.0 * float((targets[torch.tensor(held_out)] == common).double().mean())
