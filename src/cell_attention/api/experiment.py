"""The preparation of every experiment: its graphs, splits and settings."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from cell_attention.api.configuration import resolve_config
from cell_attention.api.reading import Data, Reading, read_set
from cell_attention.arguments import require
from cell_attention.data.dataset import GraphSet
from cell_attention.data.splits.folds import Splits
from cell_attention.data.splits.options import SplitOptions, SplitRule
from cell_attention.errors import InputError
from cell_attention.models.changes import Grid, check_grid
from cell_attention.models.registry import find_model, fitter
from cell_attention.models.settings import (
    Protocol,
    Settings,
    columns_of,
    data_digest,
    meaning_of,
)
from cell_attention.nn.config import NetworkConfig
from cell_attention.progress import Progress
from cell_attention.training.class_weights import ClassWeights, choose_weights
from cell_attention.training.config import TrainingConfig
from cell_attention.training.metric_choice import choose_metric
from cell_attention.training.tasks import kind_of, untaught_note

Split = SplitRule | SplitOptions
Engine = Literal["processes", "ray"]


@dataclass(frozen=True)
class Experiment:
    """Graphs, their splits, and everything that the result depends on."""

    graph_set: GraphSet
    splits: Splits
    settings: Settings


def plan_experiment(
    data: Data,
    model: str,
    *,
    network: NetworkConfig | Mapping[str, Any] | None,
    training: TrainingConfig | Mapping[str, Any] | None,
    folds: int | Splits,
    split: Split,
    protocol: Protocol | None,
    metric: str | None,
    class_weights: ClassWeights,
    grid: Grid = (),
    search_trials: int = 0,
    reading: Reading,
    progress: Progress,
) -> Experiment:
    """Read, lift and split the data of a cross-validation; refuse data that the model cannot learn.

    protocol: None is the model's usual one.
    """
    require("search_trials", search_trials >= 0, "be at least 0", search_trials)
    entry, options = find_model(model), split_options(split)
    configs = resolve_config(
        model, data, network=network, training=training, descriptors=reading.columns.descriptors
    )
    choices = check_grid(grid, model, configs)
    if class_weights is True and not entry.epochs:
        raise InputError(f"class_weights cannot be used with model {model!r}, which has no loss")
    reading = reading.for_network(data, model, configs[0])
    graph_set = read_set(
        data, configs[0].max_polygon, reading=reading, split=options, progress=progress
    )
    molecules = graph_set.molecules
    if entry.molecules and molecules is None:
        raise InputError(f"model {model!r} needs a file of molecules, got {graph_set.name}")
    if protocol is None:
        protocol = entry.usual_protocol(molecules is not None)
    if choices and protocol != "fair":
        raise InputError(f"grid needs protocol 'fair', which chooses from it, got {protocol!r}")
    graph_set.require_targets()
    splits = options.folds(graph_set, folds, nested=protocol == "fair")
    note_duplicates(graph_set, splits, progress)
    if entry.epochs or entry.molecules:
        chosen, remark = choose_metric(
            metric, graph_set, splits.folds, ranked=molecules is not None
        )
        if remark:
            progress.remark(remark)
    else:
        chosen = metric
    graphs = graph_set.graphs
    note_untaught(graph_set, splits, progress)
    weights = weights_for(class_weights, graph_set, model, metric=chosen, progress=progress)
    settings = Settings(
        graph_set.name, len(graphs), data_digest(graphs), splits.origin, splits.digest, *configs,
        weights, model, protocol, choices, search_trials, chosen, task=graph_set.kind,
        meaning="" if molecules is None else meaning_of(graph_set), columns=columns_of(graph_set),
    )  # fmt: skip
    fitter(model).require(settings, graphs)
    return Experiment(graph_set, splits, settings)


def note_untaught(graph_set: GraphSet, splits: Splits, progress: Progress) -> None:
    """Report target columns from which nothing can be learned, because the training graphs have
    only one value of them.
    """
    if said := untaught_note(graph_set, columns_of(graph_set), splits.folds):
        progress.remark(said)


def weights_for(
    asked: ClassWeights, graph_set: GraphSet, model: str, *, metric: str | None, progress: Progress
) -> ClassWeights:
    """Choose whether classes and labels are weighted, and say so; a model without a loss has no
    weights.
    """
    if not find_model(model).epochs:
        return False
    kind = graph_set.kind or kind_of(graph_set.require_targets())
    chosen, remark = choose_weights(asked, graph_set, kind=kind, metric=metric)
    if remark:
        progress.remark(remark)
    return chosen


def split_options(split: Split) -> SplitOptions:
    """Make options from the name of a rule; options are returned as they are."""
    return split if isinstance(split, SplitOptions) else SplitOptions(split)


def note_duplicates(graph_set: GraphSet, splits: Splits, progress: Progress) -> None:
    """Report duplicates across splits: molecules that are on both sides."""
    if graph_set.molecules is not None and graph_set.molecules.smiles:  # estimators keep none
        from cell_attention.data.molecules.molecule_set import duplicates_across_splits

        for text in duplicates_across_splits(graph_set.molecules, splits.folds):
            progress.remark(text)


@contextmanager
def working_folder(folder: str | Path | None) -> Iterator[Path]:
    """Yield the given folder, or a temporary one that is deleted afterwards."""
    if folder is not None:
        yield Path(folder)
        return
    with TemporaryDirectory(prefix="cell-attention-") as made:
        yield Path(made) / "run"
