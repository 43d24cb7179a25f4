"""`fit_cells`: train a network that predicts nodes, edges or polygons."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from cell_attention.arguments import checked
from cell_attention.errors import InputError
from cell_attention.models.changes import changed
from cell_attention.nn.cell_predictor import CellPredictor, Cells, num_cells
from cell_attention.nn.config import NetworkConfig
from cell_attention.progress import Progress
from cell_attention.topology.complex import CellComplex
from cell_attention.training.cell_training import CellTraining, mask_of, require_targets
from cell_attention.training.config import TrainingConfig
from cell_attention.training.tasks import Task, task_of
from cell_attention.training.threads import one_thread


@dataclass(frozen=True)
class FittedCells:
    """A trained network for cells, and what it reached."""

    network: CellPredictor
    """In evaluation mode, with the weights of the best epoch."""
    task: Task
    epochs: int
    """Number of epochs that were done."""
    best_epoch: int
    scores: dict[str, float]
    """The score on the cells of every part; higher is better."""

    @torch.no_grad()
    def predict(self, graphs: Any) -> Tensor:
        """Return (cells, ·) probabilities of classes or labels, or values in their own units."""
        return self.task.predictions(self.network(graphs).double())


@checked
def fit_cells(
    complexes: CellComplex,
    targets: Any,
    *,
    train: Any,
    validation: Any,
    test: Any = None,
    cells: Cells = "edges",
    network: NetworkConfig | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    metric: str | None = None,
    class_weights: bool = False,
    progress: Progress | None = None,
) -> FittedCells:
    """Train a network on targets of cells; the validation cells choose the epoch.

    targets: (cells,) classes, or (cells, ·) labels or values, in the order of the complexes' nodes,
        edges or polygons.
    train, validation, test: masks (cells,), or the rows of the cells. The network sees the features
        of all cells, but the targets of the training cells only.
    """
    count = num_cells(complexes, cells)
    known = require_targets(targets, complexes, cells)
    given = {"train": train, "validation": validation, **({} if test is None else {"test": test})}
    parts = {name: mask_of(name, part, count) for name, part in given.items()}
    if bool((torch.stack(list(parts.values())).sum(0) > 1).any()):
        raise InputError("train, validation and test must not share a cell")
    for name, mask in parts.items():
        if not bool(mask.any()):
            raise InputError(f"{name} must hold at least one cell")
        if not known.is_floating_point() and int(known[mask].min()) < 0:
            raise InputError(f"{name} has a cell without a class (a negative number)")
    used = torch.stack(list(parts.values())).any(0)
    task = task_of(
        known[used], parts["train"][used].nonzero().flatten(), class_weights=class_weights,
        metric=metric,
    )  # fmt: skip
    config, loop = _config(NetworkConfig(), network), _config(TrainingConfig(), training)
    features = complexes.edge_features
    build = partial(
        CellPredictor, config, complexes.node_features.size(1),
        0 if features is None else features.size(1), task.outputs, cells=cells,
    )  # fmt: skip
    epochs = loop.for_graphs(len(complexes)).epochs
    with one_thread(), (progress or Progress()).jobs(1, epochs) as tell:
        made = CellTraining(
            complexes, known, cells=cells, parts=parts, task=task, build=build, training=loop,
            seed=(loop.seed,),
        )  # fmt: skip
        made.complete(None, "", seconds=0.0, report=partial(tell, "training"))
        made.take_best()
        everyone = torch.arange(len(complexes))
        scores = {name: made.evaluate_part(name, everyone).score for name in parts}
    result = made.result.eval()
    return FittedCells(result, task, made.epochs_done, made.curves.best_epoch, scores)  # type: ignore[arg-type]


def _config(usual: Any, given: Any) -> Any:
    """Return a whole configuration, or the usual one with changes."""
    name = "network" if isinstance(usual, NetworkConfig) else "training"
    if given is None or isinstance(given, Mapping):
        return changed(usual, given or {}, name)
    if not isinstance(given, type(usual)):
        raise InputError(f"{name} must be a {type(usual).__name__}, got {given!r:.60}")
    return given
