"""`GraphSet`: the graphs of a data source, the meaning of their numbers, and notes."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from cell_attention.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from cell_attention.topology.complex import CellComplex

Progress = Callable[[int, int], None]
"""Called with the amount read so far and the total: rows of molecules or bytes of tables."""

OnError = Literal["fail", "skip", "report"]
"""How to treat rows that cannot be read: raise an error, leave them out and count them, or leave
them out and list each."""

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx")
MOLECULE_FILES = (*TABLES, ".smi", ".sdf")
MOLECULE_FILE = re.compile(
    r".*\.((csv|tsv|txt|smi|sdf)(\.gz)?|parquet|xlsx)", re.IGNORECASE | re.DOTALL
)
"""The name of a file of molecules."""

GRAPH_POLYGON, MOLECULE_POLYGON = 6, 8
"""Longest chordless cycle that becomes a polygon by default: in graphs, as in the paper, and in
molecules, where rings of seven and eight atoms are common. Deviation: the paper
takes R = 6 for molecules too."""

NO_DESCRIPTORS = ("none", "morgan")
"""Words of `Columns.descriptors` for none of RDKit's."""
COUNTED = ("morgan", "both")
"""Words of `Columns.descriptors` that turn on the counts of surroundings, which are what Morgan
counts and a branch of the network (`NetworkConfig.counts`); "both" is "rdkit" beside them."""
USUAL_DESCRIPTORS = ("rdkit",)
"""The descriptors of a network that reads them: they cost a third of a millisecond a molecule."""

AskedTask = Literal["auto", "classification", "regression"]

Kind = Literal["classes", "labels", "values"]
"""Kind of targets: one of several classes, zeros and ones with gaps, or numbers."""


def is_molecule_file(source: "str | Path") -> bool:
    """Whether the name of a source is that of a file of molecules."""
    return MOLECULE_FILE.fullmatch(str(source)) is not None


@dataclass(frozen=True)
class Columns:
    """The columns of a table of molecules by role; None chooses them by their order."""

    smiles: str | None = None
    """Column of the molecules; by default found by its name, then by its cells."""
    targets: tuple[str, ...] | None = None
    """Columns to predict; by default all others of a table that can be targets, none of an .sdf."""
    split: str | None = None
    """Column that says train, validation or test."""
    task: AskedTask = "auto"
    """Kind of targets; "auto" takes zeros and ones, and texts, as classes."""
    descriptors: Sequence[str] | None = None
    """Descriptors of whole molecules that become `complex_features`: "rdkit", a quick set of
    RDKit's, "rdkit-all", "none", or columns of the table; by default what the model reads."""

    def __post_init__(self) -> None:
        if isinstance(self.descriptors, str):
            object.__setattr__(self, "descriptors", (self.descriptors,))
        if self.descriptors is not None:
            object.__setattr__(self, "descriptors", tuple(self.descriptors))
            if "none" in self.descriptors and len(self.descriptors) > 1:
                raise InputError(f"descriptors 'none' stands alone, got {self.descriptors}")
        if isinstance(self.targets, str):
            raise InputError(f"targets must be a tuple of names, got the text {self.targets!r}")
        if self.targets is not None:
            object.__setattr__(self, "targets", tuple(self.targets))
        if self.task not in get_args(AskedTask):
            known = ", ".join(map(repr, get_args(AskedTask)))
            raise InputError(f"task must be one of {known}, got {self.task!r}")


@dataclass(frozen=True)
class Molecules:
    """What is known about molecules besides their graphs, one entry per graph."""

    lines: tuple[int, ...]
    """Line in the file; for an .sdf the number of the record."""
    smiles: tuple[str, ...]
    """Canonical SMILES, so that the same molecule has the same text."""
    elements: "Tensor"
    """(N,) atomic number of every node."""
    bonds: "Tensor"
    """(E,) RDKit's bond type of every edge."""
    rings: tuple[int, ...]
    """Atoms of the largest ring in RDKit's ring set, 0 if there is none."""
    parts: tuple[str, ...] = ()
    """The cells of the split column, if there is one."""
    column: str = ""
    """The name of the column of molecules, if they come from a table."""


@dataclass(frozen=True)
class GraphSet:
    """A data set of graphs, read and checked."""

    name: str
    graphs: "CellComplex"
    """Nodes, edges, features and targets; polygons once it is lifted."""
    class_names: tuple[str, ...] = ()
    """Class k as the source writes it; empty for regression or no targets."""
    notes: tuple[str, ...] = ()
    """What was repaired or assumed while reading, one sentence each."""
    featuriser: dict[str, Any] = field(default_factory=dict)
    """Meaning of the feature columns, as a JSON record: a model can only predict for graphs with
    the same record."""
    target_names: tuple[str, ...] = ()
    """Names of the target columns, if they have names."""
    molecules: Molecules | None = None
    """Only for files of molecules."""
    kind: Kind | None = None
    """Kind of targets if the source or the user states it; else it is inferred from them."""
    remarks: tuple[str, ...] = ()
    """Information about the data that needed no repair, one sentence each."""
    max_polygon: int | None = None
    """Longest cycle that was searched in lifting; None before lifting."""

    @property
    def usual_polygon(self) -> int:
        """Longest chordless cycle that becomes a polygon by default."""
        return GRAPH_POLYGON if self.molecules is None else MOLECULE_POLYGON

    @property
    def split_cells(self) -> tuple[str, ...]:
        """The cells of the split column."""
        if self.molecules is None or not self.molecules.parts:
            raise InputError(f"{self.name} was read without a split column")
        return self.molecules.parts

    def require_targets(self) -> "Tensor":
        """Return the targets; refuse a set that has none, or only one class."""
        targets = self.graphs.targets
        if targets is None:
            advice = "; name columns with target_columns" if self.molecules is not None else ""
            raise InputError(f"{self.name} has no targets to learn{advice}")
        if not targets.is_floating_point() and targets.unique().numel() < 2:
            raise InputError(f"{self.name}: all graphs are of one class")
        return targets
