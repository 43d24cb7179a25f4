"""Three numbers with one name: what "accuracy in cross-validation" has meant in this field."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cell_attention.errors import InputError


@dataclass(frozen=True)
class Outcome:
    """One protocol's answer, in percent for accuracies."""

    mean: float
    std: float
    """Population standard deviation over the folds (divided by their number)."""
    epoch: int | None
    """Counted from 1; None where every fold has its own, or there are none."""
    folds: tuple[float, ...]

    def text(self, score: str) -> str:
        """For people, in the precision that the field prints for percents, or more."""
        digits = digits_of(score)
        return f"{self.mean:.{digits}f} ± {self.std:.{digits}f}"


def digits_of(score: str) -> int:
    """Decimals that people read: one for percents."""
    return 1 if "%" in score else 3


def paper_protocol(curves: Sequence[Sequence[float]]) -> Outcome:
    """Average the curves of all folds, take the best single epoch (the first of several), report
    the folds at that epoch: what GIN, CIN and this paper state.
    """
    table = _table(curves)
    epoch = int(table.mean(0).argmax())
    return _outcome(table[:, epoch], epoch + 1)


def per_fold_best(curves: Sequence[Sequence[float]]) -> Outcome:
    """Each fold at its own best epoch: what the authors' code records; never below the other."""
    return _outcome(_table(curves).max(1), None)


def one_number(scores: Sequence[float]) -> Outcome:
    """One score per fold with nothing left to choose: the fair protocol, whose held-out graphs are
    touched once after epoch and configuration were chosen elsewhere (Errica et al. 2020), and
    models without epochs.
    """
    return _outcome(np.asarray(scores, np.float64), None)


def _table(curves: Sequence[Sequence[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    lengths = sorted({len(curve) for curve in curves})
    if len(lengths) != 1 or lengths[0] == 0:
        raise InputError(f"all folds must have the same number of epochs, got {lengths}")
    return np.array(curves, np.float64)


def _outcome(values: np.ndarray, epoch: int | None) -> Outcome:
    return Outcome(
        float(values.mean()), float(values.std()), epoch, tuple(map(float, values.tolist()))
    )
