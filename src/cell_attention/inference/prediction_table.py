"""Predictions as the cells of a table: what each column is called, what each row says."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cell_attention.data.targets import MISSING, cell_number, class_name
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import Predictions
from cell_attention.training.metrics import measured, metrics_of


def names_of(model: Model) -> tuple[str, ...]:
    """What is predicted, one name per column of targets."""
    if model.target_names:
        return model.target_names
    count = 1 if model.task == "classes" else model.network.outputs
    return ("",) if count == 1 else tuple(str(number) for number in range(count))


def truth_names(model: Model) -> tuple[str, ...]:
    """The columns of a source that hold what is to be predicted."""
    return tuple(name or "truth" for name in names_of(model))


def header(model: Model) -> tuple[str, ...]:
    """The columns that predictions fill."""
    several = len(model.members) > 1
    found: list[str] = []
    for name in names_of(model):
        stem = f"{name}_" if name else ""
        found.append(f"{stem}prediction")
        if model.task == "labels" or len(model.labels) == 2:
            found.append(f"{stem}probability")
        elif model.task == "classes":
            found += [f"{stem}probability_{label}" for label in labels_of(model)]
        if several:
            found.append(f"{stem}spread")
    return tuple(found)


def cells(model: Model, predictions: Predictions) -> list[tuple[str, ...]]:
    """The cells of every graph, under `header`.

    The spread of classes is that of the probability of the predicted one.
    """
    decided, values = predictions.decided(model), predictions.values
    spread = predictions.spread
    rows = []
    for graph in range(values.size(0)):
        row: list[str] = []
        if model.task == "classes":
            chosen = int(decided[graph])
            labels = labels_of(model)
            row.append(labels[chosen])
            shown = values[graph, 1:] if len(labels) == 2 else values[graph]
            row += [_text(value) for value in shown.tolist()]
            row += [] if spread is None else [_text(float(spread[graph, chosen]))]
        else:
            for column in range(values.size(1)):
                value = float(values[graph, column])
                if model.task == "labels":
                    row.append(str(int(decided[graph, column])))
                row.append(_text(value))
                row += [] if spread is None else [_text(float(spread[graph, column]))]
        rows.append(tuple(row))
    return rows


def labels_of(model: Model) -> tuple[str, ...]:
    """What the classes are called."""
    return model.labels or tuple(str(number) for number in range(model.network.outputs))


def _text(value: float) -> str:
    return f"{value:.6g}"


def stated(model: Model, cell: str) -> float:
    """What a cell of a source says: number of a class, label or value; NaN where the model knows
    none such.
    """
    text = cell.strip()
    labels, number = labels_of(model), cell_number(text)
    if model.task == "classes":
        written = text if text in labels or number != number else class_name(number)
        return float(labels.index(written)) if written in labels else math.nan
    return number if model.task == "values" or number in (0.0, 1.0) else math.nan


@dataclass
class Truths:
    """Predictions beside what is known, gathered on the way, to measure at the end."""

    model: Model
    guessed: list[Tensor] = field(default_factory=list)
    known: list[list[float]] = field(default_factory=list)
    strange: int = 0
    """Cells that are not blank and not a class, label or value that the model knows."""

    def add(self, values: Tensor, texts: Sequence[str]) -> None:
        """One graph, with its targets as its file writes them; what is not known is not counted."""
        known = [stated(self.model, text) for text in texts]
        self.strange += sum(
            number != number and text.strip().lower() not in MISSING
            for number, text in zip(known, texts, strict=True)
        )
        if any(number == number for number in known):
            self.guessed.append(values)
            self.known.append(known)

    def metrics(self) -> dict[str, Any]:
        """What the predictions come to, where at least one graph has a target."""
        if not self.known:
            return {}
        model, known = self.model, torch.tensor(self.known, dtype=torch.float64)
        if model.task == "classes":
            known = known[:, 0]
        guessed = torch.stack(self.guessed)
        found = {
            name: measured(name, model.task, guessed, known, model.thresholds)
            for name in metrics_of(model.task)
        }
        counts = {"rows": len(self.known), "unknown_targets": self.strange}
        return {**counts, **{name: value for name, value in found.items() if value == value}}
