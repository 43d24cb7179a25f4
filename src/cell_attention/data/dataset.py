"""What a data source holds before lifting: graphs, what their numbers mean, what was assumed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex

Progress = Callable[[int, int], None]
"""Told how much of how much is read: rows of molecules, bytes of tables."""

OnError = Literal["fail", "skip"]
"""What becomes of a row that cannot be read."""


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
    featuriser: dict[str, Any] = field(default_factory=dict)
    """What the columns of the features are, as JSON can hold it: a model is of use only to graphs
    with the same."""
