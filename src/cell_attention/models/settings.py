"""The settings of a training or a cross-validation: everything that its result depends on."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any, Literal

import torch

from cell_attention._version import __version__
from cell_attention.data.dataset import GraphSet, Kind
from cell_attention.models.registry import defaults, find_model, with_heads
from cell_attention.nn.config import NetworkConfig, tuples
from cell_attention.topology.complex import CellComplex
from cell_attention.training.config import TrainingConfig
from cell_attention.training.tasks import Task, task_of

Protocol = Literal["paper", "fair"]


@dataclass(frozen=True)
class Settings:
    """Everything that the result depends on."""

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
    class_weights: bool = False
    model: str = "can"
    protocol: Protocol = "paper"
    grid: tuple[dict[str, dict[str, Any]], ...] = ()
    """What the configurations that the fair protocol chooses from change, table by table."""
    searched: int = 0
    """Trials of the search over the same graphs that led to the configuration."""
    metric: str | None = None
    """What scores an epoch; None is accuracy for classes and labels, RMSE for values."""
    ensemble: int = 1
    """Networks that are trained alike, from different seeds."""
    task: Kind | None = None
    """What the targets are, where their numbers do not tell."""
    meaning: str = ""
    """SHA-256 of what columns and classes are called, where a model will speak of them."""

    @property
    def leak(self) -> str:
        """What a searched configuration means for every number that it reaches."""
        return search_leak(self.searched)

    def configurations(self) -> list[tuple[NetworkConfig, TrainingConfig]]:
        """What there is to choose from: the one that is named above, or the grid's."""
        entries: tuple[dict[str, dict[str, Any]], ...] = self.grid or ({},)
        return [
            (
                replace(self.network, **tuples(entry.get("network", {}))),
                replace(self.training, **tuples(entry.get("training", {}))),
            )
            for entry in entries
        ]

    def task_on(self, complexes: CellComplex, train: Sequence[int] | None = None) -> Task:
        """What is learned from these graphs, or from all where only its name matters."""
        if train is None:
            everyone = torch.arange(len(complexes))
            return task_of(complexes, everyone, metric=self.metric, kind=self.task)
        seen = torch.tensor(train)
        return task_of(complexes, seen, self.class_weights, self.metric, self.task)

    def record(self) -> dict[str, Any]:
        """As JSON would hold it: of the network what the model reads, of the training the seed
        alone where there are no epochs.
        """
        record: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        model = find_model(self.model)
        record["network"] = {name: record["network"][name] for name in model.reads}
        if not model.epochs:
            record["training"] = {"seed": self.training.seed}
        return record

    def digest(self) -> str:
        """One name for the settings, for files that belong to them."""
        return hashlib.sha256(json.dumps(self.record(), sort_keys=True).encode()).hexdigest()

    @staticmethod
    def of(record: dict[str, Any]) -> "Settings":
        """Back from JSON."""
        parts = dict(record)
        model = record.get("model", "can")
        if model == "can":
            parts["network"] = NetworkConfig.from_record(record["network"])
        else:  # earlier versions wrote down more than the model reads
            given = tuples(record["network"])
            read = {name: given[name] for name in find_model(model).reads}
            usual = defaults(model, "")[0]
            parts["network"] = replace(usual, **with_heads(model, read))
        parts["training"] = TrainingConfig.from_record(record["training"])
        parts["grid"] = tuple(record.get("grid", ()))
        return Settings(**parts)


def search_leak(trials: int) -> str:
    """What a searched configuration means for every number that it reaches."""
    return (
        f"a search of {trials} trials over these graphs chose the configuration; "
        "search --nested gives an honest estimate"
    )


def data_digest(complexes: CellComplex) -> str:
    """SHA-256 of every tensor of the complexes, with its name, type and shape."""
    total = hashlib.sha256(str(complexes.num_complexes).encode())
    for name, value in sorted(complexes.tensors().items()):
        total.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        total.update(value.detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def meaning_of(graph_set: GraphSet) -> str:
    """SHA-256 of what the columns and classes of a set are called."""
    names = [graph_set.class_names, graph_set.target_names, graph_set.featuriser]
    return hashlib.sha256(json.dumps(names, sort_keys=True).encode()).hexdigest()


def versions(model: str = "can", *more: str) -> dict[str, str]:
    """Of this program and of what the bits of a result depend on, `more` packages among it."""
    usual = ("torch", "numpy", "numba", "scikit-learn")
    names = (*usual, *find_model(model).packages, *more)
    return {"cell-attention": __version__, **{name: version(name) for name in names}}


def leaves(old: Any, new: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """The leaves of two records side by side."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            leaf
            for key in sorted({*old, *new})
            for leaf in leaves(old.get(key), new.get(key), f"{name}.{key}".strip("."))
        ]
    return [(name, old, new)]
