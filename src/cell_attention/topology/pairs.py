"""Which edge hears which: lower pairs share a node, upper pairs share a polygon (paper Def. 4).

Pairs are (receiver, sender), sorted by receiver and then sender, without self-pairs or duplicates.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cell_attention.topology.compiled import compiled

Integers = NDArray[np.int64]


def lower_pairs(edge_nodes: Integers, num_nodes: int) -> Integers:
    """(2, M) pairs of edges that share a node.

    Deviation: read literally, Def. 4 makes every cell its own neighbour. Here no edge is, on either
    side, because the term (1+ε)·W_s h_e contains it already.
    """
    start, incident = incidence_lists(edge_nodes, num_nodes)
    degree = np.diff(start)
    # Allocated here and not in the kernel: numpy asks for huge pages, without which the first
    # touch of a large array costs as much as filling it.
    pairs = np.empty((2, int((degree * (degree - 1)).sum())), np.int64)
    _fill_lower(edge_nodes, start, incident, pairs)
    return pairs


def upper_pairs(polygon_edges: Integers, num_edges: int, num_polygons: int) -> Integers:
    """(2, M) pairs of edges that share at least one polygon: a set, however many they share.

    Deviation: the complexity analysis of App. A counts one message per common polygon. Def. 4 has a
    set, and so has this function.
    """
    row, start, polygons, boundary = _upper_rows(polygon_edges, num_edges, num_polygons)
    pairs = np.empty((2, int(row[-1])), np.int64)
    _fill_upper(polygon_edges, row, start, polygons, boundary, pairs)
    return pairs


@compiled
def _fill_lower(edge_nodes: Any, start: Any, incident: Any, pairs: Any) -> None:
    at = 0
    for e in range(edge_nodes.shape[1]):
        i, i_end = start[edge_nodes[0, e]], start[edge_nodes[0, e] + 1]
        j, j_end = start[edge_nodes[1, e]], start[edge_nodes[1, e] + 1]
        # Both lists increase and have only e in common: a merge gives sorted senders.
        while i < i_end or j < j_end:
            if j == j_end or (i < i_end and incident[i] <= incident[j]):
                k = incident[i]
                i += 1
            else:
                k = incident[j]
                j += 1
            if k != e:
                pairs[0, at], pairs[1, at] = e, k
                at += 1


@compiled
def _upper_rows(polygon_edges: Any, num_edges: int, num_polygons: int) -> Any:
    """Return where the pairs of every edge begin, its polygons, and where their edges begin."""
    boundary = np.zeros(num_polygons + 1, np.int64)
    start = np.zeros(num_edges + 1, np.int64)
    for i in range(polygon_edges.shape[1]):
        start[polygon_edges[0, i] + 1] += 1
        boundary[polygon_edges[1, i] + 1] += 1
    for p in range(num_polygons):
        boundary[p + 1] += boundary[p]
    for e in range(num_edges):
        start[e + 1] += start[e]
    end = start[:-1].copy()
    polygons = np.empty(start[num_edges], np.int64)
    for i in range(polygon_edges.shape[1]):
        e = polygon_edges[0, i]
        polygons[end[e]] = polygon_edges[1, i]
        end[e] += 1

    marked = np.full(num_edges, -1, np.int64)
    row = np.zeros(num_edges + 1, np.int64)
    for e in range(num_edges):
        marked[e] = e
        for c in range(start[e], start[e + 1]):
            for i in range(boundary[polygons[c]], boundary[polygons[c] + 1]):
                k = polygon_edges[0, i]
                if marked[k] != e:
                    marked[k] = e
                    row[e + 1] += 1
    for e in range(num_edges):
        row[e + 1] += row[e]
    return row, start, polygons, boundary


@compiled
def _fill_upper(
    polygon_edges: Any, row: Any, start: Any, polygons: Any, boundary: Any, pairs: Any
) -> None:
    """Write the pairs; `row` is overwritten."""
    marked = np.full(row.size - 1, -1, np.int64)
    # The relation is symmetric: passing each sender in turn to its receivers sorts every row.
    for k in range(row.size - 1):
        marked[k] = k
        for c in range(start[k], start[k + 1]):
            for i in range(boundary[polygons[c]], boundary[polygons[c] + 1]):
                e = polygon_edges[0, i]
                if marked[e] != k:
                    marked[e] = k
                    pairs[0, row[e]], pairs[1, row[e]] = e, k
                    row[e] += 1


@compiled
def incidence_lists(edge_nodes: Any, num_nodes: int) -> Any:
    """(N+1,) offsets and (2E,) edges of every node; both edges and neighbours increase."""
    start = np.zeros(num_nodes + 1, np.int64)
    for side in range(2):
        for e in range(edge_nodes.shape[1]):
            start[edge_nodes[side, e] + 1] += 1
    for v in range(num_nodes):
        start[v + 1] += start[v]
    end = start[:-1].copy()
    incident = np.empty(start[num_nodes], np.int64)
    for e in range(edge_nodes.shape[1]):
        for side in range(2):
            v = edge_nodes[side, e]
            incident[end[v]] = e
            end[v] += 1
    return start, incident
