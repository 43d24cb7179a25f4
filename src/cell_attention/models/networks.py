"""Networks of the registry: built by name, trained for some epochs, fitted to a fold."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cell_attention.errors import InputError
from cell_attention.models.fitting import FoldTask
from cell_attention.models.registry import find_model
from cell_attention.models.settings import Settings
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.parts import load_name
from cell_attention.topology.complex import CellComplex
from cell_attention.training.config import TrainingConfig
from cell_attention.training.loop import Training
from cell_attention.training.tasks import Task, task_of


def sizes_of(name: str, graphs: CellComplex, outputs: int) -> dict[str, int]:
    """Return the sizes that a network is built with, by the names of its arguments."""
    edges = graphs.edge_features
    sizes = {
        "node_features": graphs.node_features.size(1),
        "edge_features": 0 if edges is None else edges.size(1),
        "outputs": outputs,
    }
    more = find_model(name).sizes
    return {**sizes, **load_name(more)(graphs)} if more else sizes


def build_network(name: str, config: NetworkConfig, sizes: dict[str, int]) -> nn.Module:
    """Build a network by its name; it maps a CellComplex to (num_complexes, outputs)."""
    entry = find_model(name)
    if not entry.epochs:
        raise InputError(f"model must be a network that is trained in epochs, got {name!r}")
    network: nn.Module = entry.load()(config, **sizes)
    return network


def start_training(
    complexes: CellComplex,
    train: Sequence[int],
    watched: Sequence[int],
    task: Task,
    network: NetworkConfig,
    training: TrainingConfig,
    seed: tuple[int, ...],
    keep_best: bool = False,
    model: str = "can",
) -> Training:
    """Set up the training of a network of the registry, before its first epoch."""
    sizes = sizes_of(model, complexes, task.outputs)
    return Training(
        complexes, train, watched, task, lambda: build_network(model, network, sizes), training,
        seed, keep_best,
    )  # fmt: skip


class ScaledOutputs(nn.Module):
    """A network trained on standardised values, with outputs in the original units."""

    centre: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, outputs: int) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("centre", torch.zeros(outputs))
        self.register_buffer("scale", torch.ones(outputs))

    def forward(self, complexes: CellComplex) -> Tensor:
        """Return (num_complexes, outputs) in the units of the targets."""
        outputs: Tensor = self.network(complexes)
        return outputs * self.scale + self.centre

    def rescale_outputs(self, scale: Tensor, centre: Tensor) -> None:
        """Set the units of the outputs."""
        self.scale.copy_(scale)
        self.centre.copy_(centre)


def predicting_network(
    name: str, config: NetworkConfig, sizes: dict[str, int], values: bool
) -> nn.Module:
    """Build a network to load trained weights into; values come out in their own units."""
    network = build_network(name, config, sizes)
    if values and not hasattr(network, "rescale_outputs"):
        return ScaledOutputs(network, sizes["outputs"])
    return network


def in_units(training: Training) -> nn.Module:
    """Return the network of a finished training, with outputs in the units of the targets."""
    network, task = training.network.eval(), training.task
    if task.centre is None or task.scale is None:
        return network
    if not hasattr(network, "rescale_outputs"):
        network = ScaledOutputs(network, task.outputs).eval()
    network.rescale_outputs(task.scale, task.centre)  # type: ignore[operator]
    return network


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
            task.complexes, train, watched, settings.task_on(task.complexes, train),
            settings.network, settings.training, task.seed, task.stage != "curve", self.name,
        )  # fmt: skip

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Return the curves; for a choice or a rerun also its best epoch, for a rerun its test."""
        training = self.training(task)
        training.complete(task.checkpoint, task.digest, task.checkpoint_seconds, task.report)
        found: dict[str, Any] = {**training.curves.record()}
        if task.stage != "curve":
            found["epoch"] = training.curves.best_epoch
        if task.stage == "rerun":
            training.take_best()
            found["test"] = training.evaluate(torch.tensor(task.fold.test)).score
        return found


def warm_up(settings: Settings, complexes: CellComplex) -> None:
    """Do one small step, so that kernels are compiled once, here, and not in every process."""
    if not find_model(settings.model).epochs:
        return
    edges = complexes.edge_complex.bincount(minlength=len(complexes))
    few = edges.topk(min(2, len(complexes))).indices
    graphs = few.tolist()
    training = start_training(
        complexes, graphs, graphs, task_of(complexes, few, kind=settings.task), settings.network,
        settings.training, (0,), model=settings.model,
    )  # fmt: skip
    training.network(complexes[few]).sum().backward()
    training.outputs(few)
