"""Metrics of predictions, and the threshold that decides between two classes.

Predictions are probabilities of classes (graphs, classes) or of labels (graphs, labels), or values
(graphs, columns). Two classes count as one label; more than two as one label each, against the
rest. Metrics of single labels or columns are averaged over those where they are defined; errors of
several columns of values are divided by a deviation of each column first, since units differ.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.data.file_format import Kind
from cell_attention.errors import InputError

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A measure of how good predictions are."""

    title: str
    values: bool = False
    """Whether it is for values; otherwise for classes and labels."""
    lower: bool = False
    """Whether lower is better."""
    has_unit: bool = False
    """Whether it has the unit of the values."""

    @property
    def score_name(self) -> str:
        """Its name as a score, where higher is always better."""
        return f"negative {self.title}" if self.lower else self.title


METRICS: dict[str, Metric] = {
    "accuracy": Metric("accuracy in %"),
    "roc_auc": Metric("ROC-AUC"),
    "pr_auc": Metric("PR-AUC"),
    "mcc": Metric("MCC"),
    "brier": Metric("Brier score", lower=True),
    "rmse": Metric("RMSE", values=True, lower=True, has_unit=True),
    "mae": Metric("MAE", values=True, lower=True, has_unit=True),
    "r2": Metric("R²", values=True),
}


def metrics_of(kind: Kind) -> list[str]:
    """Return the names of the metrics for this kind of targets."""
    return [name for name, metric in METRICS.items() if metric.values == (kind == "values")]


def check_metric(name: str, kind: Kind) -> None:
    """Refuse a metric that is not for this kind of targets."""
    if name not in metrics_of(kind):
        what = "values" if kind == "values" else "classes"
        raise InputError(f"metric must be one of {', '.join(metrics_of(kind))} for {what}, got {name!r}")  # fmt: skip # noqa: E501


