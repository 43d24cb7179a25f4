"""The true targets in a source: read from its cells, and compared with the predictions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cell_attention.data.file_format import MISSING, Decimal
from cell_attention.data.molecules.target_columns import plain_number
from cell_attention.data.targets import cell_number, class_name, read_value
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import require_task
from cell_attention.training.metrics import column_metrics, measured, metrics_of


def target_in(model: Model, cell: str) -> float:
    """Read the target in a cell of a source: the number of a class, a label or a value; NaN if it
    is unknown to the model.
    """
    text = cell.strip()
    labels, number = model.class_names, cell_number(text)
    if model.task == "classes":
        written = text if text in labels or number != number else class_name(number)
        return float(labels.index(written)) if written in labels else math.nan
    return number if model.task == "values" or number in (0.0, 1.0) else math.nan


@dataclass
class KnownTargets:
    """Predictions and their true targets, collected to compute the metrics at the end."""

    model: Model
    decimal: Decimal = "."
    """The decimal sign of the source."""
    predicted: list[Tensor] = field(default_factory=list)
    targets: list[list[float]] = field(default_factory=list)
    unknown: int = 0
    """Number of cells that are neither blank nor a class, label or value known to the model."""
    bounds: int = 0
    """Number of cells with a bound of a value, such as > 10; no metric counts them."""

    def add(self, values: Tensor, texts: Sequence[str]) -> None:
        """Add one graph, with its targets as in its file; unknown targets do not count."""
        texts = [plain_number(text, self.decimal) for text in texts]
        known = [target_in(self.model, text) for text in texts]
        numeric = self.model.task == "values"
        for number, text in zip(known, texts, strict=True):
            if number != number and text.strip().lower() not in MISSING:
                is_bound = numeric and read_value(text.strip())[1] != 0
                self.bounds += is_bound
                self.unknown += not is_bound
        if any(number == number for number in known):
            self.predicted.append(values)
            self.targets.append(known)

    def metrics(self) -> dict[str, Any]:
        """Compute the metrics; empty if no graph has a target."""
        if not self.targets:
            return {}
        model, known = self.model, torch.tensor(self.targets, dtype=torch.float64)
        if model.task == "classes":
            known = known[:, 0]
        elif isinstance(untaught := model.provenance.get("not_learned"), list):
            places = [i for i, name in enumerate(model.target_columns) if name in untaught]
            known[:, places] = math.nan
        predicted, kind = torch.stack(self.predicted), require_task(model)
        found = {
            name: measured(
                name,
                predicted,
                known,
                kind=kind,
                thresholds=model.thresholds,
                deviations=deviations_of(model),
            )
            for name in metrics_of(kind)
        }
        counts = {"rows": len(self.targets), "unknown_targets": self.unknown}
        if self.bounds:
            counts["bounds"] = self.bounds
        defined = {name: value for name, value in found.items() if value == value}
        if model.task == "classes" or model.outputs == 1:
            return {**counts, **defined}
        each = column_metrics(predicted, known, kind=kind, thresholds=model.thresholds)
        columns = dict(zip(model.target_columns, each, strict=True))
        return {**counts, **defined, "columns": columns}


def deviations_of(model: Model) -> list[float]:
    """Return what errors of each of several columns of values are divided by before their mean;
    NaN, so that there is no mean, if the model does not know it.
    """
    if model.task != "values" or model.outputs == 1:
        return []
    stated = model.provenance.get("deviations")
    numbers = stated if isinstance(stated, list) and len(stated) == model.outputs else []
    if numbers and all(type(number) in (int, float) and number > 0 for number in numbers):
        return [float(number) for number in numbers]
    return [math.nan] * model.outputs
