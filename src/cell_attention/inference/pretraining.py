"""Pretraining: a plan whose networks learn to predict masked cells, and whose model predicts
nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch

from cell_attention.data.dataset import GraphSet
from cell_attention.inference.fit import TrainingPlan
from cell_attention.inference.model_folder import Model
from cell_attention.inference.seen import seen_in
from cell_attention.models.registry import build_network, sizes_of
from cell_attention.models.settings import versions
from cell_attention.models.timing import time_epoch
from cell_attention.nn.masked import MaskedNetwork
from cell_attention.training.loop import Training
from cell_attention.training.masked_loop import MaskedTraining

LEARNED = ("start", "lift", "norms", "attention", "layers", "pool")
"""The parts of a network that predict a masked cell: neither the head nor the counts."""


@dataclass(frozen=True)
class PretrainingPlan(TrainingPlan):
    """The settings of a pretraining, and its graphs."""

    def training(self, member: int) -> MaskedTraining:
        """Set up the pretraining, before its first epoch."""
        settings, fold, graphs = self.settings, self.fold, self.graph_set.graphs
        sizes = sizes_of(settings.model, graphs, 1)
        return MaskedTraining(
            graphs, fold.train, fold.validation, training=settings.training,
            seed=(settings.training.seed,), mask=settings.mask,
            build=lambda: cast(Any, build_network(settings.model, settings.network, sizes)),
        )  # fmt: skip

    def warm_up(self) -> None:
        """Do one small step, so that kernels are compiled."""
        training, few = self._small(2)
        training.step(self.graph_set.graphs[few])
        training.evaluate(few)

    def epoch_seconds(self) -> float:
        """Estimate the seconds of an epoch from one step."""
        size = self.settings.training.batch_size
        training, some = self._small(size)
        batch = self.graph_set.graphs[some]
        return time_epoch(
            lambda: training.step(batch), lambda: training.evaluate(some),
            len(self.fold.train) / some.numel(),
        )  # fmt: skip

    def _small(self, count: int) -> tuple[MaskedTraining, torch.Tensor]:
        """Set up a pretraining to try, and choose some graphs for it."""
        training = self.training(0)
        return training, training.train[:count]

    def model(self, trainings: Sequence[Training], digest: str) -> Model:
        """Make the model: the network without the heads that predicted masked cells."""
        (training,) = cast(Sequence[MaskedTraining], trainings)
        settings, fold, graph_set = self.settings, self.fold, self.graph_set
        network = cast(MaskedNetwork, training.result.eval()).network
        held_out = torch.tensor(fold.validation)
        guessed, reached = training.guessed(held_out), training.evaluate(held_out)
        own = {name for name, child in network.named_children() if [*child.parameters()]}
        provenance: dict[str, Any] = {
            "settings": digest,
            **settings.record(),
            "epochs": training.epochs_done,
            "best_epoch": training.kept_epoch,
            "score": "accuracy in %",
            "versions": versions(settings.model),
            "learned": sorted(own.intersection(LEARNED)),
            "masked": {
                each.rank: {
                    "values": each.values, "cells": each.cells, "accuracy": each.accuracy,
                    "most_frequent": each.most_frequent,
                }
                for each in guessed
            },
            "reached": {
                "train": None,
                "validation": {
                    "graphs": len(fold.validation), "loss": reached.loss, "score": reached.score,
                    "metrics": {},
                },
                "test": None,
            },
        }  # fmt: skip
        del provenance["network"]  # it has its own entry in config.json
        return Model(
            (network,), "none", (), graph_set.featuriser, provenance,
            seen=seen_in(graph_set, fold.train), name=settings.model, config=settings.network,
            sizes=sizes_of(settings.model, graph_set.graphs, 1),
        )  # fmt: skip


def without_targets(graph_set: GraphSet) -> GraphSet:
    """Return a data set without targets and without features of whole complexes, which no masked
    cell is predicted from.
    """
    graphs = replace(graph_set.graphs, targets=None, target_bounds=None, complex_features=None)
    return replace(graph_set, graphs=graphs, class_names=(), target_names=(), kind=None)
