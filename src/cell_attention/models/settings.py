"""The settings of a training or a cross-validation: everything that its result depends on."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any, Literal

import torch
from torch import Tensor

from cell_attention._version import __version__
from cell_attention.arguments import completed, record_of, tuples
from cell_attention.data.dataset import GraphSet
from cell_attention.data.file_format import Kind
from cell_attention.models.registered import code_digests
from cell_attention.models.registry import defaults, find_model, with_heads
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.complex import CellComplex
from cell_attention.training.class_weights import ClassWeights
from cell_attention.training.config import TrainingConfig
from cell_attention.training.tasks import Task, task_of

Protocol = Literal["paper", "fair"]
LATER_FIELDS = (("attention_layer", "pooling_layer"),)
"""Fields of NetworkConfig that were added to it later, the latest first; add every new one."""
_LEFT_OUT = ("origin", "freeze", "columns", "mask")
"""Fields that are left out of the record where they are empty."""


@dataclass(frozen=True)
class Settings:
    """Everything that a result depends on."""

    source: str
    graphs: int
    data: str
    """SHA-256 of the complexes."""
    splits: str
    """Where the folds come from."""
    folds: str
    """SHA-256 of the folds."""
    network: NetworkConfig
    training: TrainingConfig
    class_weights: ClassWeights = False
    model: str = "can"
    protocol: Protocol = "paper"
    grid: tuple[dict[str, dict[str, Any]], ...] = ()
    """The configurations that the fair protocol chooses from, as changes of `network` and
    `training`."""
    searched: int = 0
    """Number of trials of the search over the same graphs that chose the configuration."""
    metric: str | None = None
    """The metric that scores an epoch; None is accuracy for classes and labels, RMSE for values."""
    ensemble: int = 1
    """Number of networks, which differ in their seed."""
    task: Kind | None = None
    """The kind of targets, where it cannot be inferred from their numbers."""
    meaning: str = ""
    """SHA-256 of the names of columns and classes, where a model stores them."""
    origin: str = ""
    """SHA-256 of the weights that the training starts from, if it starts from those of a model."""
    freeze: tuple[str, ...] = ()
    """The parts of the network that keep these weights."""
    columns: tuple[str, ...] = ()
    """Names of the target columns, where there are several labels or values."""
    mask: float = 0.0
    """Share of the cells that are masked in a pretraining, without targets; 0 if it is none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "training", self.training.for_graphs(self.graphs))

    @property
    def epochs(self) -> int | None:
        """Number of epochs of a training; None if the model is not trained in epochs."""
        return self.training.epochs if find_model(self.model).epochs else None

    @property
    def row(self) -> str:
        """The name of the model in tables; the paper's design has a row of its own, and so has the
        network on every rank without one of its branches.
        """
        network = self.network
        if self.model != "can":
            return self.model
        if network.design == "paper":
            return "can-paper"
        if not network.counts and not self.meaning:
            return "can-no-counts"
        return "can" if network.composition else "can-no-composition"

    @property
    def leak(self) -> str:
        """The warning about results of a configuration that a search chose."""
        return search_leak(self.searched)

    def configurations(self) -> list[tuple[NetworkConfig, TrainingConfig]]:
        """Return the configurations to choose from: those of the grid, or the single one above."""
        entries: tuple[dict[str, dict[str, Any]], ...] = self.grid or ({},)
        return [
            (
                replace(self.network, **tuples(entry.get("network", {}))),
                replace(self.training, **tuples(entry.get("training", {}))),
            )
            for entry in entries
        ]

    def task_on(self, complexes: CellComplex, train: Sequence[int] | None = None) -> Task:
        """Make the task from these training graphs, or from all if only its name matters."""
        if train is None:
            everyone = torch.arange(len(complexes))
            return task_of(complexes, everyone, metric=self.metric, kind=self.task)
        seen = torch.tensor(train)
        return task_of(
            complexes, seen, class_weights=self.class_weights, metric=self.metric, kind=self.task
        )

    def record(self) -> dict[str, Any]:
        """Return the settings as JSON: of the network only the fields that the model reads, of the
        training only the seed if there are no epochs.
        """
        record: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        network, reads = record_of(self.network), find_model(self.model).reads
        record["network"] = {name: network[name] for name in reads if name in network}
        record["training"] = record_of(self.training)
        for name in _LEFT_OUT:  # runs without them keep the digest that they always had
            if not record[name]:
                del record[name]
        if self.epochs is None:
            record["training"] = {"seed": self.training.seed}
        return record

    def digest(self) -> str:
        """Return the SHA-256 of the settings, which marks the files that belong to them."""
        return self.digests()[0]

    def digests(self) -> tuple[str, ...]:
        """Return the SHA-256 of the settings in this version and in all earlier ones that could
        have had them: without the fields that they lacked, if these have their defaults.
        """
        record = self.record()
        found = [_digest(record)]
        if self.columns and self.task == "labels":  # of values, earlier versions did not scale
            found.append(_digest({k: v for k, v in record.items() if k != "columns"}))
        for names in LATER_FIELDS:
            network = record["network"]
            read = [name for name in names if name in network]
            if any(network[name] != getattr(NetworkConfig, name) for name in read):
                break
            if read:
                record["network"] = {name: network[name] for name in network if name not in read}
                found.append(_digest(record))
        return tuple(found)

    @staticmethod
    def of(record: dict[str, Any]) -> "Settings":
        """Make settings from their JSON record."""
        parts = dict(record)
        model = record.get("model", "can")
        if model == "can":
            parts["network"] = NetworkConfig.from_record(record["network"])
        else:  # earlier versions recorded more than the model reads
            given = completed(NetworkConfig, record["network"])
            read = {name: given[name] for name in find_model(model).reads}
            usual = defaults(model, "")[0]
            parts["network"] = replace(usual, **with_heads(model, read))
        parts["training"] = TrainingConfig.from_record(record["training"])
        parts["grid"] = tuple(record.get("grid", ()))
        parts["freeze"] = tuple(record.get("freeze", ()))
        parts["columns"] = tuple(record.get("columns", ()))
        return Settings(**parts)


