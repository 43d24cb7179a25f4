"""The three protocols that the field uses under the one name "accuracy in cross-validation"."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cell_attention.errors import InputError


@dataclass(frozen=True)
class Outcome:
    """The result of one protocol; accuracies are in percent."""

    mean: float
    std: float
    """Population standard deviation over the folds (divided by their number)."""
    epoch: int | None
    """Counted from 1; None if every fold has its own, or the model has no epochs."""
    folds: tuple[float, ...]

    def text(self, score: str) -> str:
        """Format it for people."""
        digits = digits_of(score)
        return f"{self.mean:.{digits}f} ± {self.std:.{digits}f}"


def digits_of(score: str) -> int:
    """Return the number of decimals to print: one for percents, as is usual, else three."""
    return 1 if "%" in score else 3


def paper_protocol(curves: Sequence[Sequence[float]]) -> Outcome:
    """Average the curves of all folds, take the best epoch of the mean (the first of several), and
    report the folds at that epoch, as GIN, CIN and this paper state.
    """
    table = _table(curves)
    epoch = int(table.mean(0).argmax())
    return _outcome(table[:, epoch], epoch + 1)


def per_fold_best(curves: Sequence[Sequence[float]]) -> Outcome:
    """Take each fold at its own best epoch, as the released code does; never below the former."""
    return _outcome(_table(curves).max(1), None)


def one_number(scores: Sequence[float]) -> Outcome:
    """Summarise one score per fold: of the fair protocol, which uses the held-out graphs once,
    after epoch and configuration were chosen (Errica et al. 2020), and of models without epochs.
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
