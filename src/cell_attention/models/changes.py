"""Changes of single fields of a configuration, and grids of them; does not import torch."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from cell_attention.arguments import tuples
from cell_attention.errors import InputError
from cell_attention.models.registry import Configs, require_read, with_heads
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig

Config = TypeVar("Config", NetworkConfig, TrainingConfig)
Grid = Sequence[Mapping[str, Mapping[str, Any]]]
"""Configurations to choose from, as changes by table: {"network": {…}, "training": {…}}."""
TABLES = ("network", "training")


def changed(
    config: Config,
    changes: Mapping[str, Any],
    where: str,
    *,
    flags: Mapping[str, Any] | None = None,
) -> Config:
    """Change fields of a configuration, and then those that flags name; `where` begins the message
    about a field that does not exist or has a wrong value.
    """
    names = [entry.name for entry in fields(config)]
    for key in changes:
        if key not in names:
            close = difflib.get_close_matches(str(key), names, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; it has {', '.join(names)}"
            raise InputError(f"{where}: there is no field {key!r}{hint}")
    try:
        return replace(config, **{**tuples(dict(changes)), **(flags or {})})
    except InputError as error:
        culprit = str(error).split(" ", 1)[0]
        raise InputError(f"{where}: {error}" if culprit in changes else str(error)) from None


def check_grid(
    grid: Grid, model: str, configs: Configs, *, where: str = "grid"
) -> tuple[dict[str, dict[str, Any]], ...]:
    """Return a grid with both tables in every entry; refuse fields and values that the model or
    these configurations do not allow.
    """
    if not isinstance(grid, list | tuple):
        example = "{'network': {'dropout': 0.5}}"
        raise InputError(f"{where} must be a list of changes such as {example}, got {grid!r:.60}")
    return tuple(_entry(entry, model, configs, where=where) for entry in grid)


def _entry(entry: Any, model: str, configs: Configs, *, where: str) -> dict[str, dict[str, Any]]:
    right = isinstance(entry, Mapping) and set(entry) <= {*TABLES}
    if not right or not all(isinstance(table, Mapping) for table in entry.values()):
        rule = "an entry must map network and training to changes of their fields"
        raise InputError(f"{where}: {rule}, got {entry!r:.60}")
    made = {table: dict(entry.get(table, {})) for table in TABLES}
    for name in ("max_polygon", "seed"):
        if any(name in changes for changes in made.values()):
            raise InputError(
                f"{where}: {name} must be the same for the whole grid; set it in the configuration"
            )
    made["network"] = with_heads(model, made["network"])
    network, training = configs
    other = changed(network, made["network"], where), changed(training, made["training"], where)
    require_read(model, other, configs)
    return made
