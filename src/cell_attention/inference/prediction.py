"""Predictions of a trained model: probabilities or values, their spread, fingerprints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from cell_attention.data.file_format import Kind
from cell_attention.errors import InputError
from cell_attention.inference.model_folder import Model
from cell_attention.nn.functional import predictions_of
from cell_attention.topology.complex import CellComplex

AT_ONCE = 512
"""Graphs in a batch."""


@dataclass(frozen=True)
class Predictions:
    """Predictions for some graphs."""

    values: Tensor
    """(graphs, ·) probabilities of the classes or of the labels, or values in their own units; the
    mean over the members of an ensemble."""
    spread: Tensor | None
    """(graphs, ·) standard deviation over the members; None if there is only one."""

    def decided(self, model: Model) -> Tensor:
        """Return (graphs,) classes, (graphs, labels) zeros and ones, or the values themselves."""
        if model.task == "values":
            return self.values
        limits = torch.tensor(model.thresholds or (0.5,) * self.values.size(1), dtype=torch.float64)
        if model.task == "labels":
            return (self.values >= limits).long()
        if self.values.size(1) == 2 and model.thresholds:
            return (self.values[:, 1] >= limits[0]).long()
        return self.values.argmax(1)


def require_task(model: Model) -> Kind:
    """Return what a model predicts; refuse one that was only pretrained."""
    if model.task == "none":
        raise InputError(
            "the model was pretrained without targets, so it predicts nothing: train one from it "
            "(from_model), or take its fingerprints"
        )
    return model.task


@torch.no_grad()
def member_outputs(model: Model, complexes: CellComplex) -> list[Tensor]:
    """Return (graphs, outputs) of every network, for graphs that have the features which the model
    was trained on.
    """
    parts = _batches(complexes)
    return [torch.cat([network(part) for part in parts]).double() for network in model.members]


def predictions_from(model: Model, outputs: Sequence[Tensor]) -> Predictions:
    """Make predictions of the outputs of every network."""
    kind, temperatures = require_task(model), model.temperatures
    mean = mean_prediction(kind, outputs, temperatures)
    if len(outputs) == 1 or not mean.numel():  # torch warns of no graphs
        return Predictions(mean, None if len(outputs) == 1 else mean)
    every = torch.stack([mean_prediction(kind, [one], temperatures) for one in outputs])
    return Predictions(mean, every.std(0, correction=0))


def mean_prediction(
    kind: Kind, outputs: Sequence[Tensor], temperatures: tuple[float, ...] = ()
) -> Tensor:
    """Return (graphs, outputs) the mean of the networks' predictions, at these temperatures.

    A temperature divides the logarithm of the mean probability, not the outputs of every network:
    thus it never changes which class is the most probable.
    """
    if kind == "values":
        return torch.stack(list(outputs)).mean(0)
    if not temperatures:
        return torch.stack([predictions_of(kind, one) for one in outputs]).mean(0)
    return at_temperatures(kind, log_probabilities(kind, outputs), temperatures)


def log_probabilities(kind: Kind, outputs: Sequence[Tensor]) -> Tensor:
    """Return, up to a constant per graph, (graphs, classes) logarithms of the mean probabilities of
    some networks; for labels (graphs, labels) their log-odds.
    """
    if kind == "classes":
        return torch.stack([one.log_softmax(1) for one in outputs]).logsumexp(0)
    for_it, against = (
        torch.stack([logsigmoid(sign * one) for one in outputs]).logsumexp(0) for sign in (1, -1)
    )
    return for_it - against


def at_temperatures(kind: Kind, logs: Tensor, temperatures: Sequence[float]) -> Tensor:
    """Return probabilities from what `log_probabilities` returns.

    temperatures: one for classes, one per label for labels.
    """
    cooled = logs / torch.tensor(temperatures, dtype=logs.dtype)
    return cooled.softmax(1) if kind == "classes" else cooled.sigmoid()


def predict_complexes(model: Model, complexes: CellComplex) -> Predictions:
    """Predict graphs that have the features which the model was trained on."""
    require_task(model)
    return predictions_from(model, member_outputs(model, complexes))


@torch.no_grad()
def fingerprints(model: Model, complexes: CellComplex) -> Tensor:
    """Return (graphs, ·) the vectors h_C; those of an ensemble are concatenated."""
    if not callable(getattr(type(model.network), "embed", None)):
        raise InputError(f"model {model.name!r} has no fingerprints: its network has no `embed`")
    members, parts = cast(Any, model.members), _batches(complexes)
    return torch.cat(
        [torch.cat([network.embed(part).complexes for part in parts]) for network in members], dim=1
    )


def _batches(complexes: CellComplex) -> list[CellComplex]:
    count = complexes.num_complexes
    if count <= AT_ONCE:
        return [complexes]
    return [complexes[first : first + AT_ONCE] for first in range(0, count, AT_ONCE)]


def require_same_features(model: Model, featuriser: dict[str, Any], name: str) -> None:
    """Refuse graphs whose feature columns differ in meaning from those of the training."""
    for key in sorted({*model.featuriser, *featuriser}):
        if model.featuriser.get(key) != featuriser.get(key):
            raise InputError(
                f"{name} does not have the features that the model was trained on: {key} differs"
            )
