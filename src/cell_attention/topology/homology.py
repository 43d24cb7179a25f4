"""Betti numbers of every complex, from exact ranks by elimination over a large prime field."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cell_attention.topology.compiled import as_array, compiled

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex

Integers = NDArray[np.int64]

# Products of two residues fit into 64 bits. A rank over this field differs from the rational one
# only where the homology has torsion of exactly this order.
_PRIME = 2**31 - 1


def betti_numbers(complexes: "CellComplex") -> NDArray[np.int64]:
    """(num_complexes, 3): b₀ = N − rank B₁, b₁ = E − rank B₁ − rank B₂, b₂ = P − rank B₂."""
    count = complexes.num_complexes
    node_complex, edge_complex = as_array(complexes.node_complex), as_array(complexes.edge_complex)
    polygon_complex = as_array(complexes.polygon_complex)
    forest = _spanning_edges(complexes._edge_array, complexes.num_nodes)
    independent = _independent_polygons(
        complexes._side_array,
        as_array(complexes.polygon_signs),
        complexes.num_edges,
        complexes.num_polygons,
    )
    rank_1 = np.bincount(edge_complex[forest], minlength=count)
    rank_2 = np.bincount(polygon_complex[independent], minlength=count)
    nodes, edges, polygons = (
        np.bincount(member, minlength=count)
        for member in (node_complex, edge_complex, polygon_complex)
    )
    return np.stack([nodes - rank_1, edges - rank_1 - rank_2, polygons - rank_2], axis=1)


@compiled
def _spanning_edges(edge_nodes: Any, num_nodes: int) -> Any:
    """(E,) mask of a spanning forest: a largest set of independent columns of B₁."""
    parent = np.arange(num_nodes)
    chosen = np.zeros(edge_nodes.shape[1], np.bool_)
    for e in range(edge_nodes.shape[1]):
        ends = np.empty(2, np.int64)
        for side in range(2):
            v = edge_nodes[side, e]
            while parent[v] != v:
                parent[v] = parent[parent[v]]
                v = parent[v]
            ends[side] = v
        if ends[0] != ends[1]:
            parent[ends[1]] = ends[0]
            chosen[e] = True
    return chosen


@compiled
def _inverse(value: int) -> Any:
    """Multiplicative inverse modulo the prime, by Fermat's little theorem."""
    result, base, exponent = 1, value % _PRIME, _PRIME - 2
    while exponent > 0:
        if exponent & 1:
            result = result * base % _PRIME
        base = base * base % _PRIME
        exponent >>= 1
    return result


@compiled
def _doubled(values: Integers) -> Integers:
    more = np.empty(2 * values.size, np.int64)
    more[: values.size] = values
    return more


@compiled
def _independent_polygons(
    polygon_edges: Any, polygon_signs: Any, num_edges: int, num_polygons: int
) -> Any:
    """(P,) mask of polygons whose boundary is not a combination of the boundaries before it.

    Every kept column is scaled to have 1 at its last edge, its pivot; a new column is reduced from
    its last edge downwards until it is empty or ends at an edge that is not a pivot yet.
    """
    chosen = np.zeros(num_polygons, np.bool_)
    begin, end = np.full(num_edges, -1, np.int64), np.empty(num_edges, np.int64)
    rows, values = np.empty(16, np.int64), np.empty(16, np.int64)
    used = 0
    column = np.zeros(num_edges, np.int64)
    i = 0
    for p in range(num_polygons):
        last, least = -1, num_edges
        while i < polygon_edges.shape[1] and polygon_edges[1, i] == p:
            e = polygon_edges[0, i]
            column[e] = (column[e] + polygon_signs[i]) % _PRIME
            last, least = max(last, e), min(least, e)
            i += 1
        while last >= least:
            factor = column[last]
            if factor == 0:
                last -= 1
                continue
            if begin[last] < 0:
                break
            for c in range(begin[last], end[last]):
                column[rows[c]] = (column[rows[c]] - factor * values[c]) % _PRIME
                least = min(least, rows[c])
        if last < least:
            continue
        chosen[p] = True
        scale = _inverse(column[last])
        begin[last] = used
        for e in range(least, last + 1):
            if column[e] != 0:
                if used == rows.size:
                    rows, values = _doubled(rows), _doubled(values)
                rows[used], values[used] = e, column[e] * scale % _PRIME
                used += 1
                column[e] = 0
        end[last] = used
    return chosen
