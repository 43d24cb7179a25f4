"""What a model reaches on a part of its data: score, metrics, and how far it can be trusted."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import log_probabilities, predictions_from, require_task
from cell_attention.inference.reliability import (
    best_temperatures,
    margins_of,
    reliability,
    tempered_thresholds,
)
from cell_attention.training.metrics import best_thresholds, column_metrics, measured, metrics_of
from cell_attention.training.tasks import Task


def calibrated(model: Model, outputs: Sequence[Tensor], known: Tensor) -> Model:
    """Return the model with the temperatures, thresholds and margins of the validation graphs.

    outputs: of every network on these graphs; known: their targets.
    """
    kind = require_task(model)
    values = predictions_from(model, outputs).values
    if kind == "values":
        return replace(model, margins=margins_of(values, known))
    warmth = best_temperatures(kind, log_probabilities(kind, outputs), known)
    # Chosen without temperatures, so that these never change what is decided.
    limits = best_thresholds(kind, values, known)
    return replace(model, temperatures=warmth, thresholds=tempered_thresholds(limits, warmth))


def reached_on(
    model: Model, task: Task, *, guessed: Tensor, known: Tensor, before: Tensor
) -> dict[str, Any]:
    """Return the score, the metrics and the reliability of predictions.

    before: the same predictions without temperatures.
    """
    kind, limits = task.kind, model.thresholds
    found = {
        metric: measured(
            metric, guessed, known, kind=kind, thresholds=limits, deviations=task.deviations
        )
        for metric in metrics_of(kind)
    }
    reached: dict[str, Any] = {
        "score": task.score_of(guessed, known),
        "metrics": {metric: value for metric, value in found.items() if value == value},
        **reliability(guessed, known, kind=kind, margins=model.margins, before=before),
    }
    if kind != "classes" and guessed.size(1) > 1:
        each = column_metrics(guessed, known, kind=kind, thresholds=limits)
        counts = (~known.isnan()).sum(0).tolist()
        reached["columns"] = {
            column: {"graphs": count, "metrics": metrics}
            for column, count, metrics in zip(model.target_columns, counts, each, strict=True)
        }
    return reached


def is_reached(found: Any) -> bool:
    """Whether this has the form that `make_model` writes."""
    return isinstance(found, dict) and all(
        part is None
        or (
            isinstance(part, dict)
            and "loss" in part
            and isinstance(part.get("metrics"), dict)
            and _are_columns(part.get("columns", {}))
        )
        for part in (found.get(name, 0) for name in ("train", "validation", "test"))
    )


def _are_columns(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(part, dict)
        and type(part.get("graphs")) is int
        and isinstance(part.get("metrics"), dict)
        for part in found.values()
    )
