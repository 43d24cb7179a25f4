"""Tasks: predicting classes, labels or values, with the loss and score of each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from cell_attention.data.dataset import GraphSet
from cell_attention.data.file_format import Kind
from cell_attention.data.splits.folds import Fold
from cell_attention.errors import DataError, InputError
from cell_attention.nn.functional import predictions_of
from cell_attention.topology.complex import CellComplex
from cell_attention.training.class_weights import (
    ClassWeights,
    weights_of_classes,
    weights_of_known,
    weights_of_labels,
)
from cell_attention.training.metrics import METRICS, check_metric, measured, measured_columns


@dataclass(frozen=True)
class Task:
    """How outputs of a network become predictions, and how predictions are scored."""

    kind: Kind
    outputs: int
    metric: str
    """The score, one of METRICS."""
    weights: Tensor | None = None
    """(classes,) weights in the loss, or (2, labels) of zeros and ones; None: all are 1."""
    centre: Tensor | None = None
    """(columns,) mean of the training graphs' values: outputs are in units of `scale` around it."""
    scale: Tensor | None = None
    """(columns,) their standard deviation."""
    taught: Tensor | None = None
    """(columns,) whether the training graphs have different values of a label or column, without
    which nothing can be learned; None if all columns are scored."""

    @property
    def score_name(self) -> str:
        """The name of the score; higher is better."""
        scaled = self.deviations and METRICS[self.metric].has_unit
        return METRICS[self.metric].score_name + (" in standard deviations" if scaled else "")

    @property
    def deviations(self) -> list[float]:
        """What errors of each of several columns of values are divided by before their mean."""
        several = self.scale is not None and self.outputs > 1
        return self.scale.tolist() if several and self.scale is not None else []

    def loss(
        self,
        outputs: Tensor,
        targets: Tensor,
        smoothing: float = 0.0,
        *,
        bounds: Tensor | None = None,
        sample_weights: Tensor | None = None,
    ) -> Tensor:
        """Return the mean loss over known targets; zero for a batch without any.

        smoothing: share of a target that is spread over all classes, or both values of a label.
        bounds: `target_bounds` of the targets; a value beyond its bound has no loss.
        sample_weights: (graphs,) what the loss of every graph is multiplied by; 1 by default.

        Deviation: the paper names no loss. Classes exclude each other, so it is cross-entropy here;
        the released code uses binary cross-entropy per class.
        """
        if self.kind == "classes":
            loss = partial(
                functional.cross_entropy, outputs, targets, self.weights, label_smoothing=smoothing
            )
            if sample_weights is None:
                return loss()
            losses = loss(reduction="none")
            total = losses.numel() if self.weights is None else self.weights[targets].sum()
            return (sample_weights.to(losses) * losses).sum() / total
        if self.centre is not None and self.scale is not None:
            targets = (targets.view_as(outputs) - self.centre) / self.scale
        there = ~targets.isnan()
        guessed, known = outputs.view_as(targets)[there], targets[there]
        if not known.numel():
            return outputs.sum() * 0.0
        if self.kind == "labels":
            smooth = known * (1.0 - smoothing) + 0.5 * smoothing
            if self.weights is None and sample_weights is None:
                return functional.binary_cross_entropy_with_logits(guessed, smooth)
            # As in the cross-entropy of classes, the mean is that of the weights in the batch.
            weights = torch.ones_like(guessed)
            if self.weights is not None:
                weights = torch.where(targets > 0.5, self.weights[1], self.weights[0])[there]
            losses = functional.binary_cross_entropy_with_logits(guessed, smooth, reduction="none")
            each = weights_of_known(sample_weights, there)
            return (each * weights * losses).sum() / weights.sum()
        if bounds is not None:  # an error of zero has no gradient either
            beyond = bounds.view_as(targets)[there] * (guessed - known) > 0
            guessed = torch.where(beyond, known, guessed)
        if sample_weights is None:
            return functional.mse_loss(guessed, known)
        each = weights_of_known(sample_weights, there).to(guessed)
        return (each * (guessed - known).square()).mean()

    def predictions(self, outputs: Tensor) -> Tensor:
        """Return (graphs, outputs) probabilities of classes or labels, or values in their units."""
        if self.centre is None or self.scale is None:
            return predictions_of(self.kind, outputs)
        return outputs * self.scale + self.centre

    def score(self, outputs: Tensor, targets: Tensor) -> float:
        """Return the metric, with its sign changed if lower is better."""
        # In double precision: probabilities that float32 would round to 1 keep their order.
        return self.score_of(self.predictions(outputs.double()), targets)

    def score_of(self, predictions: Tensor, targets: Tensor) -> float:
        """Return the score of predictions, as `predictions` returns them."""
        known = self.scored(targets)
        found = measured(
            self.metric, predictions, known, kind=self.kind, deviations=self.deviations
        )
        return -found if METRICS[self.metric].lower else found

    def scored(self, targets: Tensor) -> Tensor:
        """Return the targets, with NaN in the columns from which nothing could be learned."""
        return targets if self.taught is None else targets.masked_fill(~self.taught, float("nan"))

    def column_scores(self, predictions: Tensor, targets: Tensor) -> list[float | None]:
        """Return the score of every label or column of values, in its own unit; None where it is
        not defined.
        """
        known = self.scored(targets)
        found = measured_columns(self.metric, predictions, known, kind=self.kind)
        sign = -1.0 if METRICS[self.metric].lower else 1.0
        return [None if math.isnan(value) else sign * value for value in found]

    def require_known(self, complexes: CellComplex, name: str, graphs: Tensor) -> None:
        """Refuse graphs none of whose targets is known."""
        targets = complexes.targets
        if targets is None or bool(targets[graphs].isnan().all()):
            raise DataError(f"none of the {len(graphs)} {name} graphs has a known target")

    def _require_exact(self, complexes: CellComplex, name: str, graphs: Tensor) -> None:
        """Refuse graphs none of whose targets can be scored."""
        self.require_known(complexes, name, graphs)
        targets = complexes.exact_targets
        if targets is None or bool(targets[graphs].isnan().all()):
            raise DataError(f"all targets of the {len(graphs)} {name} graphs are bounds (>, <)")

    def require_score(self, complexes: CellComplex, name: str, graphs: Tensor) -> None:
        """Refuse graphs on which the score is not defined."""
        self._require_exact(complexes, name, graphs)
        if complexes.exact_targets is not None:
            targets = complexes.exact_targets[graphs]
            any_guess = torch.full((len(graphs), self.outputs), 0.5)
            if math.isnan(self.score_of(any_guess, targets)):
                raise DataError(
                    f"{METRICS[self.metric].title} is not defined on {len(graphs)} {name} graphs "
                    "whose targets are all the same; use another metric, or hold out more graphs"
                )


