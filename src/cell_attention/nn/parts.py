"""The parts of a network that can be chosen by name: attention layers, pooling layers, readouts.

A part of your own is a class that is registered before a network is built with its name:

    @register_pooling("every_second", reads=("ratio",))
    class EverySecond(nn.Module):
        @classmethod
        def from_config(cls, config, in_channels, kernel): ...
        def forward(self, edges, edge_complex, num_complexes) -> Pooled: ...

This module does not import torch, so that a configuration can check names quickly.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pkgutil import resolve_name
from typing import Any, Literal, TypeVar

from cell_attention.arguments import require
from cell_attention.errors import InputError

Slot = Literal["attention_layer", "pooling_layer", "readout"]
"""The field of NetworkConfig that names the part."""
Part = TypeVar("Part", bound=Callable[..., Any])
HOW = (
    "one of your own must be registered first: load_plugins([FILE]); "
    "workers do not know classes of a notebook or, on Ray, of the main script"
)
"""What to do about a name that is not known."""


@dataclass(frozen=True)
class PartEntry:
    """One part of the registry."""

    implementation: Any
    """A class with `from_config`, or where to import it from, as `module:name`; a readout may be a
    plain function."""
    reads: tuple[str, ...] | None = None
    """The fields of NetworkConfig that it depends on; None if it does not state them."""


_ATTENTION = (
    "score", "attention", "attention_activation", "attention_dropout", "aggregate", "epsilon",
    "learn_epsilon",
)  # fmt: skip
_OWN: dict[Slot, tuple[str, ...]] = {
    "attention_layer": _ATTENTION,
    "pooling_layer": ("ratio", "pool_activation"),
    "readout": (),
}
"""The fields of NetworkConfig that nothing but this part may depend on."""

PARTS: dict[Slot, dict[str, PartEntry]] = {
    "attention_layer": {
        "cell": PartEntry(
            "cell_attention.nn.attention:CellAttention",
            ("hidden", "heads", "join", "negative_slope", *_ATTENTION),
        )
    },
    "pooling_layer": {
        "top_k": PartEntry(
            "cell_attention.nn.pooling:EdgePooling", ("ratio", "pool_activation", "negative_slope")
        )
    },
    "readout": {
        how: PartEntry(f"cell_attention.nn.functional:segment_{how}", ())
        for how in ("sum", "mean", "max")
    },
}

_CALLS: dict[Slot, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "attention_layer": (
        ("config", "layer", "in_channels", "kernel"),
        ("edges", "lower_pairs", "upper_pairs", "neighbours"),
    ),
    "pooling_layer": (
        ("config", "in_channels", "kernel"),
        ("edges", "edge_complex", "num_complexes"),
    ),
    "readout": (("config", "in_channels"), ("values", "group", "num_groups")),
}
"""What `from_config` and `forward` of a part are called with, by position."""


def register_attention(
    name: str, *, reads: tuple[str, ...] | None = None
) -> Callable[[Part], Part]:
    """Make an attention layer available as `attention_layer=name`.

    `from_config(config, layer, in_channels, kernel)` builds layer number `layer`;
    `forward(edges, lower_pairs, upper_pairs, neighbours)` returns `Attended`, whose edges are
    (E, config.widths[layer]) and whose weights have one row per pair and one column per head.
    reads: the fields of NetworkConfig that it depends on; if it states them, changes of fields of
    the attention that it would ignore are refused.
    """
    return _registering("attention_layer", name, reads)


def register_pooling(name: str, *, reads: tuple[str, ...] | None = None) -> Callable[[Part], Part]:
    """Make a pooling layer available as `pooling_layer=name`.

    `from_config(config, in_channels, kernel)` builds it;
    `forward(edges, edge_complex, num_complexes)` returns `Pooled`.
    reads: the fields of NetworkConfig that it depends on; if it states them, changes of `ratio` and
    `pool_activation` that it would ignore are refused.
    """
    return _registering("pooling_layer", name, reads)


def register_readout(name: str, *, reads: tuple[str, ...] | None = None) -> Callable[[Part], Part]:
    """Make a readout available as `readout=name`.

    Either a function `(values, group, num_groups)` that returns (num_groups, F), or a class with
    `from_config(config, in_channels)` whose `forward` takes and returns the same.
    reads: the fields of NetworkConfig that it depends on.
    """
    return _registering("readout", name, reads)


def _registering(slot: Slot, name: str, reads: tuple[str, ...] | None) -> Callable[[Part], Part]:
    require("name", isinstance(name, str) and bool(name), "be a text", repr(name))

    def register(part: Part) -> Part:
        title = title_of(slot, name, part)
        known = PARTS[slot].get(name)
        if known is not None and home_of(known.implementation) != home_of(part):
            raise InputError(
                f"{slot} {name!r} is already registered, by {home_of(known.implementation)}"
            )
        _require_calls(slot, title, part)
        if reads is not None:
            require_fields(f"{title}: reads", reads)
        PARTS[slot][name] = PartEntry(part, None if reads is None else tuple(reads))
        return part

    return register


def title_of(slot: str, name: str, made: Any) -> str:
    """Name a registered class or function in messages."""
    if not hasattr(made, "__qualname__"):
        raise InputError(f"{slot} {name!r} must be a class or a function, got {made!r}")
    return f"{slot} {name!r} ({made.__qualname__})"


def _require_calls(slot: Slot, title: str, part: Any) -> None:
    built, called = _CALLS[slot]
    if isinstance(part, type):
        require_method(title, part, "from_config", names=built, rule="a class method that takes")
        require_method(title, part, "forward", names=("self", *called))
    elif slot == "readout":
        require_call(title, part, called)
    else:
        raise InputError(f"{title} must be a class with from_config and forward")


def require_method(
    title: str, made: Any, method: str, *, names: Sequence[str], rule: str = "a method that takes"
) -> None:
    """Refuse a class that lacks a method, or whose method takes other arguments."""
    found = getattr(made, method, None)
    # A torch module that defines no `forward` has this one.
    if not callable(found) or found.__name__ == "_forward_unimplemented":
        raise InputError(f"{title} must have {method}, {rule} ({_listed(names)})")
    require_call(f"{title}: {method}", found, names, rule=rule)


def require_call(
    title: str,
    function: Any,
    names: Sequence[str],
    *,
    keywords: Sequence[str] = (),
    rule: str = "a function that takes",
) -> None:
    """Refuse a function that cannot be called with these arguments, the last ones by keyword."""
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):  # compiled code does not say what it takes
        return
    try:
        taken.bind(*names, **dict.fromkeys(keywords))
    except TypeError:
        wanted = _listed((*names, *keywords))
        raise InputError(
            f"{title} must be {rule} ({wanted}), but it takes ({_listed(taken.parameters)})"
        ) from None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name for name in names if name != "self")


def require_fields(title: str, names: Any) -> None:
    """Refuse anything but a tuple of fields of NetworkConfig."""
    from cell_attention.nn.config import NetworkConfig  # which imports this module

    known = [entry.name for entry in fields(NetworkConfig)]
    if not isinstance(names, tuple | list):
        raise InputError(f"{title} must be a tuple of names, got {names!r}")
    for name in names:
        if name not in known:
            raise InputError(f"{title} must name fields of NetworkConfig, got {name!r}")


def home_of(made: Any) -> str:
    """Say where it is defined: rerunning a notebook cell may register its class again."""
    return made if isinstance(made, str) else f"{made.__module__}:{made.__qualname__}"


def require_part(slot: Slot, name: str) -> PartEntry:
    """Look up what is registered under this name; raise InputError if there is nothing."""
    if name not in PARTS[slot]:
        raise InputError(
            f"{slot} must be one of {', '.join(map(repr, PARTS[slot]))}, got {name!r}; {HOW}"
        )
    return PARTS[slot][name]


def build_part(slot: Slot, name: str, width: int, *arguments: Any) -> Any:
    """Build a part of a network, whose rows have `width` features afterwards; a readout that is a
    function is returned as it is. A part of the user's own is checked whenever it runs.
    """
    part = require_part(slot, name).implementation
    if isinstance(part, str):  # built in
        part = resolve_name(part)
        return part.from_config(*arguments) if hasattr(part, "from_config") else part
    from cell_attention.nn.part_checks import build_checked  # which imports torch

    return build_checked(slot, name, part, *arguments, width=width)


def unread_fields(chosen: Mapping[Slot, str]) -> dict[str, str]:
    """Return the fields of NetworkConfig that have no effect with these parts, each with the part
    that ignores it; a part that does not state what it reads may read everything.
    """
    entries = {slot: PARTS[slot][name] for slot, name in chosen.items()}
    read = {name for entry in entries.values() for name in entry.reads or ()}
    return {
        name: f"{slot} {chosen[slot]!r}"
        for slot, entry in entries.items()
        if entry.reads is not None
        for name in _OWN[slot]
        if name not in read
    }
