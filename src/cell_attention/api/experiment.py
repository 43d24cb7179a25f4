"""The preparation of every experiment: its configuration, graphs, splits and settings."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from cell_attention.arguments import require
from cell_attention.data.dataset import GraphSet
from cell_attention.data.file_format import (
    COUNTED,
    USUAL_DESCRIPTORS,
    Columns,
    FileFormat,
    OnError,
    is_molecule_file,
)
from cell_attention.data.sources import lift_set, read_source
from cell_attention.data.splits.folds import Splits
from cell_attention.data.splits.options import SplitOptions, SplitRule
from cell_attention.errors import InputError
from cell_attention.models.changes import Grid, changed, check_grid
from cell_attention.models.registry import (
    Configs,
    defaults,
    find_model,
    fitter,
    require_read,
    with_heads,
)
from cell_attention.models.settings import (
    Protocol,
    Settings,
    columns_of,
    data_digest,
    meaning_of,
)
from cell_attention.nn.config import NetworkConfig
from cell_attention.progress import Progress
from cell_attention.topology.complex import CellComplex
from cell_attention.training.class_weights import ClassWeights, choose_weights
from cell_attention.training.config import TrainingConfig
from cell_attention.training.metric_choice import choose_metric
from cell_attention.training.tasks import kind_of, untaught_note

Data = str | Path | GraphSet | CellComplex
"""A SOURCE of the command line, a GraphSet read from one, or complexes with targets."""
Split = SplitRule | SplitOptions
Engine = Literal["processes", "ray"]


@dataclass(frozen=True)
class Experiment:
    """Graphs, their splits, and everything that the result depends on."""

    graph_set: GraphSet
    splits: Splits
    settings: Settings


@dataclass(frozen=True)
class Reading:
    """How a SOURCE is read; the arguments of `load_dataset`."""

    on_error: OnError = "fail"
    data_dir: str | Path | None = None
    node_attributes: bool = False
    columns: Columns = Columns()  # noqa: RUF009 - frozen, so sharing one is safe
    file_format: FileFormat = FileFormat()  # noqa: RUF009 - frozen, so sharing one is safe

    def for_network(
        self, data: Data, model: str, network: NetworkConfig,
        *, usual: Sequence[str] = USUAL_DESCRIPTORS,
    ) -> "Reading":  # fmt: skip
        """Choose the usual descriptors of molecules for a network that reads them, and none for
        others; refuse those that a model would ignore.
        """
        reads = model == "can" and network.design == "ranks"
        stated = self.columns.descriptors
        if stated is None:
            if not reads or isinstance(data, GraphSet | CellComplex) or not is_molecule_file(data):
                return self
            return replace(self, columns=replace(self.columns, descriptors=usual))
        if not reads and not set(stated) <= {"none"}:
            what = "design 'paper'" if model == "can" else f"model {model!r}"
            raise InputError(f"{what} does not use descriptors, got {', '.join(stated)}")
        return self

    def read(self, data: Data, split: SplitOptions, progress: Progress) -> GraphSet:
        """Read a SOURCE; a set that was read before is returned as it is."""
        if isinstance(data, GraphSet | CellComplex):
            if replace(self, on_error="fail") != Reading():
                names = "data_dir, node_attributes, columns and file_format"
                raise InputError(f"{names} are for a SOURCE, and not for graphs that were read")
            return data if isinstance(data, GraphSet) else GraphSet("graphs", data)
        columns = replace(self.columns, split=split.column or self.columns.split)
        with progress.bar(f"Reading {data}") as report:
            return read_source(
                data, self.data_dir, node_attributes=self.node_attributes,
                on_error=self.on_error, columns=columns, file_format=self.file_format,
                progress=report,
            )  # fmt: skip


def read_set(
    data: Data, max_polygon: int, *, reading: Reading, split: SplitOptions, progress: Progress
) -> GraphSet:
    """Read and lift the graphs; complexes are used as they are."""
    graph_set = reading.read(data, split, progress)
    if isinstance(data, CellComplex):
        return replace(graph_set, max_polygon=max_polygon)
    if graph_set.max_polygon is None:
        graph_set = lift_set(graph_set, max_polygon, on_error=reading.on_error)
    for text in graph_set.notes:
        progress.note(text)
    for text in graph_set.remarks:
        progress.remark(text)
    return graph_set


def resolve_config(
    model: str,
    data: Data,
    *,
    network: NetworkConfig | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    origin: NetworkConfig | None = None,
    descriptors: Sequence[str] | None = None,
) -> Configs:
    """Combine the model's defaults for these data with the given configurations.

    A mapping changes single fields; from a complete NetworkConfig a rival uses only the fields that
    it reads. Graphs that are already lifted set `max_polygon`, unless it is stated.

    origin: the network of a model to start from, which takes the place of the default.
    descriptors: the words of `Columns.descriptors`, some of which turn on the counts.
    """
    for name, given, kind in (
        ("network", network, NetworkConfig), ("training", training, TrainingConfig),
    ):  # fmt: skip
        if given is not None and not isinstance(given, kind | Mapping):
            rule = f"must be a {kind.__name__} or a mapping of its fields"
            raise InputError(f"{name} {rule}, got {given!r:.40}")
    given_source = data.name if isinstance(data, GraphSet) else data
    source = "" if isinstance(given_source, CellComplex) else str(given_source)
    usual = defaults(model, source, _design(network, origin))
    if origin is not None:
        usual = (origin, usual[1])
    if isinstance(network, NetworkConfig) and model == "can":
        made = network
    elif isinstance(network, NetworkConfig):
        read = {name: getattr(network, name) for name in find_model(model).reads}
        made = replace(usual[0], **with_heads(model, read))
    else:
        made = changed(usual[0], with_heads(model, dict(network or {})), "network")
    if set(descriptors or ()) & set(COUNTED) and made.design == "ranks" and origin is None:
        made = replace(made, counts=made.counts or NetworkConfig.counts)
    schedule = training
    if not isinstance(schedule, TrainingConfig):
        schedule = changed(usual[1], schedule or {}, "training")
    require_read(model, (made, schedule), usual)
    stated = isinstance(network, NetworkConfig) or "max_polygon" in (network or {})
    if "max_polygon" in find_model(model).reads:
        made = _as_lifted(made, data, stated)
    return made, schedule


def _as_lifted(network: NetworkConfig, data: Data, stated: bool) -> NetworkConfig:
    """Return the configuration with the `max_polygon` of graphs that are already lifted; refuse
    another one if it is stated. Of complexes only the largest polygon is known.
    """
    found, what = network.max_polygon, ""
    if isinstance(data, GraphSet) and data.max_polygon is not None:
        found, what = data.max_polygon, f"are lifted with {data.max_polygon}"
    elif isinstance(data, CellComplex) and data.num_polygons:
        found = max(found, int(data.polygon_sizes.max()))
        what = f"have polygons of {found} nodes"
    if stated and found != network.max_polygon:
        raise InputError(
            f"max_polygon must fit the graphs, which {what}, got {network.max_polygon}; lift them "
            f"again or set max_polygon={found}"
        )
    return replace(network, max_polygon=found)


def _design(
    network: NetworkConfig | Mapping[str, Any] | None, origin: NetworkConfig | None = None
) -> str:
    """Return the design whose defaults complete a configuration."""
    if isinstance(network, NetworkConfig):
        return network.design
    usual = NetworkConfig.design if origin is None else origin.design
    return str((network or {}).get("design", usual))


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
