"""The text of a splits.json in short: training graphs that are all the others are left out."""

import json
from typing import Any

_MOST_NUMBERS = 5_000_000
"""That short splits may stand for: a few hostile bytes must not fill the memory."""


def pack_splits(text: str) -> str | None:
    """Short splits as JSON, a line per fold; None if they would not give back this very text."""
    try:
        folds = [_short(fold) for fold in json.loads(text)]
        if splits_text(folds) != text:
            return None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        return None
    rows = [json.dumps(fold, separators=(",", ":")) for fold in folds]
    return "[\n" + ",\n".join(rows) + "\n]" if rows else "[]"


def splits_text(folds: Any) -> str:
    """The text of splits.json from its short form; raise an error of Python's if it is not one."""
    counts = [fold["graphs"] for fold in folds if "train" not in fold]
    if any(type(count) is not int or count < 0 for count in counts):
        raise ValueError("the number of graphs must be a whole number of at least 0")
    if sum(counts) > _MOST_NUMBERS:
        raise ValueError(f"short splits must stand for at most {_MOST_NUMBERS:,} numbers")
    return json.dumps([_whole(fold) for fold in folds])


def _short(fold: dict[str, list[int]]) -> dict[str, Any]:
    """A fold without its training graphs, if these are all the others in increasing order."""
    graphs = sum(len(fold[name]) for name in ("train", "validation", "test"))
    short = {"graphs": graphs, "validation": fold["validation"], "test": fold["test"]}
    return short if graphs <= _MOST_NUMBERS and _whole(short) == fold else fold


def _whole(fold: dict[str, Any]) -> dict[str, Any]:
    if "train" in fold:
        return fold
    apart = {*fold["validation"], *fold["test"]}
    train = [number for number in range(fold["graphs"]) if number not in apart]
    return {"train": train, "validation": fold["validation"], "test": fold["test"]}
