"""What a data source holds before lifting: graphs, what their numbers mean, what was assumed."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cell_attention.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from cell_attention.topology.complex import CellComplex

Progress = Callable[[int, int], None]
"""Told how much of how much is read: rows of molecules, bytes of tables."""

OnError = Literal["fail", "skip", "report"]
"""What becomes of rows that cannot be read: refused, left out and counted, or left out and listed
one by one."""

MOLECULE_FILES = (".csv", ".smi", ".sdf")
MOLECULE_FILE = re.compile(r".*\.(csv|smi|sdf)(\.gz)?", re.IGNORECASE | re.DOTALL)
"""The name of a file of molecules."""

GRAPH_POLYGON, MOLECULE_POLYGON = 6, 8
"""Longest chordless cycle that becomes a polygon where nothing is said: in graphs, as in the paper,
and in molecules, whose rings of seven and eight are as real as the others. Deviation: the paper
takes R = 6 for molecules too."""

AskedTask = Literal["auto", "classification", "regression"]

Kind = Literal["classes", "labels", "values"]
"""What targets are: one of several classes, zeros and ones with gaps, or numbers."""


def is_molecule_file(source: "str | Path") -> bool:
    """Whether a SOURCE is a file of molecules by its name."""
    return MOLECULE_FILE.fullmatch(str(source)) is not None


@dataclass(frozen=True)
class Columns:
    """Which columns of a table of molecules mean what; None leaves it to their order."""

    smiles: str | None = None
    """The molecules; the first one by default."""
    targets: tuple[str, ...] | None = None
    """To predict; all others by default. In an .sdf there is no default."""
    split: str | None = None
    """Says train, validation or test."""
    task: AskedTask = "auto"
    """What the targets are; "auto" takes zeros and ones, and texts, as classes."""


@dataclass(frozen=True)
class Molecules:
    """What molecules have beside their graphs, graph by graph."""

    lines: tuple[int, ...]
    """Where they stand in their file."""
    smiles: tuple[str, ...]
    """Canonical, so that the same molecule has the same text."""
    elements: "Tensor"
    """(N,) atomic number of every node."""
    bonds: "Tensor"
    """(E,) RDKit's bond type of every edge."""
    rings: tuple[int, ...]
    """Atoms of the largest ring in RDKit's ring set, 0 where there is none."""
    parts: tuple[str, ...] = ()
    """The cells of the split column, where there is one."""


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
    """What the columns of the features are, as JSON can hold it: a model is of use only to graphs
    with the same."""
    target_names: tuple[str, ...] = ()
    """The columns that the targets come from, where they have names."""
    molecules: Molecules | None = None
    """Of files of molecules."""
    kind: Kind | None = None
    """What the targets are, where the source or the user says so; their numbers tell otherwise."""
    remarks: tuple[str, ...] = ()
    """What is worth knowing though nothing was repaired, one sentence each."""
    max_polygon: int | None = None
    """Edges of the largest polygon that was looked for; None before lifting."""

    @property
    def usual_polygon(self) -> int:
        """Longest chordless cycle that becomes a polygon where nothing else is said."""
        return GRAPH_POLYGON if self.molecules is None else MOLECULE_POLYGON

    @property
    def split_cells(self) -> tuple[str, ...]:
        """The cells of the split column."""
        if self.molecules is None or not self.molecules.parts:
            raise InputError(f"{self.name} was read without a split column")
        return self.molecules.parts

    def require_targets(self) -> "Tensor":
        """What is to be learned; refused where there is nothing, or a single class."""
        targets = self.graphs.targets
        if targets is None:
            raise InputError(f"{self.name} has no targets to learn")
        if not targets.is_floating_point() and targets.unique().numel() < 2:
            raise InputError(f"{self.name}: all graphs are of one class")
        return targets
