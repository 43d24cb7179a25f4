"""Which graphs train and which are held out: stratified, at random, or groups together."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from operator import index
from typing import Any

import numpy as np
from torch import Tensor

from cell_attention.data.splits.options import SEED
from cell_attention.data.splits.scaffolds import folds_by_group, hold_out_groups
from cell_attention.errors import InputError


@dataclass(frozen=True)
class Fold:
    """One split of the graphs, by their numbers."""

    train: tuple[int, ...]
    validation: tuple[int, ...]
    """Used to choose the epoch, and the configuration if there are several."""
    test: tuple[int, ...] = ()
    """Held out from every choice; if empty, the validation graphs are held out."""

    @property
    def held_out(self) -> tuple[int, ...]:
        """The held-out graphs, whose scores a cross-validation reports."""
        return self.test or self.validation

    @property
    def rest(self) -> tuple[int, ...]:
        """All graphs that are not held out, sorted by number."""
        return tuple(sorted(self.train + self.validation)) if self.test else self.train


@dataclass(frozen=True)
class Splits:
    """The folds of a cross-validation, and where they come from."""

    folds: tuple[Fold, ...]
    origin: str
    digest: str
    """SHA-256 of the folds: equal folds have equal digests, whatever their origin."""

    @staticmethod
    def of(folds: tuple[Fold, ...], origin: str) -> "Splits":
        """Return the folds with their digest; the parts of a fold may be any sequences of graph
        numbers.
        """
        made = tuple(_with_numbers(place, fold) for place, fold in enumerate(folds))
        listed = [[fold.train, fold.validation, fold.test] for fold in made]
        return Splits(made, origin, hashlib.sha256(json.dumps(listed).encode()).hexdigest())


def _with_numbers(place: int, fold: Fold) -> Fold:
    """Return the fold with its graph numbers as plain integers; refuse anything else."""
    if not isinstance(fold, Fold):
        raise InputError(f"folds, fold {place}: must be a Fold, got {fold!r:.40}")
    parts = {}
    for name in ("train", "validation", "test"):
        given: Any = getattr(fold, name)
        value = given
        try:
            numbers = []
            for value in given.tolist() if hasattr(given, "tolist") else given:
                numbers.append(index(value))
                if isinstance(value, bool):
                    raise TypeError
        except TypeError:
            rule = f"{name} must be a list of graph numbers"
            raise InputError(f"folds, fold {place}: {rule}, got {value!r:.40}") from None
        parts[name] = tuple(numbers)
    return Fold(**parts)


def require_folds(where: str, folds: Sequence[Fold], num_graphs: int) -> None:
    """Refuse folds that do not hold out each graph exactly once; `where` begins the message."""
    if len(folds) < 2:
        raise InputError(f"{where}: must be a list of at least 2 folds, got {len(folds)}")
    for place, fold in enumerate(folds):
        require_fold(f"{where}, fold {place}", fold, num_graphs)
    held = sorted(chain.from_iterable(fold.held_out for fold in folds))
    if held != list(range(num_graphs)):
        missing = sorted(set(range(num_graphs)) - set(held))
        detail = (
            f"graph {missing[0]} is in no fold"
            if missing
            else f"graph {next(a for a, b in pairwise(held) if a == b)} is in two folds"
        )
        raise InputError(
            f"{where}: the folds must hold out each of {num_graphs} graphs exactly once; {detail}"
        )
    for place, fold in enumerate(folds):
        if bool(fold.test) != bool(folds[0].test):
            raise InputError(
                f"{where}: either all folds have a test split or none; fold {place} differs "
                "from fold 0"
            )
        left = set(range(num_graphs)).difference(fold.train, fold.validation, fold.test)
        if left:
            raise InputError(f"{where}, fold {place}: graph {min(left)} is in none of its splits")


def require_fold(where: str, fold: Fold, num_graphs: int) -> None:
    """Refuse a split with an empty part, a graph that does not exist, or one listed twice."""
    parts: dict[str, tuple[int, ...]] = vars(fold)
    for name, numbers in parts.items():
        if not numbers and name != "test":
            raise InputError(f"{where}: {name} is empty or missing")
        wrong = [number for number in numbers if not 0 <= number < num_graphs]
        if wrong:
            raise InputError(f"{where}: {name} must list graphs 0…{num_graphs - 1}, got {wrong[0]}")
    every = sorted(chain.from_iterable(parts.values()))
    twice = [a for a, b in pairwise(every) if a == b]
    if twice:
        raise InputError(f"{where}: graph {twice[0]} is listed twice")


def stratified_folds(targets: Tensor, folds: int = 10, seed: int = SEED) -> Splits:
    """Make folds with equal shares of classes: scikit-learn's StratifiedKFold with shuffling."""
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
    """Make random folds of equal size, for targets that are not classes: scikit-learn's KFold."""
    from sklearn.model_selection import KFold

    _check_seed(seed)
    if not 2 <= folds <= len(targets):
        raise InputError(f"folds must lie in 2…{len(targets)}, the number of graphs, got {folds}")
    parts = KFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(targets)))
    made = tuple(Fold(tuple(train.tolist()), tuple(held.tolist())) for train, held in parts)
    return Splits.of(made, f"{folds} shuffled folds, seed {seed}")


