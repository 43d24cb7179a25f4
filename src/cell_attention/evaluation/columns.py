"""The scores of single labels and columns of values in a cross-validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cell_attention.evaluation.protocols import digits_of

Scores = Sequence[float | None]
"""One score per column, or none at all; None where a score is not defined."""


@dataclass(frozen=True)
class ColumnOutcome:
    """The scores of one column, in its own unit, over the folds where they are defined."""

    mean: float | None
    std: float | None
    """Population standard deviation."""
    folds: tuple[float | None, ...]

    def text(self, score: str) -> str:
        """Format it for people."""
        if self.mean is None:
            return "not defined"
        return f"{self.mean:.{digits_of(score)}f} ± {self.std:.{digits_of(score)}f}"

    @staticmethod
    def of(record: dict[str, Any]) -> "ColumnOutcome":
        """Read it from JSON."""
        numbers = [None if value is None else float(value) for value in record["folds"]]
        return column_outcome(numbers)


def mean_columns(reruns: Sequence[Scores]) -> list[float | None]:
    """Average the scores of every column over several reruns; empty if one of them has none."""
    if not all(reruns):
        return []
    return [_mean(column) for column in zip(*reruns, strict=True)]


def column_outcomes(names: Sequence[str], folds: Sequence[Scores]) -> dict[str, ColumnOutcome]:
    """Summarise the scores of all folds by column; empty if a fold has none."""
    if not names or not all(len(scores) == len(names) for scores in folds):
        return {}
    table = zip(*folds, strict=True)
    return {name: column_outcome(list(row)) for name, row in zip(names, table, strict=True)}


def column_outcome(folds: Scores) -> ColumnOutcome:
    """Summarise the scores of one column."""
    known = [value for value in folds if value is not None]
    std = float(np.std(known)) if known else None
    return ColumnOutcome(_mean(folds), std, tuple(folds))


def _mean(values: Scores) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
