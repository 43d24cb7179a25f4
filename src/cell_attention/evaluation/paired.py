"""The paired difference of two models on the same folds, and a test whether it is noise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cell_attention.errors import InputError
from cell_attention.evaluation.protocols import digits_of

NOISE = 0.05
"""A difference whose p-value is above this is inside the noise."""


@dataclass(frozen=True)
class Difference:
    """The scores of one model minus those of another, fold by fold."""

    mean: float
    standard_error: float
    """s / √folds, with the standard deviation s of the differences."""
    p_value: float
    """Two-sided, of a paired t-test. The training sets of the folds overlap, so the differences are
    not independent: the variance is corrected for that (Nadeau and Bengio 2003).
    """

    @property
    def inside_noise(self) -> bool:
        """Whether the difference may be noise."""
        return self.p_value > NOISE

    def text(self, score: str) -> str:
        """Format it for people, always with its sign."""
        digits = digits_of(score)
        return f"{self.mean:+.{digits}f} ± {self.standard_error:.{digits}f}"


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """Compute the difference of scores on the same folds, in the same order."""
    from scipy import stats

    if len(ours) != len(theirs) or len(ours) < 2:
        raise InputError(
            f"a paired difference needs the same folds, at least two, got {len(ours)} and "
            f"{len(theirs)}"
        )
    folds = len(ours)
    gaps = np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)
    mean, spread = float(gaps.mean()), float(gaps.std(ddof=1))
    if spread <= 1e-9 * (1.0 + abs(mean)):  # the same difference in all folds
        return Difference(mean, 0.0, 1.0 if abs(mean) < 1e-9 else 0.0)
    # The ratio of held-out to training graphs, with k folds, is 1 / (k − 1).
    corrected = spread * np.sqrt(1.0 / folds + 1.0 / (folds - 1))
    p_value = 2.0 * float(stats.t.sf(abs(mean) / corrected, folds - 1))
    return Difference(mean, spread / np.sqrt(folds), p_value)