def _digest(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def search_leak(trials: int) -> str:
    """Return the warning about results of a configuration that a search chose."""
    return (
        f"a search of {trials} trials over these graphs chose the configuration; "
        "search --nested gives an honest estimate"
    )


def data_digest(complexes: CellComplex, sample_weights: Tensor | None = None) -> str:
    """Return the SHA-256 of all tensors of the complexes, with their names, types and shapes; and
    of the weights of the complexes, if they have any.
    """
    total = hashlib.sha256(str(complexes.num_complexes).encode())
    named = sorted(complexes.tensors().items())
    if sample_weights is not None:
        named.append(("sample_weights", sample_weights))
    for name, value in named:
        total.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        total.update(value.detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def meaning_of(graph_set: GraphSet) -> str:
    """Return the SHA-256 of the names of the columns and classes of a data set."""
    names = [graph_set.class_names, graph_set.target_names, graph_set.featuriser]
    return hashlib.sha256(json.dumps(names, sort_keys=True).encode()).hexdigest()


def columns_of(graph_set: GraphSet) -> tuple[str, ...]:
    """Return the names of the target columns, numbers if they have none; empty if there is one."""
    targets = graph_set.graphs.targets
    count = targets.size(1) if targets is not None and targets.dim() == 2 else 1
    if count == 1:
        return ()
    return graph_set.target_names or tuple(str(number) for number in range(count))


def versions(model: str = "can", *more: str) -> dict[str, str]:
    """Return the versions of this program and of the packages that results depend on, and the
    SHA-256 of files with models and parts of the user's own.
    """
    usual = ("torch", "numpy", "numba", "scikit-learn")
    names = (*usual, *find_model(model).packages, *more)
    found = {name: version(name) for name in names}
    return {"cell-attention": __version__, **found, **code_digests()}


def leaves(old: Any, new: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Return (name, old, new) of every leaf of two records."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            leaf
            for key in sorted({*old, *new})
            for leaf in leaves(old.get(key), new.get(key), f"{name}.{key}".strip("."))
        ]
    return [(name, old, new)]