def grouped_folds(groups: Sequence[str], folds: int = 10, seed: int = SEED) -> Splits:
    """Make folds that keep groups together, such as molecules of one scaffold."""
    _check_seed(seed)
    parts = folds_by_group(groups, folds, seed)
    every = set(range(len(groups)))
    made = tuple(Fold(tuple(sorted(every.difference(part))), part) for part in parts)
    return Splits.of(made, f"{folds} folds by scaffold, seed {seed}")


def nested(
    splits: Splits, targets: Tensor, *, seed: int = SEED, groups: Sequence[str] | None = None
) -> Splits:
    """Make the held-out graphs of every fold its test split, and a tenth of the others its
    validation split (stratified or by groups), unless the fold has a test split already.
    """
    _check_seed(seed)
    if all(fold.test for fold in splits.folds):
        return splits
    made = tuple(
        fold
        if fold.test
        else Fold(*_held_out(fold.train, targets, 0.1, seed=seed, groups=groups), fold.validation)
        for fold in splits.folds
    )
    return Splits.of(made, f"{splits.origin}, a tenth of the rest for validation")


def holdout(
    targets: Tensor,
    validation: float,
    test: float,
    *,
    seed: int,
    groups: Sequence[str] | None = None,
    stratified: bool = True,
) -> Fold:
    """Split once into training, validation and test graphs: by groups if there are any, else
    stratified by class if wanted, else at random.
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
    needed = 3 if test else 2
    if len(targets) < needed:
        what = "training, validation and test need" if test else "training and validation need"
        raise InputError(f"{what} at least {needed} graphs, got {len(targets)}")
    rest: tuple[int, ...] = tuple(range(len(targets)))
    tested: tuple[int, ...] = ()
    hold_out = partial(_held_out, targets=targets, seed=seed, groups=groups, stratified=stratified)
    if test > 0.0:
        rest, tested = hold_out(rest, share=test)
    train, validated = hold_out(rest, share=validation / (1.0 - test))
    return Fold(train, validated, tested)


def _check_seed(seed: int) -> None:
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError(f"split_seed must lie in 0…{2**32 - 1}, got {seed!r}")


def _held_out(
    graphs: tuple[int, ...],
    targets: Tensor,
    share: float,
    *,
    seed: int,
    groups: Sequence[str] | None = None,
    stratified: bool = True,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Hold out a share of these graphs; return the rest and the share. Groups stay together, or
    classes are stratified if there are enough graphs of each.
    """
    from sklearn.model_selection import train_test_split

    if len(graphs) < 2:
        raise InputError(
            f"training and validation need at least 2 graphs, and {len(graphs)} of {len(targets)} "
            "is not held out"
        )
    if groups is not None:
        return hold_out_groups(graphs, groups, share=share, seed=seed)
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
