"""How the user wants a set to be split: by a rule, by a column, or by a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from cell_attention.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from cell_attention.data.dataset import GraphSet
    from cell_attention.data.splits.folds import Splits

SplitRule = Literal["auto", "random", "stratified", "scaffold"]
SEED = 12091996
"""Seed of the folds that the paper's authors used."""


@dataclass(frozen=True)
class SplitOptions:
    """A rule with its seed, or a column or a file that states the split."""

    rule: SplitRule = "auto"
    """Classes in equal shares if there are classes, at random, or molecules of one Bemis–Murcko
    scaffold together."""
    column: str | None = None
    """Column of a file of molecules: train, validation or test for one model, the name of a fold
    for folds."""
    file: Path | None = None
    """A JSON file: {train, validation[, test]} for one model; a list of these for folds, or the
    form of Errica et al. 2020."""
    seed: int = SEED
    """Of what is drawn at random."""

    def __post_init__(self) -> None:
        if self.file is not None:
            object.__setattr__(self, "file", Path(self.file))
        if self.rule not in get_args(SplitRule):
            known = ", ".join(map(repr, get_args(SplitRule)))
            raise InputError(f"split must be one of {known}, got {self.rule!r}")
        if self.column is not None and self.file is not None:
            raise InputError(
                "a split column and a file of splits both state the split; use one of them"
            )
        if self.rule != "auto" and (self.file is not None or self.column is not None):
            raise InputError(
                "a rule of splitting cannot be combined with a file of splits or a split column"
            )

    def folds(self, graph_set: "GraphSet", given: "int | Splits", nested: bool) -> "Splits":
        """Make the folds of a cross-validation, as many as given, or check those that are given;
        `nested` adds inner validation graphs to folds without a test split.
        """
        from cell_attention.data.splits import folds, split_files

        targets, groups = graph_set.require_targets(), self._groups(graph_set)
        if isinstance(given, folds.Splits):
            if self.file is not None or self.column is not None:
                raise InputError("folds and split both state the splits; use one of them")
            made = folds.Splits.of(given.folds, given.origin)
            folds.require_folds("folds", made.folds, len(targets))
        elif self.file is not None:
            made = split_files.read_folds(self.file, len(targets))
        elif self.column is not None:
            made = split_files.folds_from_column(self._where(graph_set), graph_set.split_cells)
        elif groups is not None:
            made = folds.grouped_folds(groups, given, self.seed)
        elif self.rule == "random" or targets.is_floating_point():
            made = folds.shuffled_folds(targets, given, self.seed)
        else:
            made = folds.stratified_folds(targets, given, self.seed)
        return folds.nested(made, targets, seed=self.seed, groups=groups) if nested else made

    def holdout(self, graph_set: "GraphSet", validation: float, test: float) -> "Splits":
        """Split once into training, validation and test graphs."""
        from cell_attention.data.splits import folds, split_files

        targets, groups = graph_set.require_targets(), self._groups(graph_set)
        if self.file is not None:
            fold, origin = split_files.read_holdout(self.file, len(targets)), self.file.name
        elif self.column is not None:
            lines = () if graph_set.molecules is None else graph_set.molecules.lines
            where, cells = self._where(graph_set), graph_set.split_cells
            fold = split_files.holdout_from_column(where, cells, lines)
            origin = f"column {self.column}"
        else:
            fold = folds.holdout(
                targets,
                validation,
                test,
                seed=self.seed,
                groups=groups,
                stratified=self.rule != "random",
            )
            rule = "" if self.rule == "auto" else f"{self.rule}, "
            origin = f"{validation:g} for validation, {test:g} for testing, {rule}seed {self.seed}"
        return folds.Splits.of((fold,), origin)

    def _where(self, graph_set: "GraphSet") -> str:
        return f"{graph_set.name}, column {self.column!r}"

    def _groups(self, graph_set: "GraphSet") -> tuple[str, ...] | None:
        """Return the group of every graph, or None if the rule has no groups."""
        targets: Tensor = graph_set.require_targets()
        if self.rule == "stratified" and targets.is_floating_point():
            raise InputError("split stratified needs classes as targets, got values")
        if self.rule != "scaffold":
            return None
        if graph_set.molecules is None:
            raise InputError(f"split scaffold needs a file of molecules, got {graph_set.name}")
        from cell_attention.data.splits.scaffolds import scaffolds

        return scaffolds(graph_set.molecules.smiles)