def usual_metric(kind: Kind) -> str:
    """Return the default metric."""
    return "rmse" if kind == "values" else "accuracy"


def task_of(
    complexes: CellComplex | Tensor,
    train: Tensor,
    *,
    class_weights: ClassWeights = False,
    metric: str | None = None,
    kind: Kind | None = None,
) -> Task:
    """Make the task from the targets: integers are classes, zeros and ones labels, else values.

    complexes: graphs with targets, or the targets themselves.
    train: the training graphs; class weights and scales are computed from these alone.
    kind: the kind of targets, where it cannot be inferred from the numbers.
    """
    targets = complexes if isinstance(complexes, Tensor) else complexes.targets
    if targets is None:
        raise DataError("training needs graphs with targets, got complexes.targets None")
    kind = kind or kind_of(targets)
    chosen = metric or usual_metric(kind)
    check_metric(chosen, kind)
    if class_weights and kind == "values":
        raise DataError("class_weights needs targets that are classes, got values; leave it off")
    weights = None
    if kind == "classes":
        count = int(targets.max()) + 1
        if class_weights:
            weights = weights_of_classes(targets[train], count)
        return Task(kind, count, chosen, weights)
    outputs = 1 if targets.dim() == 1 else targets.size(1)
    seen = targets[train].reshape(-1, outputs)
    taught = teaching(seen)
    scored = None if bool(taught.all()) or not bool(taught.any()) else taught
    if kind == "labels":
        if class_weights:
            weights = weights_of_labels(seen, rare_only=class_weights == "auto")
        return Task(kind, outputs, chosen, weights, taught=scored)
    return Task(kind, outputs, chosen, None, *_scales(seen), taught=scored)


def teaching(seen: Tensor) -> Tensor:
    """(columns,) whether a column has two different known values; seen: (graphs, columns)."""
    gaps = seen.isnan()
    low, high = seen.masked_fill(gaps, math.inf), seen.masked_fill(gaps, -math.inf)
    return low.amin(0) < high.amax(0)


UNNAMED = "the target"


def untaught_note(graph_set: GraphSet, names: Sequence[str], folds: Sequence[Fold]) -> str:
    """Name the columns from which nothing can be learned in some fold; "" if there are none. Those
    that are the same in the whole file were named when it was read.
    """
    targets = graph_set.graphs.targets
    if targets is None or not targets.is_floating_point():
        return ""
    single, targets = not names, targets.reshape(len(targets), -1)
    names = names or graph_set.target_names or (UNNAMED,)
    reported = ~teaching(targets) if graph_set.molecules and graph_set.kind == "labels" else ()
    named = {name for name, known in zip(names, reported, strict=False) if known}
    places = [
        (name, number)
        for number, fold in enumerate(folds)
        for name, taught in zip(names, teaching(targets[list(fold.train)]).tolist(), strict=True)
        if not taught and name not in named
    ]
    if not places:
        return ""
    listed = list(dict.fromkeys(name if name == UNNAMED else repr(name) for name, _ in places))
    what = ", ".join(listed[:6]) + (", …" if len(listed) > 6 else "")
    where = "" if len(folds) == 1 else f" of a fold (the first in fold {places[0][1]})"
    more = "" if single else " and no metric counts it there"
    return f"{what}: only one value in the training graphs{where}, so nothing can be learned{more}"


def kind_of(targets: Tensor) -> Kind:
    """Infer the kind of targets from their numbers."""
    if not targets.is_floating_point():
        return "classes"
    known = targets[~targets.isnan()]
    return "labels" if bool(((known == 0) | (known == 1)).all()) else "values"


def require_classes(model: str, complexes: CellComplex, metric: str | None = None) -> Tensor:
    """Return the targets, for a model that can only predict classes, scored by accuracy."""
    targets = complexes.targets
    if targets is None or targets.is_floating_point():
        raise InputError(f"model {model!r} needs targets that are classes; use another model")
    if metric not in (None, "accuracy"):
        raise InputError(f"metric must be 'accuracy' for model {model!r}, got {metric!r}")
    return targets


def _scales(seen: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of every column; 1 where the latter is near zero."""
    seen = seen.double()
    centre = seen.nanmean(0).nan_to_num(0.0)
    spread = (seen - centre).square().nanmean(0).sqrt()
    usable = spread.isfinite() & (spread > 1e-12 * centre.abs().clamp(min=1e-20))
    return centre.float(), torch.where(usable, spread, torch.ones_like(spread)).float()
