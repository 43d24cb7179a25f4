"""Which weights of a trained network a new one starts from, and which of these stay fixed."""

import copy
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from cell_attention.errors import InputError
from cell_attention.models.registry import build_network
from cell_attention.models.scaled_outputs import ScaledOutputs
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.start import Start
from cell_attention.training.tasks import Task


def start_at(
    trained: nn.Module,
    name: str,
    config: NetworkConfig,
    *,
    sizes: dict[str, int],
    task: Task | None,
    learned: Collection[str] | None = None,
    freeze: Sequence[str] = (),
) -> Start:
    """Return the start of a network of the registry at the weights of a trained one.

    task: the task, if the trained network has the same outputs; else the output layers are new.
    learned: the parts that were trained, if not all of them were; the others are new.
    """
    new = Layout.of(name, config, sizes)
    state = _in_training(trained, task).state_dict()
    copied = {
        key: value
        for key, value in state.items()
        if (learned is None or _is_below(key, learned))
        and (task is not None or key not in new.outputs)
    }
    for key, value in copied.items():
        if key not in new.shapes or new.shapes[key] != value.shape:
            raise InputError(f"the weights of from_model do not fit this network ({key})")
    fixed = frozenset(key for word in freeze for key in _frozen(word, new, copied))
    if fixed >= new.parameters:
        raise InputError(f"freeze must leave weights to train, got {', '.join(freeze)}")
    return Start({key: value.detach().clone() for key, value in copied.items()}, fixed)


def parts(names: Iterable[str], chosen: Collection[str]) -> list[str]:
    """Name the chosen weights by parts of the network as large as possible."""
    every, found = list(names), []
    for top in dict.fromkeys(name.split(".")[0] for name in every):
        below = [name for name in every if _is_below(name, (top,))]
        picked = [name in chosen for name in below]
        if all(picked):
            found.append(top)
        elif any(picked):
            inner = [name.removeprefix(f"{top}.") for name in below]
            left = {name.removeprefix(f"{top}.") for name in below if name in chosen}
            found += [f"{top}.{name}" for name in parts(inner, left)]
    return found


@dataclass(frozen=True)
class Layout:
    """The state of a network by name."""

    shapes: dict[str, torch.Size]
    parameters: frozenset[str]
    """Those that are trained; the others are running moments and the like."""
    outputs: frozenset[str]
    """Those whose shape depends on the number of outputs."""

    @staticmethod
    def of(name: str, config: NetworkConfig, sizes: dict[str, int]) -> "Layout":
        """Return the layout of a network of the registry."""
        with torch.random.fork_rng(devices=[]):
            wider = {**sizes, "outputs": sizes["outputs"] + 1}
            network, other = (build_network(name, config, each) for each in (sizes, wider))
        shapes, others = (
            {key: value.shape for key, value in each.state_dict().items()}
            for each in (network, other)
        )
        return Layout(
            shapes,
            frozenset(key for key, _ in network.named_parameters()),
            frozenset(key for key, shape in shapes.items() if others[key] != shape),
        )


def _in_training(trained: nn.Module, task: Task | None) -> nn.Module:
    """Return the network with outputs as in training: values around `task.centre` by its scale."""
    if isinstance(trained, ScaledOutputs):
        return trained.network
    if task is None or task.centre is None or task.scale is None:
        return trained
    network: Any = copy.deepcopy(trained)
    network.rescale_outputs(1.0 / task.scale, -task.centre / task.scale)
    made: nn.Module = network
    return made


def _is_below(key: str, names: Collection[str]) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in names)


def _frozen(word: str, new: Layout, copied: dict[str, Tensor]) -> list[str]:
    """Return the copied weights of a part that stays fixed."""
    below = [key for key in new.shapes if _is_below(key, (word,))]
    if not below:
        known = dict.fromkeys(key.split(".")[0] for key in new.shapes if key in new.parameters)
        raise InputError(
            f"freeze must name parts of the network ({', '.join(known)}) or parts of these, such "
            f"as layers.0, got {word!r}"
        )
    found = [key for key in below if key in copied]
    if not new.parameters.intersection(found):
        raise InputError(f"freeze {word!r}: all its weights are new, so they must be trained")
    return found
