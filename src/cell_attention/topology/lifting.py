"""Lifting: attach a polygon to every short chordless cycle of a graph (paper §3.1, App. A)."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from cell_attention.errors import InputError
from cell_attention.topology.compiled import as_array
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.cycles import chordless_cycles
from cell_attention.topology.graphs import EdgeMerge
from cell_attention.topology.limits import Limits
from cell_attention.topology.pairs import check_lower_pairs
from cell_attention.topology.readers import as_graphs


def lift(
    graphs: Any,
    max_polygon: int = 6,
    *,
    edge_merge: EdgeMerge | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen, so sharing one is safe
) -> CellComplex:
    """The cell complexes of graphs: their nodes, their edges, and a polygon per chordless cycle.

    graphs: a PyG `Data`, `Batch` or data set, a networkx graph, a scipy adjacency matrix, a
        CellComplex (its polygons are found anew), or a sequence of graphs.
    max_polygon: longest chordless cycle that becomes a polygon (R in the paper), at least 3.
    edge_merge: what becomes of the features of an edge whose two directions disagree: their "mean",
        the "first" listed, or None to refuse.
    limits: how large the complex of one graph may grow.
    """
    return attach_polygons(as_graphs(graphs, edge_merge), max_polygon, limits)


def attach_polygons(
    graphs: CellComplex,
    max_polygon: int = 6,
    limits: Limits = Limits(),  # noqa: B008 - frozen, so sharing one is safe
) -> CellComplex:
    """The same nodes and edges with a polygon on every chordless cycle of 3…`max_polygon` nodes."""
    check_max_polygon(max_polygon)
    edge_nodes, node_complex = graphs._edge_array, as_array(graphs.node_complex)
    check_lower_pairs(edge_nodes, node_complex, graphs.num_complexes, limits.pairs)
    cycles = chordless_cycles(edge_nodes, node_complex, max_polygon, limits)
    polygon = np.repeat(np.arange(cycles.sizes.size), cycles.sizes)
    first_side = cycles.edges[np.cumsum(cycles.sizes) - cycles.sizes]
    polygon_complex = node_complex[edge_nodes[0, first_side]]
    device = graphs.device
    return replace(
        graphs,
        polygon_edges=torch.from_numpy(np.stack([cycles.edges, polygon])).to(device),
        polygon_signs=torch.from_numpy(cycles.signs).to(device),
        polygon_complex=torch.from_numpy(polygon_complex).to(device),
        polygon_features=None,
    )


def check_max_polygon(max_polygon: int) -> None:
    """Refuse what is no length of a cycle."""
    if (
        isinstance(max_polygon, bool)
        or not isinstance(max_polygon, int | np.integer)
        or max_polygon < 3
    ):
        raise InputError(f"max_polygon must be an integer of at least 3, got {max_polygon!r}")
