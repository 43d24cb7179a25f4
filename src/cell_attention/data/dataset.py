"""What a data source holds before lifting: graphs, what their numbers mean, what was assumed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex


@dataclass(frozen=True)
class GraphSet:
    """A data set of graphs, read and checked."""

    name: str
    graphs: "CellComplex"
    """Nodes, edges, features and targets; no polygons yet."""
    class_names: tuple[str, ...] = ()
    """Class k as the source writes it; empty for regression or no targets."""
    notes: tuple[str, ...] = ()
    """What was repaired or assumed while reading, one sentence each."""
