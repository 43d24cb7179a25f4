"""The record of a model in `config.json`: entries that are not valid are refused."""

import math
from pathlib import Path
from typing import Any

from cell_attention.errors import DataError, SourceNotFoundError

Range = tuple[float, float] | None
"""The least and the largest value of a column; None if there are no two different ones."""

Margin = float | None
"""Half of the width of an interval; None if there are too few validation graphs for one."""

LISTS = {
    "elements": (0, 999), "bonds": (0, 999), "charges": (-10_000, 10_000),
    "atom_charges": (-999, 999), "radicals": (0, 10_000), "nodes": (0, 2**40), "rings": (0, 2**40),
}  # fmt: skip
"""The lists of whole numbers in `seen`, and between which numbers they lie: elements and bond types
by RDKit's numbers, net charges, charges of atoms, unpaired electrons, and, as lists of one number,
the most nodes of a graph and the most atoms of a ring."""


def file_of(folder: Path, name: Any) -> Path:
    """Return the file that a record names, which must be in the folder itself."""
    plain = isinstance(name, str) and name == Path(name).name and "\\" not in name
    if not plain or name in ("", ".", ".."):
        record = folder / "config.json"
        raise DataError(f"{record}: weights must be a file in the folder, got {name!r}")
    path: Path = folder / name
    if not path.is_file():
        raise SourceNotFoundError(f"{folder} is not a MODEL_DIR: {name} is missing")
    if path.resolve().parent != folder.resolve():
        raise DataError(f"{path}: this link leaves the folder; copy the file there")
    return path


def require_consistent(path: Path, record: dict[str, Any]) -> None:
    """Refuse entries that contradict each other: predictions would get wrong names."""
    task, outputs = record["task"], record["sizes"]["outputs"]
    labels, names, limits = record["labels"], record["target_names"], record["thresholds"]
    for name in ("labels", "target_names"):
        texts = record[name]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise DataError(f"{path}: {name} must be a list of texts")
        if len(set(texts)) < len(texts):
            raise DataError(f"{path}: {name} must differ from each other")
    counts = {
        "labels": (len(labels), {0, outputs} if task == "classes" else {0}),
        "target_names": (len(names), {0, 1 if task == "classes" else outputs}),
        "thresholds": (
            len(limits) if isinstance(limits, list) else -1,
            {0, *([1] if task == "classes" and outputs == 2 else [])}
            if task != "labels"
            else {0, outputs},
        ),
    }
    for name, (count, allowed) in counts.items():
        if count not in allowed:
            raise DataError(f"{path}: {name} do not fit {outputs} outputs of task {task!r}")
    if not all(type(limit) in (int, float) and 0.0 <= limit <= 1.0 for limit in limits):
        raise DataError(f"{path}: thresholds must lie in [0, 1], got {limits}")


def seen_from(path: Path, record: Any) -> dict[str, tuple[int, ...]]:
    """Read the entry `seen`; refuse what is not a known list of whole numbers."""
    for name, numbers in record.items():
        if name not in LISTS or not isinstance(numbers, list):
            raise DataError(f"{path}: seen must hold lists of {', '.join(LISTS)}")
        least, most = LISTS[name]
        if not all(type(number) is int and least <= number <= most for number in numbers):
            raise DataError(f"{path}: seen {name} must be whole numbers in {least}…{most}")
        if name in ("nodes", "rings") and len(numbers) != 1:
            raise DataError(f"{path}: seen {name} must hold one number, got {len(numbers)}")
    return {str(name): tuple(numbers) for name, numbers in record.items()}


def ranges_from(path: Path, record: Any, columns: int) -> tuple[Range, ...]:
    """Read the entry `ranges`: a range or null for each column of values, or nothing at all."""
    if not isinstance(record, list) or len(record) not in {0, columns}:
        raise DataError(f"{path}: ranges must be a list with an entry per column of values")
    for entry in record:
        if entry is None:
            continue
        if not isinstance(entry, list) or len(entry) != 2 or not all(map(is_number, entry)):
            raise DataError(f"{path}: ranges must hold two finite numbers each, got {entry!r:.60}")
        if float(entry[0]) >= float(entry[1]):
            raise DataError(f"{path}: ranges must increase, got {entry}")
    return tuple(None if entry is None else (float(entry[0]), float(entry[1])) for entry in record)


def margins_from(path: Path, record: Any, columns: int) -> tuple[Margin, ...]:
    """Read the entry `margins`: a number or null for each column of values, or nothing at all."""
    if not isinstance(record, list) or len(record) not in {0, columns}:
        raise DataError(f"{path}: margins must be a list with an entry per column of values")
    for entry in record:
        if entry is not None and not (is_number(entry) and entry >= 0):
            raise DataError(f"{path}: margins must be finite and at least 0, got {entry!r:.60}")
    return tuple(None if entry is None else float(entry) for entry in record)


def is_number(value: Any) -> bool:
    """Whether this entry of a record is a finite number."""
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # a whole number beyond float64
        return False