def measured(
    name: str,
    predictions: Tensor,
    targets: Tensor,
    *,
    kind: Kind,
    thresholds: tuple[float, ...] = (),
    deviations: Sequence[float] = (),
) -> float:
    """Compute one metric, with its own sign; NaN where it is undefined, as ROC-AUC of one class is.

    thresholds: the lowest probability at which each label is predicted; by default 0.5.
    deviations: of every column of values, what its errors are divided by; by default 1.
    """
    guessed, known = _array(predictions), _array(targets)
    if name == "accuracy" and kind == "classes" and not thresholds:
        return _accuracy(guessed, known)
    if kind == "classes" and guessed.shape[1] > 2:
        several = {"accuracy": _accuracy, "mcc": _mcc, "brier": _brier}
        if name in several:
            return several[name](guessed, known)
    found = measured_columns(name, predictions, targets, kind=kind, thresholds=thresholds)
    if deviations and METRICS[name].has_unit:
        found = [value / by for value, by in zip(found, deviations, strict=True)]
    defined = [value for value in found if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def measured_columns(
    name: str,
    predictions: Tensor,
    targets: Tensor,
    *,
    kind: Kind,
    thresholds: tuple[float, ...] = (),
) -> list[float]:
    """Compute one metric of every label or column of values, as `measured` does."""
    guessed, known = _array(predictions), _array(targets)
    one = _PER_COLUMN[name]
    limits = thresholds or (0.5,) * guessed.shape[1]
    return [one(y, p, t) for (y, p), t in zip(_columns(kind, guessed, known), limits, strict=False)]


def column_metrics(
    predictions: Tensor, targets: Tensor, *, kind: Kind, thresholds: tuple[float, ...] = ()
) -> list[dict[str, float]]:
    """Compute all metrics of every label or column of values, by name, where they are defined."""
    found: list[dict[str, float]] = [{} for _ in range(predictions.size(1))]
    for name in metrics_of(kind):
        values = measured_columns(name, predictions, targets, kind=kind, thresholds=thresholds)
        for column, value in zip(found, values, strict=True):
            if not math.isnan(value):
                column[name] = value
    return found


def best_thresholds(kind: Kind, predictions: Tensor, targets: Tensor) -> tuple[float, ...]:
    """Return, per label, the lowest probability at which it is predicted: the one with the highest
    Matthews correlation, of several the one nearest to 0.5. Empty for values and for more than
    two classes, which need no threshold.
    """
    guessed, known = _array(predictions), _array(targets)
    if kind == "values" or (kind == "classes" and guessed.shape[1] != 2):
        return ()
    return tuple(_best_threshold(y, p) for y, p in _columns(kind, guessed, known))


def _best_threshold(labels: Numbers, probabilities: Numbers) -> float:
    if labels.size == 0 or labels.min() == labels.max():
        return 0.5
    levels = np.unique(probabilities)
    between = np.concatenate([[0.5], (levels[1:] + levels[:-1]) / 2])
    found = np.array([_one_mcc(labels, probabilities, limit) for limit in between])
    best = np.flatnonzero(found >= found.max() - 1e-12)
    return float(between[best[np.abs(between[best] - 0.5).argmin()]])


def _array(values: Tensor) -> Numbers:
    array: Numbers = values.detach().cpu().double().numpy()
    return array


def _columns(kind: Kind, guessed: Numbers, known: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield (targets, predictions) of every label or column, without unknown targets."""
    if kind == "classes":
        for label in range(1, 2) if guessed.shape[1] == 2 else range(guessed.shape[1]):
            yield (known == label).astype(np.float64), guessed[:, label]
        return
    table = known.reshape(len(known), -1)
    for column in range(table.shape[1]):
        there = ~np.isnan(table[:, column])
        yield table[there, column], guessed[there, column]


def _accuracy(guessed: Numbers, known: Numbers) -> float:
    return 100.0 * float((guessed.argmax(1) == known).mean())


def _mcc(guessed: Numbers, known: Numbers) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(known, guessed.argmax(1)))


def _brier(guessed: Numbers, known: Numbers) -> float:
    truth = np.eye(guessed.shape[1])[known.astype(int)]
    return float(((guessed - truth) ** 2).sum(1).mean())


def _one_accuracy(labels: Numbers, probabilities: Numbers, limit: float) -> float:
    if not labels.size:
        return math.nan
    return 100.0 * float(((probabilities >= limit) == (labels > 0.5)).mean())


def _one_mcc(labels: Numbers, probabilities: Numbers, limit: float) -> float:
    """Matthews' correlation; 0 where all decisions are the same, as in scikit-learn."""
    given, truth = probabilities >= limit, labels > 0.5
    hits, misses = float((given & truth).sum()), float((~given & truth).sum())
    alarms, rejects = float((given & ~truth).sum()), float((~given & ~truth).sum())
    scale = math.sqrt((hits + misses) * (alarms + rejects) * (hits + alarms) * (misses + rejects))
    if not labels.size:
        return math.nan
    return (hits * rejects - alarms * misses) / scale if scale else 0.0


def _one_brier(labels: Numbers, probabilities: Numbers, _: float) -> float:
    return float(((probabilities - labels) ** 2).mean()) if labels.size else math.nan


def _ranked(function: str) -> Callable[[Numbers, Numbers, float], float]:
    """Wrap a metric of scikit-learn that needs both classes; NaN if there is only one."""

    def metric(labels: Numbers, probabilities: Numbers, _: float) -> float:
        if labels.size == 0 or labels.min() == labels.max():
            return math.nan
        import sklearn.metrics

        found: Any = getattr(sklearn.metrics, function)(labels, probabilities)
        return float(found)

    return metric


def _rmse(known: Numbers, guessed: Numbers, _: float) -> float:
    return float(np.sqrt(((guessed - known) ** 2).mean())) if known.size else math.nan


def _mae(known: Numbers, guessed: Numbers, _: float) -> float:
    return float(np.abs(guessed - known).mean()) if known.size else math.nan


def _r2(known: Numbers, guessed: Numbers, _: float) -> float:
    if known.size < 2 or known.min() == known.max():
        return math.nan
    return float(1.0 - ((guessed - known) ** 2).sum() / ((known - known.mean()) ** 2).sum())


_PER_COLUMN: dict[str, Callable[[Numbers, Numbers, float], float]] = {
    "accuracy": _one_accuracy, "mcc": _one_mcc, "brier": _one_brier, "rmse": _rmse, "mae": _mae,
    "r2": _r2, "roc_auc": _ranked("roc_auc_score"), "pr_auc": _ranked("average_precision_score"),
}  # fmt: skip
"""Functions of (targets, predictions, threshold) of one label or column."""
