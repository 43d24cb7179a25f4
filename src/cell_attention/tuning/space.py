"""The search space: fields of the network and of the training, and the shape of the layers."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, get_type_hints

from cell_attention.errors import InputError
from cell_attention.models.registry import Configs, find_model, require_read, with_heads
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig

Changes = dict[str, dict[str, Any]]
"""New values by table and field, with the tables of a Space."""

_FIXED = ("max_polygon", "seed")
"""Fields that no search changes: another polygon size changes the data, another seed is luck."""


@dataclass(frozen=True)
class Categorical:
    """One of several values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Range:
    """Any number from `low` to `high`, both included; on a logarithmic scale with `log`."""

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are drawn."""
        return isinstance(self.low, int) and isinstance(self.high, int)


Dimension = Categorical | Range
Space = dict[str, dict[str, Dimension]]
"""By table: [network], [training], and [shape] with `layers`, `width` and `heads`, which set
`hidden` and `heads` for layers of equal size.
"""
SHAPE = ("layers", "width", "heads")

_SHAPE: dict[str, Dimension] = {
    "layers": Range(1, 3),
    "width": Categorical((8, 16, 32, 64)),
    "heads": Categorical((1, 2)),
}
"""At most 128 features, so that a trial takes little longer than the paper's presets."""
_RANK_SHAPE: dict[str, Dimension] = {
    "layers": Range(2, 5),
    "width": Categorical((8, 16, 32)),
    "heads": Categorical((2, 4)),
}
_RANK_NETWORK: dict[str, Dimension] = {
    "weights": Categorical(("softmax", "gate", "sum")),
    "counts": Categorical((0, 2, 4)),
    "dropout": Range(0.0, 0.5),
    "head_dropout": Range(0.0, 0.6),
    "readout": Categorical(("sum", "mean")),
    "head_hidden": Categorical((32, 64, 128)),
}
_NETWORK: dict[str, Dimension] = {
    "lift": Categorical(("symmetric", "paper")),
    "lift_heads": Categorical((8, 32, 64)),
    "lift_dropout": Range(0.0, 0.3),
    "attention_dropout": Range(0.0, 0.3),
    "activation": Categorical(("relu", "elu", "tanh")),
    "dropout": Range(0.0, 0.6),
    "pooling": Categorical(("hierarchical", "global", "none")),
    "ratio": Range(0.5, 1.0),
    "readout": Categorical(("sum", "mean")),
    "node_readout": Categorical((0, 32)),
    "head_hidden": Categorical((8, 32, 128)),
}
_TRAINING: dict[str, Dimension] = {
    "learning_rate": Range(3e-4, 3e-2, log=True),
    "weight_decay": Range(1e-6, 1e-2, log=True),
    "batch_size": Categorical((32, 64, 128)),
}


def usual_space(model: str, design: str = "ranks") -> Space:
    """Return the default search space: the fields that the model reads; cell attention has one for
    each design.
    """
    known = find_model(model)
    if not known.epochs:
        raise InputError(f"model {model!r} has no configuration to search; use a network")
    if model == "can" and design == "ranks":
        return {"shape": dict(_RANK_SHAPE), "network": dict(_RANK_NETWORK), "training": _TRAINING}
    shapes = _RANK_SHAPE if model == "gps" else _SHAPE  # GPS, too, is deep and has many heads
    shape = {name: where for name, where in shapes.items() if _shapes(name, known.reads)}
    network = {name: where for name, where in _NETWORK.items() if name in known.reads}
    return {"shape": shape, "network": network, "training": dict(_TRAINING)}


def _shapes(name: str, reads: tuple[str, ...]) -> bool:
    return ("heads" if name == "heads" else "hidden") in reads


def space_of(tables: Mapping[str, Mapping[str, Any]], where: str) -> Space:
    """Make a space from the tables of a file: a list is a choice, {low, high, log} a range."""
    names = {
        "shape": SHAPE,
        "network": tuple(entry.name for entry in fields(NetworkConfig)),
        "training": tuple(entry.name for entry in fields(TrainingConfig)),
    }
    kinds = {"network": get_type_hints(NetworkConfig), "training": get_type_hints(TrainingConfig)}
    space: Space = {table: {} for table in names}
    if not isinstance(tables, Mapping) or not all(
        table in names and isinstance(entries, Mapping) for table, entries in tables.items()
    ):
        rule = f"must map {', '.join(names)} to their fields"
        raise InputError(f"{where}: {rule}, got {tables!r:.60}")
    for table, entries in tables.items():
        for name, given in entries.items():
            if name not in names[table] or name in _FIXED:
                known = ", ".join(entry for entry in names[table] if entry not in _FIXED)
                raise InputError(f"{where}: {name!r} in [{table}] must be one of {known}")
            kind = int if table == "shape" else kinds[table][name]
            space[table][name] = _dimension(f"{where}: [{table}] {name}", given, kind)
    if not any(space.values()):
        raise InputError(f"{where}: must name at least one field to search")
    if space["shape"] and space["network"].keys() & {"hidden", "heads"}:
        raise InputError(f"{where}: [shape] sets hidden and heads; remove them from [network]")
    return space


