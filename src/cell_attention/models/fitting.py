"""Fitting a model to a fold: the input, and the interface of every kind of model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from cell_attention.data.splits.folds import Fold
from cell_attention.models.settings import Settings
from cell_attention.topology.complex import CellComplex

Stage = Literal["curve", "choice", "rerun"]
"""A curve is scored on the held-out graphs after every epoch. In the fair protocol a choice trains
one configuration and a rerun the chosen one; the inner validation graphs decide when both stop, and
the best weights of a rerun are scored once on the held-out graphs."""


@dataclass(frozen=True)
class FoldTask:
    """One fit of one fold."""

    settings: Settings
    """The settings, with the network and the training of this fit."""
    complexes: CellComplex
    fold: Fold
    seed: tuple[int, ...]
    stage: Stage = "curve"
    smiles: Callable[[], list[str]] = list
    """Returns the SMILES of the graphs, for models that read molecules."""
    checkpoint: Path | None = None
    """File where an unfinished fit is saved every `checkpoint_seconds`, and resumed from."""
    digest: str = ""
    """Digest of the settings that the checkpoint belongs to."""
    checkpoint_seconds: float = 10.0
    report: Callable[[dict[str, float]], None] = lambda numbers: None
    """Called after every epoch."""


class Fitter(Protocol):
    """The interface of a kind of model: how it is fitted to a fold.

    It is built with (name), its name in the registry: one class may serve several models.
    """

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Refuse settings or graphs that cannot be fitted, before any work starts."""

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Fit, and return the record of the fold: `score`, a list with one number per epoch, or
        with a single one if there are no epochs, and anything else worth keeping as JSON.
        """
