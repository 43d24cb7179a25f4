"""Canonical edges: any edge list, one-way or both ways, becomes one sorted row per edge."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cell_attention.errors import InputError
from cell_attention.topology.compiled import compiled

Integers = NDArray[np.int64]

_FINE, _OUT_OF_RANGE, _BETWEEN_GRAPHS = 0, 1, 2


class EdgeError(InputError):
    """An entry of an edge list that breaks a rule."""

    def __init__(self, message: str, entry: int) -> None:
        super().__init__(message)
        self.entry = entry
        """Position of the entry in the list."""


@dataclass(frozen=True)
class Repairs:
    """How many entries of an edge list needed a repair, by kind, and the first of each kind."""

    self_loops: int
    repeated: int
    one_way: int
    first_self_loop: int
    first_repeated: int
    first_one_way: int


@dataclass(frozen=True)
class CanonicalEdges:
    """The edges sorted by (smaller, larger) node, and how the entries of the list map onto them."""

    edge_nodes: Integers
    """(2, E) smaller node first."""
    row: Integers
    """(M,) edge that every entry of the list became; −1 for a self-loop."""
    first: Integers
    """(E,) first entry of the list that named the edge."""
    repairs: Repairs


def canonical_edges(
    edge_index: Integers, node_complex: Integers, lists_once: NDArray[np.bool_] | None = None
) -> CanonicalEdges:
    """Sort, merge and check an edge list in linear time.

    edge_index: (2, M) nodes of the disjoint union. node_complex: (N,), sorted. lists_once:
    (complexes,) whether each lists every edge once by design, so that one-way is correct.
    """
    once = np.empty(0, np.bool_) if lists_once is None else lists_once
    status, entry, edge_nodes, row, first, repairs = _canonical(edge_index, node_complex, once)
    if status != _FINE:
        u, v = edge_index[:, entry]
        if status == _OUT_OF_RANGE:
            last = node_complex.size - 1
            known = [int(node_complex[node]) for node in (u, v) if 0 <= node <= last]
            graph = f"graph {known[0]}: " if known else "graph 0: " if last < 0 else ""
            raise EdgeError(
                f"{graph}edge ({u}, {v}) at position {entry} names a node outside 0…{last}", entry
            )
        graphs = f"graph {node_complex[u]} to graph {node_complex[v]}"
        raise EdgeError(f"edge ({u}, {v}) at position {entry} joins {graphs}", entry)
    return CanonicalEdges(edge_nodes, row, first, Repairs(*(int(count) for count in repairs)))


@compiled
def _canonical(edge_index: Any, node_complex: Any, once: Any) -> Any:
    """Radix sort of the entries by larger, then by smaller node, and one pass over the runs."""
    num_nodes, num_entries = node_complex.size, edge_index.shape[1]
    smaller, larger = np.empty(num_entries, np.int64), np.empty(num_entries, np.int64)
    by_larger, by_smaller = np.zeros(num_nodes + 1, np.int64), np.zeros(num_nodes + 1, np.int64)
    repairs = np.array([0, 0, 0, -1, -1, -1])
    status, culprit = _FINE, -1
    for m in range(num_entries):
        u, v = edge_index[0, m], edge_index[1, m]
        if u < 0 or v < 0 or u >= num_nodes or v >= num_nodes:
            status = _OUT_OF_RANGE
        elif node_complex[u] != node_complex[v]:
            status = _BETWEEN_GRAPHS
        if status != _FINE:
            culprit = m
            break
        smaller[m], larger[m] = min(u, v), max(u, v)
        if u != v:
            by_larger[larger[m] + 1] += 1
            by_smaller[smaller[m] + 1] += 1
        else:
            repairs[0] += 1
            if repairs[3] < 0:
                repairs[3] = m
    if status != _FINE:
        nothing = np.empty(0, np.int64)
        return status, culprit, np.empty((2, 0), np.int64), nothing, nothing, repairs

    for v in range(num_nodes):
        by_larger[v + 1] += by_larger[v]
        by_smaller[v + 1] += by_smaller[v]
    num_kept = by_larger[num_nodes]
    half, order = np.empty(num_kept, np.int64), np.empty(num_kept, np.int64)
    for m in range(num_entries):
        if smaller[m] != larger[m]:
            half[by_larger[larger[m]]] = m
            by_larger[larger[m]] += 1
    for m in half:
        order[by_smaller[smaller[m]]] = m
        by_smaller[smaller[m]] += 1

    num_edges = 0
    for i in range(num_kept):
        m, before = order[i], order[i - 1]
        if i == 0 or smaller[m] != smaller[before] or larger[m] != larger[before]:
            num_edges += 1
    edge_nodes = np.empty((2, num_edges), np.int64)
    first = np.empty(num_edges, np.int64)
    row = np.full(num_entries, -1, np.int64)
    i = 0
    for e in range(num_edges):
        opening = order[i]
        edge_nodes[0, e], edge_nodes[1, e], first[e] = smaller[opening], larger[opening], opening
        upwards, downwards = 0, 0
        while i < num_kept:
            m = order[i]
            if smaller[m] != smaller[opening] or larger[m] != larger[opening]:
                break
            row[m] = e
            up = edge_index[0, m] == smaller[opening]
            upwards, downwards = upwards + up, downwards + (not up)
            if (upwards if up else downwards) > 1:
                repairs[1] += 1
                if repairs[4] < 0 or m < repairs[4]:
                    repairs[4] = m
            i += 1
        quiet = once.size > 0 and once[node_complex[smaller[opening]]]
        if (upwards == 0 or downwards == 0) and not quiet:
            repairs[2] += 1
            if repairs[5] < 0 or opening < repairs[5]:
                repairs[5] = opening
    return _FINE, -1, edge_nodes, row, first, repairs
