"""Which graphs train and which are held out: stratified folds, or those of a file."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from cell_attention.data.groups import divided_by_group, parts_by_group
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
    """Held out from every choice; where there is none, the validation graphs are held out."""

    @property
    def held_out(self) -> tuple[int, ...]:
        """The outer part, which a cross-validation reports."""
        return self.test or self.validation

    @property
    def rest(self) -> tuple[int, ...]:
        """Everything that is not held out, by number."""
        return tuple(sorted(self.train + self.validation)) if self.test else self.train


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

    _check_seed(seed)
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


def shuffled_folds(targets: Tensor, folds: int = 10, seed: int = SEED) -> Splits:
    """Folds of equal size at random, for targets that are no classes: scikit-learn's KFold."""
    from sklearn.model_selection import KFold

    _check_seed(seed)
    if not 2 <= folds <= len(targets):
        raise InputError(f"folds must lie in 2…{len(targets)}, the number of graphs, got {folds}")
    parts = KFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(targets)))
    made = tuple(Fold(tuple(train.tolist()), tuple(held.tolist())) for train, held in parts)
    return Splits.of(made, f"{folds} shuffled folds, seed {seed}")


def grouped_folds(groups: Sequence[str], folds: int = 10, seed: int = SEED) -> Splits:
    """Folds that keep the graphs of a group together: of molecules, those of one scaffold."""
    _check_seed(seed)
    parts = parts_by_group(groups, folds, seed)
    every = set(range(len(groups)))
    made = tuple(Fold(tuple(sorted(every.difference(part))), part) for part in parts)
    return Splits.of(made, f"{folds} folds by scaffold, seed {seed}")


def nested(
    splits: Splits, targets: Tensor, seed: int = SEED, groups: Sequence[str] | None = None
) -> Splits:
    """Folds whose held-out part is a test part: a tenth of the others, classes in equal shares or
    groups together, becomes the validation part, unless the fold has its own.
    """
    _check_seed(seed)
    if all(fold.test for fold in splits.folds):
        return splits
    made = tuple(
        fold
        if fold.test
        else Fold(*_divided(fold.train, targets, 0.1, seed, groups), fold.validation)
        for fold in splits.folds
    )
    return Splits.of(made, f"{splits.origin}, a tenth of the rest for validation")


def holdout(
    targets: Tensor,
    validation: float,
    test: float,
    seed: int,
    groups: Sequence[str] | None = None,
    stratified: bool = True,
) -> Fold:
    """One division into training, validation and test graphs: groups together where there are
    any, else classes in equal shares unless that is not wanted.
    """
    _check_seed(seed)
    if not 0.0 < validation < 1.0:
        raise InputError(f"validation must lie in (0, 1), got {validation}")
    if not 0.0 <= test < 1.0:
        raise InputError(f"test must lie in [0, 1), got {test}")
    if validation + test >= 1.0:
        raise InputError(
            f"validation and test must leave graphs to train on, got {validation} and {test}"
        )
    rest: tuple[int, ...] = tuple(range(len(targets)))
    tested: tuple[int, ...] = ()
    how = (seed, groups, stratified)
    if test > 0.0:
        rest, tested = _divided(rest, targets, test, *how)
    train, validated = _divided(rest, targets, validation / (1.0 - test), *how)
    return Fold(train, validated, tested)


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise InputError(f"split_seed must lie in 0…{2**32 - 1}, got {seed}")


def _divided(
    graphs: tuple[int, ...],
    targets: Tensor,
    share: float,
    seed: int,
    groups: Sequence[str] | None = None,
    stratified: bool = True,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """These graphs without a share of them, and that share; groups together, or classes in equal
    shares where there are enough of each.
    """
    from sklearn.model_selection import train_test_split

    if len(graphs) < 2:
        raise InputError(f"at least 2 graphs are needed to hold some out, got {len(graphs)}")
    if groups is not None:
        return divided_by_group(graphs, groups, share, seed)
    size = min(max(1, round(share * len(graphs))), len(graphs) - 1)
    classes = None
    if stratified and not targets.is_floating_point():
        chosen = targets[list(graphs)]
        counts = chosen.unique(return_counts=True)[1]
        if int(counts.min()) > 1 and min(size, len(graphs) - size) >= len(counts):
            classes = chosen.numpy()
    kept, taken = train_test_split(
        list(graphs), test_size=size, stratify=classes, random_state=seed
    )
    return tuple(sorted(kept)), tuple(sorted(taken))


PARTS = {"train": "train", "training": "train", "val": "validation", "valid": "validation",
         "validation": "validation", "test": "test"}  # fmt: skip
"""What a split column may say."""


def told_division(where: str, cells: Sequence[str]) -> Fold:
    """The division that a column tells, row by row."""
    parts: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    for row, cell in enumerate(cells):
        part = PARTS.get(cell.strip().lower())
        if part is None:
            raise DataError(
                f"{where}: the split must be train, validation or test, got {cell!r:.40}"
            )
        parts[part].append(row)
    for name in ("train", "validation"):
        if not parts[name]:
            raise DataError(f"{where}: no row of the split column says {name}")
    return Fold(*map(tuple, parts.values()))


def read_division(path: Path, num_graphs: int) -> Fold:
    """One division from a JSON file {train, validation[, test]}, as a MODEL_DIR holds it."""
    return _fold(path, None, _read_json(path), num_graphs)


def read_splits(path: Path, num_graphs: int) -> Splits:
    """Folds from a JSON file: a list of {train, validation[, test]}, or the published form of
    Errica et al. 2020, {test, model_selection: [{train, validation}]}.
    """
    record = _read_json(path)
    if not isinstance(record, list) or len(record) < 2:
        raise DataError(f"{path}: must be a list of at least 2 folds")
    folds = tuple(_fold(path, place, entry, num_graphs) for place, entry in enumerate(record))
    held = sorted(chain.from_iterable(fold.held_out for fold in folds))
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
    for place, fold in enumerate(folds):
        if bool(fold.test) != bool(folds[0].test):
            raise DataError(f"{path}: some folds have a test part, fold {place} is not like fold 0")
        left = set(range(num_graphs)).difference(fold.train, fold.validation, fold.test)
        if left:
            raise DataError(f"{path}, fold {place}: graph {min(left)} is in no part")
    return Splits.of(folds, path.name)


def _read_json(path: Path) -> Any:
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file" + (", a folder" * path.is_dir()))
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise DataError(f"{path}: not a JSON file ({error})") from None


def _fold(path: Path, place: int | None, entry: Any, num_graphs: int) -> Fold:
    where = f"{path}" if place is None else f"{path}, fold {place}"
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
