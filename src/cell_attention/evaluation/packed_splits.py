"""A short form of splits.json, without the training graphs where these are all the others."""

import json
from typing import Any

_MOST_NUMBERS = 5_000_000
"""Most numbers that short splits may expand to: a few hostile bytes must not fill the memory."""


def pack_splits(text: str) -> str | None:
    """Shorten splits to JSON with a line per fold; None if that would not restore the same text."""
    try:
        folds = [_short(fold) for fold in json.loads(text)]
        if splits_text(folds) != text:
            return None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        return None
    rows = [json.dumps(fold, separators=(",", ":")) for fold in folds]
    return "[\n" + ",\n".join(rows) + "\n]" if rows else "[]"


def splits_text(folds: Any) -> str:
    """Restore the text of splits.json; raise KeyError, TypeError or ValueError if not valid."""
    counts = [fold["graphs"] for fold in folds if "train" not in fold]
    if any(type(count) is not int or count < 0 for count in counts):
        raise ValueError("the number of graphs must be a whole number of at least 0")
    if sum(counts) > _MOST_NUMBERS:
        raise ValueError(f"short splits must expand to at most {_MOST_NUMBERS:,} numbers")
    return json.dumps([_whole(fold) for fold in folds])


def _short(fold: dict[str, list[int]]) -> dict[str, Any]:
    """Remove the training graphs of a fold, if these are all the others in increasing order."""
    graphs = sum(len(fold[name]) for name in ("train", "validation", "test"))
    short = {"graphs": graphs, "validation": fold["validation"], "test": fold["test"]}
    return short if graphs <= _MOST_NUMBERS and _whole(short) == fold else fold


def _whole(fold: dict[str, Any]) -> dict[str, Any]:
    if "train" in fold:
        return fold
    apart = {*fold["validation"], *fold["test"]}
    train = [number for number in range(fold["graphs"]) if number not in apart]
    return {"train": train, "validation": fold["validation"], "test": fold["test"]}
