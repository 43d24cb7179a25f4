"""How far predictions can be trusted: intervals of values, and calibration of probabilities.

The intervals are those of split conformal prediction: as wide on either side as the error that a
given share of the validation graphs does not exceed.
"""

import math
from typing import Any

import torch
from torch import Tensor

from cell_attention.inference.model_record import Margin

LEVEL = 0.9
"""The share of new values that the intervals are meant to contain."""
BINS = 10
"""Equal parts of [0, 1], whose probabilities are compared with frequencies."""


def margins_of(guessed: Tensor, known: Tensor) -> tuple[Margin, ...]:
    """Return the margin of every column.

    guessed, known: (graphs, ·) values of the validation graphs; unknown ones are NaN.
    """
    errors = (guessed - known.reshape(guessed.shape)).abs()
    return tuple(map(_margin, errors.unbind(1)))


def _margin(errors: Tensor) -> Margin:
    known = errors[~errors.isnan()].sort().values
    # One more than there are graphs: the new one may stand at any place among them.
    place = math.ceil(LEVEL * (len(known) + 1) - 1e-9)
    if place > len(known):
        return None
    margin = float(known[place - 1])
    return margin if math.isfinite(margin) else None


def coverage(guessed: Tensor, known: Tensor, margins: tuple[Margin, ...]) -> dict[str, Any]:
    """Count the known values of columns with a margin, and the share that lies in the interval."""
    limits = torch.tensor([math.nan if m is None else m for m in margins], dtype=guessed.dtype)
    errors = (guessed - known.reshape(guessed.shape)).abs()
    counted = ~(errors.isnan() | limits.isnan())
    values = int(counted.sum())
    inside = int(((errors <= limits) & counted).sum())
    return {"values": values, "share": inside / values} if values else {}


def calibration_error(chances: Tensor, truths: Tensor) -> float:
    """Return the expected calibration error: how far, on average over the graphs, the mean
    probability of the second class is from its frequency within each of BINS parts of [0, 1].
    """
    part = (chances * BINS).long().clamp(0, BINS - 1)
    sums = torch.zeros(BINS, dtype=torch.float64)
    gaps = sums.index_add(0, part, chances.double() - truths.double())
    return float(gaps.abs().sum()) / len(chances)


def reliability(
    guessed: Tensor, known: Tensor, *, kind: str, margins: tuple[Margin, ...]
) -> dict[str, Any]:
    """Return what a part of the data says of the intervals, or of the probabilities."""
    if kind == "values":
        found = coverage(guessed, known, margins)
        return {"intervals": found} if found else {}
    if kind == "classes" and guessed.size(1) == 2 and len(guessed):
        return {"calibration_error": calibration_error(guessed[:, 1], known.flatten())}
    return {}
