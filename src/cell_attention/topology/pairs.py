"""Which edge hears which: lower pairs share a node, upper pairs share a polygon (paper Def. 4).

Pairs are (receiver, sender), sorted by receiver and then sender, without self-pairs, each once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cell_attention.errors import LimitError
from cell_attention.topology.compiled import compiled
from cell_attention.topology.cycles import incidence_lists

Integers = NDArray[np.int64]


def check_lower_pairs(
    edge_nodes: Integers, node_complex: Integers, num_complexes: int, most: int
) -> None:
    """Refuse a graph with more than `most` lower pairs, from its degrees alone."""
    degree = np.bincount(edge_nodes.ravel(), minlength=node_complex.size)
    _refuse("lower", np.bincount(node_complex, degree * (degree - 1.0), num_complexes), most)


def check_upper_pairs(
    sizes: Integers, polygon_complex: Integers, num_complexes: int, most: int
) -> None:
    """Refuse a graph with more than `most` upper pairs, counted once per supporting polygon."""
    _refuse("upper", np.bincount(polygon_complex, sizes * (sizes - 1.0), num_complexes), most)


def _refuse(side: str, counts: NDArray[Any], most: int) -> None:
    if counts.size and counts.max() > most:
        graph = int(counts.argmax())
        raise LimitError(
            f"graph {graph} has {int(counts[graph]):,} {side} pairs of edges, more than {most:,}; "
            "raise Limits.pairs (--limits.pairs) if they fit into memory"
        )


@compiled
def lower_pairs(edge_nodes: Any, num_nodes: int) -> Any:
    """(2, M) pairs of edges that share a node."""
    start, incident = incidence_lists(edge_nodes, num_nodes)
    total = 0
    for v in range(num_nodes):
        degree = start[v + 1] - start[v]
        total += degree * (degree - 1)
    pairs = np.empty((2, total), np.int64)
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
    return pairs


@compiled
def upper_pairs(polygon_edges: Any, num_edges: int, num_polygons: int) -> Any:
    """(2, M) pairs of edges that share at least one polygon: a set, however many they share."""
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
    pairs = np.empty((2, row[num_edges]), np.int64)
    marked[:] = -1
    # The relation is symmetric: handing each sender in turn to its receivers sorts every row.
    for k in range(num_edges):
        marked[k] = k
        for c in range(start[k], start[k + 1]):
            for i in range(boundary[polygons[c]], boundary[polygons[c] + 1]):
                e = polygon_edges[0, i]
                if marked[e] != k:
                    marked[e] = k
                    pairs[0, row[e]], pairs[1, row[e]] = e, k
                    row[e] += 1
    return pairs
