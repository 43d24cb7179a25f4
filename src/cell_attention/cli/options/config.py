"""Flags and TOML files that change single fields of a configuration."""

import ast
import inspect
import tomllib
from dataclasses import fields, make_dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import tyro

from cell_attention.errors import DataError, SourceNotFoundError
from cell_attention.models.changes import TABLES, changed, check_grid
from cell_attention.models.registry import Configs, defaults, require_read, with_heads
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig


def flags_of(config: type) -> Any:
    """Make a class with the fields of a configuration, all None, that tyro turns into flags."""
    texts, kinds = _texts(config), get_type_hints(config)
    annotated: Any = Annotated
    entries = []
    for entry in fields(config):
        hint = tyro.conf.arg(
            help=texts.get(entry.name, ""),
            help_behavior_hint=f"(default: {entry.default}; with --design paper the preset's)",
        )
        entries.append((entry.name, annotated[kinds[entry.name] | None, hint], None))
    return make_dataclass(f"{config.__name__}Flags", entries, frozen=True)


def _texts(config: type) -> dict[str, str]:
    """Return the docstring below every field."""
    body = ast.parse(inspect.getsource(config)).body[0]
    texts, name = {}, None
    for node in body.body if isinstance(body, ast.ClassDef) else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts[name], name = " ".join(str(node.value.value).split()), None
    return texts


def configured(
    model: str,
    source: str,
    path: Path | None,
    *,
    network_flags: Any = None,
    training_flags: Any = None,
    origin: NetworkConfig | None = None,
) -> Configs:
    """Change a model's defaults by a file and then by flags; refuse changes that it would ignore.

    origin: the network of a model to start from, which then takes the place of the default.
    With design "paper" the defaults are the paper's preset if SOURCE has one.
    """
    table, where = read_config(path), "the command" if path is None else str(path)
    # Files of a search from before there were two designs do not name theirs.
    usual_design = "paper" if table["search"] else NetworkConfig.design
    listed_design = table["network"].get("design", usual_design)
    usual = defaults(model, source, getattr(network_flags, "design", None) or listed_design)
    if origin is not None:
        usual = (origin, defaults(model, source, origin.design)[1])
    network, training = usual
    hidden = getattr(network_flags, "hidden", None)
    listed = table["network"] if hidden is None else {**table["network"], "hidden": hidden}
    network = changed(
        network, with_heads(model, listed), where, flags=_given(network, network_flags)
    )
    training = changed(training, table["training"], where, flags=_given(training, training_flags))
    require_read(model, (network, training), usual)
    return network, training


def _given(config: NetworkConfig | TrainingConfig, flags: Any) -> dict[str, Any]:
    """Return the fields of a configuration that flags set."""
    every = {entry.name: getattr(flags, entry.name, None) for entry in fields(config)}
    return {name: value for name, value in every.items() if value is not None}


def read_grid(
    path: Path | None, model: str, configs: Configs
) -> tuple[dict[str, dict[str, Any]], ...]:
    """Return all combinations of the values that a TOML file lists for single fields, as changes of
    these configurations; none without a file.
    """
    if path is None:
        return ()
    table, where = read_tables("--grid", path, TABLES), str(path)
    axes = [(part, name, table[part][name]) for part in table for name in table[part]]
    for part, name, values in axes:
        if not isinstance(values, list) or not values:
            raise DataError(f"{where}: [{part}] {name} must be a list of values, got {values!r}")
    if not axes:
        raise DataError(f"{where}: must list values for at least one field")
    grid = []
    for values in product(*(values for _, _, values in axes)):
        entry: dict[str, dict[str, Any]] = {"network": {}, "training": {}}
        for (part, name, _), value in zip(axes, values, strict=True):
            entry[part][name] = value
        grid.append(entry)
    return check_grid(grid, model, configs, where=where)


def searched_trials(path: Path | None, source: str, graphs: int) -> int:
    """Return the trials of the search over the same graphs that wrote the file; 0 if none did."""
    origin = read_config(path)["search"]
    same = origin.get("source") == source and origin.get("graphs") == graphs
    trials = origin.get("trials")
    return trials if same and type(trials) is int else 0


def read_config(path: Path | None) -> dict[str, dict[str, Any]]:
    """Read the tables of a configuration, and of the search that wrote it, if any."""
    return read_tables("--config", path, ("network", "training", "search"))


def read_tables(flag: str, path: Path | None, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read the tables with these names; a missing file or table gives empty ones."""
    if path is None:
        return {name: {} for name in names}
    if not path.is_file():
        raise SourceNotFoundError(f"{flag} {path}: no such file" + (", a folder" * path.is_dir()))
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise DataError(f"{path}: not a TOML file ({error})") from None
    for key, value in record.items():
        if key not in names or not isinstance(value, dict):
            known = " and ".join(f"[{name}]" for name in names if name != "search")
            raise DataError(f"{path}: must have the tables {known} only, got {key!r}")
    return {name: record.get(name, {}) for name in names}
