"""A MODEL_DIR: the weights of a trained network and everything needed to use it.

`config.json` is written last and holds the SHA-256 of the weights, so an incomplete folder is
refused. No file in it is code. `config.json` and `model.safetensors` are Hugging Face's names.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast, get_args

from safetensors import SafetensorError
from torch import Tensor, nn

from cell_attention._files import read_versioned
from cell_attention.arguments import checked
from cell_attention.data.file_format import Kind
from cell_attention.errors import DataError, InputError, SourceNotFoundError
from cell_attention.inference.model_record import (
    Margin,
    Range,
    file_of,
    read_weights,
    require_consistent,
    seen_from,
    values_from,
)
from cell_attention.inference.neighbours import FILE, Neighbours, load_neighbours
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.nn.parts import PARTS

FORMAT = 3
CONFIG, WEIGHTS = "config.json", "model.safetensors"
SPLITS, METRICS = "splits.json", "metrics.jsonl"
FILES = (CONFIG, WEIGHTS, SPLITS, METRICS, FILE)
MOST_MEMBERS = 1000
MOST_LAYERS = 1000
_SINCE_2: dict[str, Any] = {
    "members": 1, "weights": WEIGHTS, "target_names": [], "thresholds": [], "seen": {},
}  # fmt: skip
"""Entries that format 2 added, with their meaning for models of format 1."""
_OPTIONAL: dict[str, Any] = {"ranges": [], "margins": [], "neighbours": None, "temperatures": []}
"""Entries that a model of any format may lack."""
_SIZES = ("node_features", "edge_features", "outputs")


@dataclass(frozen=True)
class Model:
    """A trained network or an ensemble of several, and what their outputs mean."""

    members: tuple[nn.Module, ...]
    """The networks; one, or those of an ensemble."""
    task: Kind | Literal["none"]
    """What it predicts; "none" after a pretraining, which leaves nothing to predict with."""
    labels: tuple[str, ...]
    """Name of every class as in the source; empty if the task is not classes."""
    featuriser: dict[str, Any]
    """Describes the columns of the features."""
    provenance: dict[str, Any]
    """The data, the settings and the scores of the training."""
    target_names: tuple[str, ...] = ()
    """Names of the columns that it predicts, if they have names."""
    thresholds: tuple[float, ...] = ()
    """The lowest probability at which each label, or the second of two classes, is predicted."""
    seen: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """What was in the training graphs, as far as it is known: the lists of `model_record.LISTS`."""
    name: str = "can"
    """Name of the network in the registry."""
    config: NetworkConfig = field(default=cast(Any, None))
    """Configuration of the network; by default `network.config` of a cell attention network."""
    sizes: dict[str, int] = field(default_factory=dict)
    """`node_features`, `edge_features`, `outputs`, and further sizes that the network needs."""
    ranges: tuple[Range, ...] = ()
    """The training range of every column of values, if they are known."""
    margins: tuple[Margin, ...] = ()
    """Half of the width of the interval around the predicted value of every column."""
    neighbours: Neighbours | None = None
    """The fingerprints of the training molecules, if they are known."""
    temperatures: tuple[float, ...] = ()
    """What the logarithms of the probabilities are divided by: one number for classes, one per
    label. Empty for values, and for models of earlier versions, which have none."""

    def __post_init__(self) -> None:
        # A cell attention network has both as attributes; for other networks they must be given.
        network, given = cast(Any, self.members[0]), cast(Any, self.config)
        if given is None:
            object.__setattr__(self, "config", network.config)
        if not self.sizes:
            sizes = {name: getattr(network, name) for name in _SIZES}
            if getattr(network, "complex_features", 0):
                sizes["complex_features"] = network.complex_features
            object.__setattr__(self, "sizes", sizes)

    @property
    def network(self) -> nn.Module:
        """The first member; the only one unless it is an ensemble."""
        return self.members[0]

    @property
    def outputs(self) -> int:
        """Number of classes, labels or values that are predicted."""
        return self.sizes["outputs"]

    @property
    def target_columns(self) -> tuple[str, ...]:
        """One name per column of targets; numbers, or "", if they have no names."""
        if self.target_names:
            return self.target_names
        count = 1 if self.task == "classes" else self.outputs
        return ("",) if count == 1 else tuple(str(number) for number in range(count))

    @property
    def truth_names(self) -> tuple[str, ...]:
        """The columns of a source that may hold the true targets."""
        return tuple(name or "truth" for name in self.target_columns)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes; numbers, if they have no names."""
        return self.labels or tuple(str(number) for number in range(self.outputs))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors` into a folder."""
        from cell_attention.inference.model_saving import save_model

        Path(folder).mkdir(parents=True, exist_ok=True)
        save_model(Path(folder), self)

    @staticmethod
    def from_pretrained(folder: str | Path) -> "Model":
        """Load what `save_pretrained` or `cell-attention train` wrote; nothing is downloaded."""
        return load_model(folder)


@checked
def load_model(folder: str | Path) -> Model:
    """Load the model of a MODEL_DIR, in evaluation mode; refuse an incomplete one."""
    folder = Path(folder)
    path = folder / CONFIG
    if not path.is_file():
        raise SourceNotFoundError(f"{folder} is not a MODEL_DIR: {CONFIG} is missing")
    record = read_versioned(path, FORMAT)
    if record["format"] < 1:
        raise DataError(f"{path}: format must be at least 1, got {record['format']}")
    if record["format"] == 1:
        record = {**_SINCE_2, **record}
    if record["format"] < 3:
        sizes = {name: record.pop(name, None) for name in _SIZES}
        record = {**record, "model": "can", "sizes": sizes}
    weights = file_of(folder, record.get("weights"))
    try:
        return _model(path, {**_OPTIONAL, **record}, weights)
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise DataError(f"{path}: not a valid description of a model ({error})") from None
    except (SafetensorError, RuntimeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        text = " ".join(str(error).split())
        raise DataError(f"{weights}: the weights do not fit {CONFIG} ({text:.200})") from None


def _model(path: Path, record: dict[str, Any], weights: Path) -> Model:
    known = {
        "format", "model", "network", "sizes", "task", "labels", "featuriser", "weights_sha256",
        "provenance", *_SINCE_2, *_OPTIONAL,
    }  # fmt: skip
    foreign = sorted(record.keys() - known)
    if foreign:
        raise DataError(f"{path}: unknown entry {foreign[0]!r}")
    if record["task"] not in (*get_args(Kind), "none"):
        raise DataError(f"{path}: task must be classes, labels or values, got {record['task']!r}")
    sizes = record["sizes"]
    if not isinstance(sizes, dict) or not set(_SIZES) <= sizes.keys():
        raise DataError(f"{path}: sizes must hold {', '.join(_SIZES)}")
    numbers = [*sizes.values(), record["members"]]
    if not all(type(size) is int and 0 <= size < 2**20 for size in numbers):
        raise DataError(f"{path}: sizes and members must be whole numbers, got {numbers}")
    if not 1 <= record["members"] <= MOST_MEMBERS:
        raise DataError(f"{path}: members must lie in 1…{MOST_MEMBERS}, got {record['members']}")
    for name in ("featuriser", "provenance", "seen"):
        if not isinstance(record[name], dict):
            raise DataError(f"{path}: {name} must be an object")
    require_consistent(path, record)
    config = NetworkConfig.from_record(record["network"])
    build = partial(_network, record, config)
    if len(config.hidden) > MOST_LAYERS:
        raise DataError(f"{path}: hidden must have at most {MOST_LAYERS:,} layers")
    tensors = read_weights(
        weights, record["weights_sha256"], build, members=record["members"],
        own_code=_has_own_code(record["model"], config),
    )  # fmt: skip
    members = []
    for state in [tensors] if record["members"] == 1 else _states(tensors, record["members"]):
        network = build()
        network.load_state_dict(state)
        members.append(network.eval())
    columns = sizes["outputs"] if record["task"] == "values" else 0
    return Model(
        tuple(members),
        record["task"],
        tuple(map(str, record["labels"])),
        record["featuriser"],
        record["provenance"],
        tuple(map(str, record["target_names"])),
        tuple(map(float, record["thresholds"])),
        seen_from(path, record["seen"]),
        record["model"],
        config,
        sizes,
        *values_from(path, record, columns),
        load_neighbours(path.parent, path, record["neighbours"]),
        tuple(map(float, record["temperatures"])),
    )


def _network(record: dict[str, Any], config: NetworkConfig) -> nn.Module:
    """Build the network of a record; the usual one does not need the registry of its rivals."""
    name, sizes = record["model"], record["sizes"]
    network: nn.Module
    if name == "can":
        network = cast(Any, CellAttentionNetwork)(config, **sizes)
    else:
        from cell_attention.models.registry import build_network

        network = build_network(name, config, sizes)
    if record["task"] == "values" and not hasattr(network, "rescale_outputs"):
        from cell_attention.models.scaled_outputs import ScaledOutputs

        return ScaledOutputs(network, sizes["outputs"])
    return network


def _has_own_code(name: str, config: NetworkConfig) -> bool:
    """Whether a network has code of the user's own, besides that of this package."""
    used = [PARTS[slot][getattr(config, slot)].implementation for slot in PARTS]
    if name != "can":
        from cell_attention.models.registry import find_model

        used.append(find_model(name).implementation)
    return not all(isinstance(code, str) for code in used)


def _states(tensors: dict[str, Tensor], members: int) -> list[dict[str, Tensor]]:
    states: list[dict[str, Tensor]] = [{} for _ in range(members)]
    for name, value in tensors.items():
        number, _, rest = name.partition(".")
        if not number.isdigit() or int(number) >= members:
            raise ValueError(f"{name!r} does not belong to any of {members} members")
        states[int(number)][rest] = value
    return states
