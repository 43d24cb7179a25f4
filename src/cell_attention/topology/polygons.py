"""A polygon on every short chordless cycle of a graph (paper §3.1, App. A)."""

from dataclasses import replace

import numpy as np
import torch

from cell_attention.errors import InputError, LimitError
from cell_attention.topology.compiled import as_array
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.cycles import chordless_cycles
from cell_attention.topology.limits import LIMITS, Limits
from cell_attention.topology.neighbourhoods import check_pairs


def attach_polygons(
    graphs: CellComplex,
    max_polygon: int = 6,
    limits: Limits = LIMITS,
) -> CellComplex:
    """Add a polygon on every chordless cycle of 3…`max_polygon` nodes."""
    check_max_polygon(max_polygon)
    if not isinstance(limits, Limits):
        raise InputError(f"limits must be a Limits, got {limits!r:.60}")
    edge_nodes, node_complex = graphs._edge_array, as_array(graphs.node_complex)
    degrees, count = (
        np.bincount(edge_nodes.ravel(), minlength=node_complex.size),
        graphs.num_complexes,
    )
    check_pairs("lower", np.bincount(node_complex, degrees * (degrees - 1.0), count), limits.pairs)
    cycles = chordless_cycles(edge_nodes, node_complex, max_polygon, limits=limits)
    polygon = np.repeat(np.arange(cycles.sizes.size), cycles.sizes)
    first_side = cycles.edges[np.cumsum(cycles.sizes) - cycles.sizes]
    polygon_complex = node_complex[edge_nodes[0, first_side]]
    device = graphs.edge_nodes.device
    return replace(
        graphs,
        polygon_edges=torch.from_numpy(np.stack([cycles.edges, polygon])).to(device),
        polygon_signs=torch.from_numpy(cycles.signs).to(device),
        polygon_complex=torch.from_numpy(polygon_complex).to(device),
        polygon_features=None,
    )


def check_max_polygon(max_polygon: int) -> None:
    """Refuse a max_polygon that is not an integer of at least 3."""
    if (
        isinstance(max_polygon, bool)
        or not isinstance(max_polygon, int | np.integer)
        or max_polygon < 3
    ):
        raise InputError(f"max_polygon must be an integer of at least 3, got {max_polygon!r}")


def attach_where_possible(
    graphs: CellComplex,
    max_polygon: int,
    limits: Limits = LIMITS,
) -> tuple[CellComplex, list[str]]:
    """Lift all graphs within the limits; also return per graph the reason if it is left out."""
    faults = [""] * graphs.num_complexes
    try:
        return attach_polygons(graphs, max_polygon, limits), faults
    except LimitError:  # one or more graphs are too large: leave out only these
        for number in range(len(faults)):
            try:
                attach_polygons(graphs[number : number + 1], max_polygon, limits)
            except LimitError as error:
                faults[number] = str(error).replace("graph 0", "the graph")
    kept = torch.tensor([number for number, fault in enumerate(faults) if not fault]).long()
    return attach_polygons(graphs[kept], max_polygon, limits), faults
