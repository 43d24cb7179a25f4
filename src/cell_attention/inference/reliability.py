"""How far predictions can be trusted: intervals of values, and calibration of probabilities.

The intervals are those of split conformal prediction: as wide on either side as the error that a
given share of the validation graphs does not exceed. Probabilities are calibrated by temperatures
(Guo et al. 2017), which the same graphs choose.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from cell_attention.data.file_format import Kind
from cell_attention.inference.model_record import Margin

LEVEL = 0.9
"""The share of new values that the intervals are meant to contain."""
BINS = 10
"""Equal parts of [0, 1], whose probabilities are compared with frequencies."""
COOLER, WARMER, WIDEST = 0.1, 0.5, 3.0
"""Deviations of the logarithm of a temperature that are expected below and above one, and the
largest logarithm tried. Networks that have learned all of their training graphs are rarely too
modest, and one wrong answer of a network made more certain costs more than all right ones gain: a
few validation graphs that happen to be right must not sharpen it."""


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


def best_temperatures(kind: Kind, logs: Tensor, known: Tensor) -> tuple[float, ...]:
    """Return the temperatures at which known targets are most likely: one for classes, one per
    label; empty for values.

    logs: what `log_probabilities` returns. known: (graphs,) classes, or (graphs, labels).

    A few graphs that are all predicted correctly would be most likely at a temperature of zero, so
    temperatures near one are preferred: log T has a normal prior around 0, of deviation COOLER
    below and WARMER above it. The more graphs there are, the less it weighs.
    """
    if kind == "values":
        return ()
    if kind == "classes":
        return (_best(lambda cooled: cross_entropy(cooled, known.long(), reduction="sum"), logs),)
    found = []
    for column, targets in zip(logs.unbind(1), known.reshape(logs.shape).unbind(1), strict=True):
        there = ~targets.isnan()
        truths = targets[there].to(logs)
        found.append(
            _best(
                lambda cooled, truths=truths: binary_cross_entropy_with_logits(  # type: ignore[misc]
                    cooled, truths, reduction="sum"
                ),
                column[there],
            )
        )
    return tuple(found)


def _best(loss: Callable[[Tensor], Tensor], logs: Tensor) -> float:
    """Return the temperature that minimises a loss of the cooled logarithms, and the prior's."""
    if not len(logs):
        return 1.0
    from scipy.optimize import minimize_scalar

    def total(log: float) -> float:
        width = COOLER if log < 0 else WARMER
        return float(loss(logs / math.exp(log))) + 0.5 * (log / width) ** 2

    return math.exp(minimize_scalar(total, bounds=(-WIDEST, WIDEST), method="bounded").x)


def tempered_thresholds(
    thresholds: tuple[float, ...], temperatures: tuple[float, ...]
) -> tuple[float, ...]:
    """Return thresholds of probabilities as those of the same probabilities at these temperatures:
    what is decided stays the same.
    """
    odds = torch.tensor(thresholds, dtype=torch.float64).logit()
    cooled = (odds / torch.tensor(temperatures, dtype=torch.float64)).sigmoid()
    return tuple(cooled.tolist()) if thresholds else ()


def chances_of(kind: Kind, guessed: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Return probabilities, and whether what they are about came true: of the second of two
    classes, of the predicted one of more classes, and of every known label.
    """
    if kind == "labels":
        there = ~known.reshape(guessed.shape).isnan()
        return guessed[there], known.reshape(guessed.shape)[there]
    if guessed.size(1) == 2:
        return guessed[:, 1], known.flatten()
    sure, chosen = guessed.max(1)
    return sure, chosen == known.flatten()


def reliability_table(chances: Tensor, truths: Tensor) -> list[dict[str, float]]:
    """Return, for every one of BINS parts of [0, 1] with probabilities in it, their number, their
    mean, and how often what they are about came true.
    """
    part = (chances * BINS).long().clamp(0, BINS - 1)
    return [
        {
            "from": number / BINS,
            "graphs": int(inside.sum()),
            "probability": float(chances[inside].double().mean()),
            "frequency": float(truths[inside].double().mean()),
        }
        for number in range(BINS)
        if bool((inside := part == number).any())
    ]


def calibration_error(chances: Tensor, truths: Tensor) -> float:
    """Return the expected calibration error: how far, on average over the graphs, the mean
    probability is from the frequency within each part of [0, 1].
    """
    rows = reliability_table(chances, truths)
    gaps = [row["graphs"] * abs(row["probability"] - row["frequency"]) for row in rows]
    return sum(gaps) / len(chances)


def reliability(
    guessed: Tensor, known: Tensor, *, kind: Kind, margins: tuple[Margin, ...], before: Tensor
) -> dict[str, Any]:
    """Return what a part of the data says of the intervals, or of the probabilities.

    before: the probabilities without a temperature.
    """
    if kind == "values":
        found = coverage(guessed, known, margins)
        return {"intervals": found} if found else {}
    chances, truths = chances_of(kind, guessed, known)
    if not len(chances):
        return {}
    return {
        "calibration_error": calibration_error(chances, truths),
        "calibration_error_before": calibration_error(*chances_of(kind, before, known)),
        "reliability": reliability_table(chances, truths),
    }