def _dimension(where: str, given: Any, kind: Any) -> Dimension:
    if isinstance(given, list) and given:
        values = tuple(tuple(v) if isinstance(v, list) else v for v in given)
        if all(_is_plain(value) for value in values):
            if kind is int and not all(type(value) is int for value in values):
                raise InputError(f"{where} must be a list of whole numbers, got {given}")
            return Categorical(values)
    if isinstance(given, dict) and {"low", "high"} <= given.keys() <= {"low", "high", "log"}:
        low, high, log = given["low"], given["high"], given.get("log", False)
        numbers = all(type(v) in (int, kind) and abs(v) < 1e300 for v in (low, high))
        sound = numbers and type(log) is bool and low < high and (low > 0 or not log)
        if kind in (int, float) and sound:
            return Range(kind(low), kind(high), log)
    raise InputError(
        f"{where} must be a list of values or, for a number, {{low, high, log}} with low < high "
        f"(low > 0 if log is true; whole numbers for a field of whole numbers), got {given}"
    )


def _is_plain(value: Any) -> bool:
    """Whether a field can have this value."""
    if isinstance(value, tuple):
        return all(type(entry) is int for entry in value)
    return type(value) in (bool, int, float, str)


def suggested(space: Space, suggest: Callable[[str, Dimension], Any]) -> Changes:
    """Draw the changes of one trial; suggest(name, dimension) returns the value of a dimension."""
    return {
        table: {name: suggest(f"{table}.{name}", where) for name, where in entries.items()}
        for table, entries in space.items()
    }


def applied(model: str, changes: Changes, configs: Configs) -> Configs:
    """Apply the changes of a trial to the configurations."""
    network, training = configs
    edits, shape = dict(changes["network"]), changes["shape"]
    if shape:
        layers = shape.get("layers", len(network.hidden))
        edits["hidden"] = (shape.get("width", network.hidden[0]),) * layers
        edits["heads"] = (shape.get("heads", network.heads[0]),) * layers
    edits = with_heads(model, edits)
    if "pooling" in edits and "pool_at" not in edits:  # as in the presets
        edits["pool_at"] = "last" if edits["pooling"] == "global" else "every"
    made = replace(network, **edits), replace(training, **changes["training"])
    require_read(model, made, configs)
    return made


def check_space(space: Space, model: str, configs: Configs, *, where: str) -> None:
    """Refuse a field that the model does not read and a value that it cannot have. Values that only
    cannot be combined are left to the trials.
    """
    reads = find_model(model).reads
    for name in space["shape"]:
        if not _shapes(name, reads):
            raise InputError(f"{where}: [shape] {name}: model {model!r} does not use it; remove it")
    for table, entries in space.items():
        for name, dimension in entries.items():
            if isinstance(dimension, Categorical):
                values: tuple[Any, ...] = dimension.values
            else:
                values = (dimension.low, dimension.high)
            for value in values:
                changes: Changes = {"shape": {}, "network": {}, "training": {}}
                changes[table][name] = value
                try:
                    applied(model, changes, configs)
                except InputError as error:
                    culprit = {"layers": "hidden", "width": "hidden"}.get(name, name)
                    if str(error).startswith((culprit, "model ", "design ")):
                        raise InputError(f"{where}: [{table}] {name}: {error}") from None


def as_toml(model: str, configs: Configs, search: dict[str, Any]) -> str:
    """Format a file for `--config`, with the search that it comes from."""
    network, training = configs
    read = {name: getattr(network, name) for name in find_model(model).reads}
    tables = {"network": read, "training": asdict(training), "search": search}
    lines = []
    for table, entries in tables.items():
        lines += [
            f"[{table}]",
            *(f"{name} = {_toml(value)}" for name, value in entries.items()),
            "",
        ]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)
