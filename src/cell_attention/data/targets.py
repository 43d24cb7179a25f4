"""Targets from the cells of a table: classes, labels or values."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cell_attention.data.file_format import MISSING, AskedTask, Kind
from cell_attention.errors import DataError

MOST_CLASSES = 100
"""A column with more distinct texts than this holds names, not classes."""

LARGEST = 3e38
"""Largest absolute value of a target: it must fit into float32."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BOUND = re.compile(r"([<>]=?|[≤≥])\s*(.*)")
"""A value that is known to lie beyond a number, such as > 10."""


@dataclass(frozen=True)
class Targets:
    """The target columns of a table."""

    values: Tensor | None
    """(rows,) classes or (rows, columns) numbers, NaN where a cell is blank; of the kept rows."""
    bounds: Tensor | None
    """(rows, columns) as `target_bounds` of a CellComplex; None if no cell is a bound."""
    class_names: tuple[str, ...]
    kind: Kind | None
    kept: tuple[int, ...]
    """Rows that can be used."""
    blank: tuple[int, ...]
    """Rows without any target."""
    faults: dict[int, str]
    """Rows whose cells cannot be read, with the reason."""


def read_targets(
    where: str, names: Sequence[str], rows: Sequence[Sequence[str]], *, task: AskedTask = "auto"
) -> Targets:
    """Read the targets; every row is a list of cells, one cell per name."""
    every = tuple(range(len(rows)))
    if not names:
        return Targets(None, None, (), None, every, (), {})
    cells = [[cell.strip() for cell in row] for row in rows]
    blank = tuple(i for i in every if all(_is_missing(cell) for cell in cells[i]))
    if _are_classes(cells, len(names), task):
        most = MOST_CLASSES if task == "classification" else max(2, (len(cells) - len(blank)) // 2)
        return _classes(
            where, names[0], [row[0] for row in cells], blank=blank, most=min(most, MOST_CLASSES)
        )
    for place, name in enumerate(names):
        _require_numbers(where, name, [row[place] for row in cells])
    faults = {i: fault for i in every if (fault := _fault(names, cells[i]))}
    if task == "classification":
        for i in every:
            known = [cell for cell in cells[i] if not _is_missing(cell)]
            if i not in faults and not all(_is_binary(cell) for cell in known):
                faults[i] = "several target columns of classes must hold 0, 1 or nothing"
    kept = tuple(i for i in every if i not in faults and i not in set(blank))
    read = [[read_value(cell) for cell in cells[i]] for i in kept]
    shape = (len(kept), len(names))
    values = torch.tensor([[value for value, _ in row] for row in read]).reshape(shape)
    bounds = torch.tensor([[bound for _, bound in row] for row in read], dtype=torch.int8)
    binary = bool(((values == 0) | (values == 1) | values.isnan()).all()) and not bounds.any()
    kind: Kind = "labels" if binary and task != "regression" else "values"
    some = bounds.reshape(shape) if bounds.any() else None
    return Targets(values, some, (), kind, kept, blank, faults)


def _are_classes(cells: Sequence[Sequence[str]], columns: int, task: AskedTask) -> bool:
    if columns != 1 or task == "regression":
        return False
    known = [row[0] for row in cells if not _is_missing(row[0])]
    if task == "classification":
        return True
    if all(map(_is_number, known)):
        return bool(known) and all(map(_is_binary, known))
    return not any(map(_is_number, known))


def _classes(
    where: str, name: str, cells: Sequence[str], *, blank: tuple[int, ...], most: int
) -> Targets:
    kept = tuple(i for i in range(len(cells)) if i not in set(blank))
    texts = [cells[i] for i in kept]
    if all(map(_is_number, texts)):  # 1 and 1.0 are one class
        values = sorted({float(text) for text in texts})
        class_names = tuple(map(class_name, values))
        codes = [values.index(float(text)) for text in texts]
    else:
        class_names = tuple(sorted(set(texts)))
        places = {text: place for place, text in enumerate(class_names)}
        codes = [places[text] for text in texts]
    if len(class_names) > most:
        raise DataError(
            f"{where}: column {name!r} holds {len(class_names):,} different classes in "
            f"{len(texts):,} rows, such as {class_names[0]!r}; name the columns to predict with "
            "target_columns"
        )
    codes_of_rows = torch.tensor(codes, dtype=torch.int64)
    return Targets(codes_of_rows, None, class_names, "classes", kept, blank, {})


def class_name(value: float) -> str:
    """Write a numeric class in its usual form: 1, not 1.0."""
    return str(int(value)) if value.is_integer() else repr(value)


def _require_numbers(where: str, name: str, cells: Sequence[str]) -> None:
    """Refuse a column without any number: it is the wrong column, not one with wrong cells."""
    known = [cell for cell in cells if not _is_missing(cell)]
    if not known and cells:
        raise DataError(f"{where}: column {name!r} is blank: there is nothing to learn")
    if known and not any(map(_is_number, known)):
        raise DataError(
            f"{where}: column {name!r} holds texts such as {known[0]!r:.40}, not numbers; name "
            "the columns to predict with target_columns"
        )


def _fault(names: Sequence[str], row: Sequence[str]) -> str | None:
    for name, cell in zip(names, row, strict=True):
        number = _split_bound(cell)[1]
        if _is_missing(cell):
            continue
        if not _is_number(number):
            rule = "not a number" if number == cell else "not a bound: > and < need a number"
            return f"{cell!r:.40} in column {name!r} is {rule}"
        if abs(float(number)) > LARGEST:
            return f"{cell!r:.40} in column {name!r} does not fit into 32 bits"
    return None


def _is_missing(cell: str) -> bool:
    return cell.lower() in MISSING


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _is_binary(cell: str) -> bool:
    return _is_number(cell) and float(cell) in (0.0, 1.0)


def _split_bound(cell: str) -> tuple[int, str]:
    """Split a cell into the kind of its bound (0 if it is none) and its number."""
    found = _BOUND.fullmatch(cell)
    if found is None:
        return 0, cell
    return (1 if found[1][0] in ">≥" else -1), found[2]


def read_value(cell: str) -> tuple[float, int]:
    """Return the number in a cell, as `cell_number` does, and whether it is a lower bound (1), an
    upper bound (−1) or the value itself (0).
    """
    bound, number = _split_bound(cell)
    value = cell_number(number)
    return value, bound if value == value else 0


def cell_number(cell: str) -> float:
    """Return the number in a cell; NaN if it is blank, not a number or too large."""
    if not _is_number(cell) or abs(float(cell)) > LARGEST:
        return math.nan
    return float(cell)
