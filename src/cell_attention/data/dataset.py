"""`GraphSet`: the graphs of a data source, the meaning of their numbers, and notes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cell_attention.data.file_format import Kind
from cell_attention.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from cell_attention.topology.complex import CellComplex

Progress = Callable[[int, int], None]
"""Called with the amount read so far and the total: rows of molecules or bytes of tables."""

GRAPH_POLYGON, MOLECULE_POLYGON = 6, 8
"""Longest chordless cycle that becomes a polygon by default: in graphs, as in the paper, and in
molecules, where rings of seven and eight atoms are common. Deviation: the paper
takes R = 6 for molecules too."""


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
    names: tuple[str, ...] = ()
    """What the file calls the molecules, if it has a column of names."""


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
