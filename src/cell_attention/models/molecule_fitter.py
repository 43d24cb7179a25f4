"""Models that read molecules instead of graphs: what they have in common."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.data.file_format import Kind
from cell_attention.errors import DataError
from cell_attention.models.fitting import FoldTask
from cell_attention.models.settings import Settings
from cell_attention.topology.complex import CellComplex


class MoleculeFitter:
    """A model that predicts probabilities or values from SMILES; any metric can score it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Accept every task; whether there are molecules is checked when they are read."""

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Return the score on the held-out molecules."""
        complexes, fold, held = task.complexes, task.fold, torch.tensor(task.fold.held_out)
        what = task.settings.task_on(complexes, fold.rest)
        what.require_score(complexes, "held-out", held)
        smiles, targets, exact = task.smiles(), complexes.targets, complexes.exact_targets
        if targets is None or exact is None or len(smiles) != len(complexes):
            raise DataError(f"model {self.name!r} needs targets, and one SMILES per graph")
        if what.taught is None:  # else columns without a known value are not scored
            self._require_known(targets.numpy()[list(fold.rest)])
        guessed = self.predictions(task, smiles, targets=targets.numpy(), kind=what.kind)
        found: dict[str, Any] = {"score": [what.score_of(guessed, exact[held])]}
        if task.settings.columns:
            found["columns"] = what.column_scores(guessed, exact[held])
        return found

    @abstractmethod
    def predictions(
        self, task: FoldTask, smiles: list[str], *, targets: NDArray[Any], kind: Kind
    ) -> Tensor:
        """Fit to the molecules of the fold that are not held out; return (held-out molecules, ·)
        probabilities of classes or labels, or values.
        """

    def _require_known(self, targets: NDArray[Any]) -> None:
        """Refuse training molecules without a known value of some target."""
        columns = targets.reshape(len(targets), -1).astype(np.float64)
        empty = np.flatnonzero(np.isnan(columns).all(0))
        if len(empty):
            raise DataError(
                f"model {self.name!r}: none of the {len(targets)} training molecules of a fold has "
                f"a known value of target {int(empty[0]) + 1}"
            )


def random_state(seed: tuple[int, ...]) -> int:
    """Return the seed of a job as one number of 31 bits."""
    return int(np.random.default_rng(seed).integers(2**31))
