"""Checkpoints: everything that the next epoch of a training depends on, in one file."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from torch import Tensor

from cell_attention._files import open_tensors, write_tensors
from cell_attention.errors import DataError

if TYPE_CHECKING:
    from cell_attention.training.loop import Training


def save_checkpoint(training: "Training", path: Path, settings: str) -> None:
    """Write a checkpoint; `settings` is the digest of what the training belongs to."""
    tensors = {f"model.{name}": value for name, value in training.network.state_dict().items()}
    for index, state in training.adam.state_dict()["state"].items():
        tensors |= {f"adam.{index}.{name}": value for name, value in state.items()}
    tensors |= {f"best.{name}": value for name, value in (training.best or {}).items()}
    if training.average is not None:
        averaged = training.average.network.state_dict()
        tensors |= {f"average.{name}": value for name, value in averaged.items()}
    schedule = training.schedule
    state = {
        "settings": settings,
        "curves": asdict(training.curves),
        "learning_rate": training.adam.param_groups[0]["lr"],
        "schedule": None if schedule is None else _plain(schedule.state_dict()),
    }
    whole = {name: value.contiguous().clone() for name, value in tensors.items()}
    write_tensors(path, whole, {"state": json.dumps(state)})


def restore_checkpoint(training: "Training", path: Path, settings: str) -> None:
    """Load a checkpoint; raise DataError if it is of another run or not complete."""
    try:
        with open_tensors(path) as file:
            state = json.loads((file.metadata() or {})["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        # Checkpoints of earlier versions have the digest under another key.
        if state.get("settings", state.get("question")) != settings:
            raise DataError(f"{path}: belongs to another run; use fresh to start over")
        _restore(training, state, tensors)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path}: not a complete checkpoint ({error}); delete it to start this job again"
        ) from None


def _restore(training: "Training", state: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    from cell_attention.training.curves import Curves

    weights = _below("model.", tensors)
    # The optimiser's moments are numbered by weight: one weight more would shift all that follow.
    if weights.keys() != training.network.state_dict().keys():
        raise KeyError("it has the weights of another version")
    training.network.load_state_dict(weights)
    if training.average is not None:
        training.average.network.load_state_dict(_below("average.", tensors))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in _below("adam.", tensors).items():
        index, part = name.split(".")
        moments.setdefault(int(index), {})[part] = value
    groups = training.adam.state_dict()["param_groups"]
    groups[0]["lr"] = state["learning_rate"]
    training.adam.load_state_dict({"state": moments, "param_groups": groups})
    if training.schedule is not None:
        training.schedule.load_state_dict(state["schedule"])
    training.curves = Curves(**state["curves"])
    if training.best is not None:
        training.best = _below("best.", tensors)
        if training.epochs_done and training.best.keys() != training.network.state_dict().keys():
            raise KeyError("the best weights are missing")


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with the prefix, without it."""
    return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a schedule's state that JSON can hold."""
    kept = (bool, int, float, str, list, type(None))
    return {name: value for name, value in state.items() if isinstance(value, kept)}
