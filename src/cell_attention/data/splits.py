"""Which graphs train and which are held out: stratified folds, or those of a file."""

import hashlib
import json
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from cell_attention.errors import DataError, InputError, SourceNotFoundError

SEED = 12091996
"""Of the folds that the paper's authors used."""


@dataclass(frozen=True)
class Fold:
    """One division of the graphs, by their numbers."""

    train: tuple[int, ...]
    validation: tuple[int, ...]
    """Chooses the epoch, and the configuration where there are several."""
    test: tuple[int, ...] = ()
    """Touched once, in the fair protocol only."""


@dataclass(frozen=True)
class Splits:
    """The folds of a cross-validation, and where they come from."""

    folds: tuple[Fold, ...]
    origin: str
    digest: str
    """SHA-256 of the folds: the same divisions have the same one, whatever their origin."""

    @staticmethod
    def of(folds: tuple[Fold, ...], origin: str) -> "Splits":
        """Folds with their digest."""
        listed = [[fold.train, fold.validation, fold.test] for fold in folds]
        return Splits(folds, origin, hashlib.sha256(json.dumps(listed).encode()).hexdigest())


def stratified_folds(targets: Tensor, folds: int = 10, seed: int = SEED) -> Splits:
    """Folds with the classes in equal shares: scikit-learn's StratifiedKFold with shuffling."""
    from sklearn.model_selection import StratifiedKFold

    if folds < 2:
        raise InputError(f"folds must be at least 2, got {folds}")
    if targets.is_floating_point():
        raise InputError("stratified folds need classes as targets, got floating-point values")
    rarest = int(targets.bincount().clamp(min=0)[targets.unique()].min())
    if rarest < folds:
        raise InputError(
            f"folds must be at most {rarest}, the number of graphs in the rarest class, got {folds}"
        )
    divider = StratifiedKFold(folds, shuffle=True, random_state=seed)
    parts = divider.split(np.zeros(targets.numel()), targets.numpy())
    made = tuple(Fold(tuple(train.tolist()), tuple(held.tolist())) for train, held in parts)
    return Splits.of(made, f"{folds} stratified folds, seed {seed}")


def read_splits(path: Path, num_graphs: int) -> Splits:
    """Folds from a JSON file: a list of {train, validation[, test]}, or the published form of
    Errica et al. 2020, {test, model_selection: [{train, validation}]}.
    """
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: not a JSON file ({error})") from None
    if not isinstance(record, list) or len(record) < 2:
        raise DataError(f"{path}: must be a list of at least 2 folds")
    folds = tuple(_fold(path, place, entry, num_graphs) for place, entry in enumerate(record))
    held = sorted(chain.from_iterable(fold.test or fold.validation for fold in folds))
    if held != list(range(num_graphs)):
        missing = sorted(set(range(num_graphs)) - set(held))
        detail = (
            f"graph {missing[0]} is in none"
            if missing
            else f"graph {next(a for a, b in pairwise(held) if a == b)} is twice"
        )
        raise DataError(
            f"{path}: the held-out parts must hold each of {num_graphs} graphs once; {detail}"
        )
    return Splits.of(folds, path.name)


def _fold(path: Path, place: int, entry: Any, num_graphs: int) -> Fold:
    where = f"{path}, fold {place}"
    if not isinstance(entry, dict):
        raise DataError(f"{where}: must be an object with train and validation")
    inner = entry.get("model_selection", entry)
    inner = inner[0] if isinstance(inner, list) and inner else inner
    parts = {}
    for name, source in (("train", inner), ("validation", inner), ("test", entry)):
        values = source.get(name, []) if isinstance(source, dict) else None
        if not isinstance(values, list) or not all(type(v) is int for v in values):
            raise DataError(f"{where}: {name} must be a list of graph numbers")
        if not values and name != "test":
            raise DataError(f"{where}: {name} is empty or missing")
        wrong = [v for v in values if not 0 <= v < num_graphs]
        if wrong:
            raise DataError(
                f"{where}: {name} names graph {wrong[0]}, but they are 0…{num_graphs - 1}"
            )
        parts[name] = tuple(values)
    every = list(chain.from_iterable(parts.values()))
    if len(set(every)) < len(every):
        twice = next(v for v in every if every.count(v) > 1)
        raise DataError(f"{where}: graph {twice} is in it twice")
    return Fold(**parts)
