"""The largest class alone: what is reached without looking at a graph."""

from collections.abc import Sequence
from typing import Any

import torch

from cell_attention.models.fitting import FoldTask
from cell_attention.models.settings import Settings
from cell_attention.topology.complex import CellComplex
from cell_attention.training.tasks import require_classes


class MajorityFitter:
    """Always predicts the class that most training graphs have."""

    def __init__(self, name: str = "majority") -> None:
        self.name = name

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Classes are needed, and accuracy is all that is known."""
        require_classes(self.name, complexes, settings.metric)

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Accuracy in percent on the held-out graphs."""
        return {"score": [majority(task.complexes, task.fold.rest, task.fold.held_out)]}


def majority(complexes: CellComplex, train: Sequence[int], held_out: Sequence[int]) -> float:
    """Accuracy in percent of always predicting the most common class of the training graphs."""
    targets = require_classes("majority", complexes)
    common = targets[torch.tensor(train)].bincount().argmax()
    return 100.0 * float((targets[torch.tensor(held_out)] == common).double().mean())
