"""Networks of the registry: trained in epochs, fitted to a fold."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from cell_attention.models.fitting import FoldTask
from cell_attention.models.registry import build_network, sizes_of
from cell_attention.models.scaled_outputs import ScaledOutputs
from cell_attention.models.settings import Settings
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.colours import rounds_in_common
from cell_attention.topology.complex import CellComplex
from cell_attention.training.config import TrainingConfig
from cell_attention.training.loop import Training
from cell_attention.training.start import Start
from cell_attention.training.tasks import Task, task_of

IN_COMMON = 0.2
"""Share of the nodes of training graphs whose surroundings another of these graphs must have, for
their counts to be read: what each graph has for itself can only be learned by heart."""


def start_training(
    complexes: CellComplex,
    train: Sequence[int],
    watched: Sequence[int],
    *,
    task: Task,
    network: NetworkConfig,
    training: TrainingConfig,
    seed: tuple[int, ...],
    keep_best: bool = False,
    model: str = "can",
    start: Start = Start(),  # noqa: B008 - frozen, so sharing one is safe
    sample_weights: Tensor | None = None,
) -> Training:
    """Set up the training of a network of the registry, before its first epoch."""
    sizes = sizes_of(model, complexes, task.outputs)
    if model == "can" and network.design == "ranks" and network.counts and not start.weights:
        rounds = rounds_in_common(complexes[torch.tensor(train)], network.counts, IN_COMMON)
        network = replace(network, counts=rounds)
    return Training(
        complexes, train, watched, task=task, training=training, seed=seed, keep_best=keep_best,
        build=lambda: build_network(model, network, sizes), start=start,
        sample_weights=sample_weights,
    )  # fmt: skip


class NetworkFitter:
    """Trains a network on a fold; an interrupted fit resumes with exactly the same numbers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Accept everything that has targets."""

    def training(self, task: FoldTask) -> Training:
        """Set up the training of a fit, before its first epoch."""
        settings, fold = task.settings, task.fold
        train, watched = fold.train, fold.validation
        if task.stage == "curve":
            train, watched = fold.rest, fold.held_out
        return start_training(
            task.complexes, train, watched, task=settings.task_on(task.complexes, train),
            network=settings.network, training=settings.training, seed=task.seed,
            keep_best=task.stage != "curve", model=self.name,
        )  # fmt: skip

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Return the curves; for a choice or a rerun also its best epoch, for a rerun its test."""
        training = self.training(task)
        training.complete(
            task.checkpoint, task.digest, seconds=task.checkpoint_seconds, report=task.report
        )
        found: dict[str, Any] = {**training.curves.record()}
        if task.stage != "curve":
            found["epoch"] = training.kept_epoch
        if task.stage == "rerun":
            training.take_best()
            held = torch.tensor(task.fold.test)
            found["test"] = training.evaluate(held).score
            if task.settings.columns:
                found["columns"] = training.column_scores(held)
        return found


def warm_up(settings: Settings, complexes: CellComplex) -> None:
    """Do one small step, so that kernels are compiled once, here, and not in every process."""
    if settings.epochs is None:
        return
    edges = complexes.edge_complex.bincount(minlength=len(complexes))
    few = edges.topk(min(2, len(complexes))).indices
    graphs = few.tolist()
    complexes = replace(complexes, target_bounds=None)  # two bounds alone cannot be scored
    training = start_training(
        complexes, graphs, graphs, task=task_of(complexes, few, kind=settings.task),
        network=settings.network, training=settings.training, seed=(0,), model=settings.model,
    )  # fmt: skip
    training.network(complexes[few]).sum().backward()
    training.outputs(few)


def in_units(training: Training) -> nn.Module:
    """Return the network of a finished training, with outputs in the units of the targets."""
    network, task = training.result.eval(), training.task
    training.start.release(network)
    if task.centre is None or task.scale is None:
        return network
    if not hasattr(network, "rescale_outputs"):
        network = ScaledOutputs(network, task.outputs).eval()
    network.rescale_outputs(task.scale, task.centre)  # type: ignore[operator]
    return network
