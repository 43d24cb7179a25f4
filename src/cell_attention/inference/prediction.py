"""Predictions of a trained model: probabilities or values, their spread, fingerprints."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

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
def predict_complexes(model: Model, complexes: CellComplex) -> Predictions:
    """Predict graphs that have the features which the model was trained on."""
    every, kind = [], require_task(model)
    for network in model.members:
        outputs = torch.cat([network(part) for part in _batches(complexes)])
        every.append(predictions_of(kind, outputs.double()))
    if len(every) == 1:
        return Predictions(every[0], None)
    table = torch.stack(every)
    spread = table.std(0, correction=0) if table.numel() else table[0]  # torch warns of no graphs
    return Predictions(table.mean(0), spread)


@torch.no_grad()
def fingerprints(model: Model, complexes: CellComplex) -> Tensor:
    """Return (graphs, ·) the vectors h_C; those of an ensemble are concatenated."""
    if not callable(getattr(type(model.network), "embed", None)):
        raise InputError(f"model {model.name!r} has no fingerprints: its network has no `embed`")
    members: Any = model.members
    return torch.cat(
        [
            torch.cat([network.embed(part).complexes for part in _batches(complexes)])
            for network in members
        ],
        dim=1,
    )


def _batches(complexes: CellComplex) -> Iterator[CellComplex]:
    if complexes.num_complexes <= AT_ONCE:
        yield complexes
        return
    for first in range(0, complexes.num_complexes, AT_ONCE):
        yield complexes[first : first + AT_ONCE]


def require_same_features(model: Model, featuriser: dict[str, Any], name: str) -> None:
    """Refuse graphs whose feature columns differ in meaning from those of the training."""
    for key in sorted({*model.featuriser, *featuriser}):
        if model.featuriser.get(key) != featuriser.get(key):
            raise InputError(
                f"{name} does not have the features that the model was trained on: {key} differs"
            )
