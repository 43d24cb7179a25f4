"""One fit of a model to a fold: what it is given, and what every kind of model does with it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from cell_attention.data.splits.folds import Fold
from cell_attention.models.settings import Settings
from cell_attention.topology.complex import CellComplex

Stage = Literal["curve", "choice", "rerun"]
"""A curve is scored on the held-out graphs after every epoch. In the fair protocol a choice trains
one configuration and a rerun the chosen one; both stop by the inner validation graphs, and the best
weights of a rerun are scored on the held-out graphs once."""


@dataclass(frozen=True)
class FoldTask:
    """One fit of one fold."""

    settings: Settings
    """With the network and the training of this very fit."""
    complexes: CellComplex
    fold: Fold
    seed: tuple[int, ...]
    stage: Stage = "curve"
    smiles: Callable[[], list[str]] = list
    """The molecules behind the graphs, for models that read them."""
    checkpoint: Path | None = None
    """Where an unfinished fit is saved every `checkpoint_seconds`, and continued from."""
    digest: str = ""
    """Of the settings that the checkpoint belongs to."""
    checkpoint_seconds: float = 10.0
    report: Callable[[dict[str, float]], None] = lambda numbers: None
    """Called after every epoch."""


class Fitter(Protocol):
    """One kind of model: how it is fitted to a fold."""

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Refuse what cannot be fitted, before anything is begun."""

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Fit, and return what the record of the fold holds: `score`, a list of one number per
        epoch or of a single one, and whatever else is worth keeping as JSON.
        """
