"""Splits from a JSON file, or from a column of a file of molecules."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cell_attention.data.splits.folds import Fold, Splits, require_fold, require_folds
from cell_attention.errors import DataError, InputError, SourceNotFoundError

SPLIT_NAMES = {"train": "train", "training": "train", "val": "validation", "valid": "validation",
         "validation": "validation", "test": "test"}  # fmt: skip
"""The words that are allowed in a split column."""


def folds_from_column(where: str, cells: Sequence[str]) -> Splits:
    """Read folds from a column: rows with the same name are held out together."""
    names = sorted({cell.strip() for cell in cells})
    if "" in names or not 2 <= len(names) <= 100:
        raise DataError(f"{where}: must name 2 to 100 folds in every row, got {names[:4]}")
    made = []
    for name in names:
        held = tuple(row for row, cell in enumerate(cells) if cell.strip() == name)
        made.append(Fold(tuple(sorted(set(range(len(cells))).difference(held))), held))
    return Splits.of(tuple(made), f"{len(names)} folds of a column")


def holdout_from_column(where: str, cells: Sequence[str], lines: Sequence[int] = ()) -> Fold:
    """Read one split from a column of train, validation or test; `lines` are those of the rows."""
    parts: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    for row, cell in enumerate(cells):
        part = SPLIT_NAMES.get(cell.strip().lower())
        if part is None:
            place = f", line {lines[row]}" if lines else ""
            rule = "the split must be train, validation or test"
            raise DataError(f"{where}{place}: {rule}, got {cell!r:.40}")
        parts[part].append(row)
    for name in ("train", "validation"):
        if not parts[name]:
            raise DataError(f"{where}: no row of the split column is {name}")
    return Fold(*map(tuple, parts.values()))


def read_holdout(path: Path, num_graphs: int) -> Fold:
    """Read one split from a JSON file {train, validation[, test]}, as in a MODEL_DIR."""
    fold = _fold(str(path), _read_json(path))
    try:
        require_fold(str(path), fold, num_graphs)
    except InputError as error:
        raise DataError(str(error)) from None
    return fold


def read_folds(path: Path, num_graphs: int) -> Splits:
    """Read folds from a JSON file: a list of {train, validation[, test]}, or the published form of
    Errica et al. 2020, {test, model_selection: [{train, validation}]}.
    """
    record = _read_json(path)
    if not isinstance(record, list):
        raise DataError(f"{path}: must be a list of at least 2 folds")
    folds = tuple(_fold(f"{path}, fold {place}", entry) for place, entry in enumerate(record))
    try:
        require_folds(str(path), folds, num_graphs)
    except InputError as error:
        raise DataError(str(error)) from None
    return Splits.of(folds, path.name)


def _read_json(path: Path) -> Any:
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file" + (", a folder" * path.is_dir()))
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise DataError(f"{path}: not a JSON file ({error})") from None


def _fold(where: str, entry: Any) -> Fold:
    if not isinstance(entry, dict):
        raise DataError(f"{where}: must be an object with train and validation")
    inner = entry.get("model_selection", entry)
    inner = inner[0] if isinstance(inner, list) and inner else inner
    parts = {}
    for name, source in (("train", inner), ("validation", inner), ("test", entry)):
        values = source.get(name, []) if isinstance(source, dict) else None
        if not isinstance(values, list) or not all(type(v) is int for v in values):
            raise DataError(f"{where}: {name} must be a list of graph numbers")
        parts[name] = tuple(values)
    return Fold(**parts)
