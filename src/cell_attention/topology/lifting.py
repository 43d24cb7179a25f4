"""Lifting: the cell complexes of graphs, each with a polygon on every short chordless cycle."""

from typing import Any

from cell_attention.topology.complex import CellComplex
from cell_attention.topology.graphs import EdgeMerge
from cell_attention.topology.limits import LIMITS, Limits
from cell_attention.topology.polygons import attach_polygons
from cell_attention.topology.readers import as_graphs


def lift(
    graphs: Any,
    max_polygon: int = 6,
    *,
    edge_merge: EdgeMerge | None = None,
    degrees: int | None = None,
    limits: Limits = LIMITS,
) -> CellComplex:
    """Lift graphs to cell complexes: their nodes, their edges, and a polygon per chordless cycle.

    graphs: a PyG `Data`, `Batch` or data set, a networkx graph, a scipy adjacency matrix, a
        CellComplex (its polygons are searched again), or a sequence of graphs.
    max_polygon: longest chordless cycle that becomes a polygon (R in the paper), at least 3.
    edge_merge: how to merge the features of an edge whose two directions disagree: their "mean",
        the "first" one listed, or None to raise an error.
    degrees: number of columns of the one-hot degrees that become the features of graphs without
        any; by default PyG graphs get the largest degree and one more, at most 64, as TU sets do,
        and other graphs none.
    limits: how large the complex of one graph may grow.
    """
    return attach_polygons(as_graphs(graphs, edge_merge, degrees), max_polygon, limits)
