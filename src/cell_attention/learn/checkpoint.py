"""A MODEL_DIR: the weights of a trained network and everything that its use depends on.

`config.json` is written last and holds the SHA-256 of the weights, so a folder is a whole model or
is refused. Nothing in it is code.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from safetensors import SafetensorError
from safetensors.torch import load

from cell_attention._files import write_tensors, write_whole
from cell_attention.data.splits import Fold
from cell_attention.errors import DataError, InputError, SourceNotFoundError
from cell_attention.learn.question import config_of
from cell_attention.learn.runs import read_versioned
from cell_attention.learn.tasks import Kind
from cell_attention.learn.training import Curves
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.network import CellAttentionNetwork

FORMAT = 1
CONFIG, WEIGHTS, SPLITS, METRICS = (
    "config.json",
    "model.safetensors",
    "splits.json",
    "metrics.jsonl",
)


@dataclass(frozen=True)
class Model:
    """A trained network, and what its numbers mean."""

    network: CellAttentionNetwork
    task: Kind
    labels: tuple[str, ...]
    """Class k as the source writes it; empty where there are no classes."""
    featuriser: dict[str, Any]
    """What the columns of the features are."""
    provenance: dict[str, Any]
    """What it was trained on, how, and what it reached."""


def save_model(folder: Path, model: Model, fold: Fold, curves: Curves) -> None:
    """Write a MODEL_DIR."""
    (folder / CONFIG).unlink(missing_ok=True)  # what is there until the end is no model
    state = {name: value.contiguous() for name, value in model.network.state_dict().items()}
    write_tensors(folder / WEIGHTS, state, {"format": "pt"})
    write_whole(folder / SPLITS, json.dumps(asdict(fold)) + "\n")
    lines = [
        json.dumps({"epoch": number, "loss": loss, "validation_loss": watched, "validation": score})
        for number, (loss, watched, score) in enumerate(
            zip(curves.loss, curves.watched_loss, curves.score, strict=True), start=1
        )
    ]
    write_whole(folder / METRICS, "\n".join(lines) + "\n")
    record = {
        "format": FORMAT,
        "network": asdict(model.network.config),
        "node_features": model.network.node_features,
        "edge_features": model.network.edge_features,
        "outputs": model.network.outputs,
        "task": model.task,
        "labels": model.labels,
        "featuriser": model.featuriser,
        "weights_sha256": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
        "provenance": model.provenance,
    }
    write_whole(folder / CONFIG, json.dumps(record, indent=2) + "\n")


def load_model(folder: str | Path) -> Model:
    """The model that a MODEL_DIR holds, in evaluation mode; what is not whole is refused."""
    folder = Path(folder)
    path, weights = folder / CONFIG, folder / WEIGHTS
    for needed in (path, weights):
        if not needed.is_file():
            raise SourceNotFoundError(f"{folder} is not a MODEL_DIR: {needed.name} is missing")
    record = read_versioned(path, FORMAT)
    data = weights.read_bytes()
    if hashlib.sha256(data).hexdigest() != record.get("weights_sha256"):
        raise DataError(f"{weights}: not the weights that {CONFIG} was written with (SHA-256)")
    try:
        if record["task"] not in get_args(Kind):
            raise DataError(f"{path}: unknown task {record['task']!r}")
        sizes = [record[name] for name in ("node_features", "edge_features", "outputs")]
        if not all(type(size) is int and 0 <= size < 2**20 for size in sizes):
            raise DataError(f"{path}: sizes of the network must be whole numbers, got {sizes}")
        network = CellAttentionNetwork(config_of(NetworkConfig, record["network"]), *sizes)
        network.load_state_dict(load(data))
        labels = tuple(map(str, record["labels"]))
        for name in ("featuriser", "provenance"):
            if not isinstance(record[name], dict):
                raise DataError(f"{path}: {name} must be an object")
        model = Model(
            network.eval(), record["task"], labels, record["featuriser"], record["provenance"]
        )
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise DataError(f"{path}: not the description of a model ({error})") from None
    except (SafetensorError, RuntimeError) as error:
        text = " ".join(str(error).split())
        raise DataError(f"{weights}: do not fit {CONFIG} ({text:.200})") from None
    return model
