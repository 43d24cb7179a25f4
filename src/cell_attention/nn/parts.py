"""The parts of a network that can be chosen by name: attention layers, pooling layers, readouts.

A part of your own is a class that is registered before a network is built with its name:

    @register_pooling("every_second")
    class EverySecond(nn.Module):
        @classmethod
        def from_config(cls, config, in_channels, kernel): ...
        def forward(self, edges, edge_complex, num_complexes) -> Pooled: ...

This module does not import torch, so that a configuration can check names quickly.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, TypeVar

from cell_attention.errors import InputError

Slot = Literal["attention_layer", "pooling_layer", "readout"]
"""The field of NetworkConfig that names the part."""
Part = TypeVar("Part", bound=Callable[..., Any])

PARTS: dict[Slot, dict[str, Any]] = {
    "attention_layer": {"cell": "cell_attention.nn.attention:CellAttention"},
    "pooling_layer": {"top_k": "cell_attention.nn.pooling:EdgePooling"},
    "readout": {
        how: f"cell_attention.nn.functional:segment_{how}" for how in ("sum", "mean", "max")
    },
}
"""A class with `from_config`, or where to import it from; a readout may be a plain function."""


def register_attention(name: str) -> Callable[[Part], Part]:
    """Make an attention layer available as `attention_layer=name`.

    `from_config(config, layer, in_channels, kernel)` builds layer number `layer`;
    `forward(edges, lower_pairs, upper_pairs, neighbours)` returns `Attended`, whose edges are
    (E, config.widths[layer]).
    """
    return _registering("attention_layer", name)


def register_pooling(name: str) -> Callable[[Part], Part]:
    """Make a pooling layer available as `pooling_layer=name`.

    `from_config(config, in_channels, kernel)` builds it;
    `forward(edges, edge_complex, num_complexes)` returns `Pooled`.
    """
    return _registering("pooling_layer", name)


def register_readout(name: str) -> Callable[[Part], Part]:
    """Make a readout available as `readout=name`.

    Either a function `(values, group, num_groups)` that returns (num_groups, F), or a class with
    `from_config(config, in_channels)` whose `forward` takes and returns the same.
    """
    return _registering("readout", name)


def _registering(slot: Slot, name: str) -> Callable[[Part], Part]:
    def register(part: Part) -> Part:
        known = PARTS[slot].get(name)
        if known is not None and _home(known) != _home(part):
            raise InputError(f"{slot} {name!r} is already registered, by {_home(known)}")
        PARTS[slot][name] = part
        return part

    return register


def _home(part: Any) -> str:
    """Say where a part is defined: rerunning a notebook cell may register its class again."""
    return part if isinstance(part, str) else f"{part.__module__}:{part.__qualname__}"


def require_part(slot: Slot, name: str) -> None:
    """Refuse a name under which nothing is registered."""
    if name not in PARTS[slot]:
        raise InputError(
            f"{slot} must be one of {', '.join(map(repr, PARTS[slot]))}, got {name!r}; a part of "
            "your own must be registered first (--plugin FILE on the command line)"
        )


def find_part(slot: Slot, name: str) -> Any:
    """Look up the class or function that is registered under this name."""
    require_part(slot, name)
    part = PARTS[slot][name]
    return load_name(part) if isinstance(part, str) else part


def load_name(home: str) -> Any:
    """Import the object that `module:name` names."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)
