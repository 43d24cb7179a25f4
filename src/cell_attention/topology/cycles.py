"""Chordless cycles of 3…R nodes of many graphs at once: the 2-cells of the lifting (paper §3.1).

A depth-first search from every node s, taken as the smallest node of its cycles. A path s, v₁, …,
v_t grows by a neighbour of v_t that no earlier inner node touches, so it never has a chord. It
closes when the new node touches s; the direction in which v₁ is the smaller neighbour of s is the
one that counts, so each cycle is found once. A path one short of the limit goes on only where a
neighbour of s can close it. Nodes that can lie on no further cycle are peeled off first and after
every start, which leaves trees and finished rings out of the search.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cell_attention.errors import LimitError
from cell_attention.topology.compiled import compiled
from cell_attention.topology.limits import Limits
from cell_attention.topology.pairs import incidence_lists

Integers = NDArray[np.int64]

_DONE, _FULL, _TOO_MANY_POLYGONS, _TOO_MANY_STEPS, _TOO_MANY_PAIRS = 0, 1, 2, 3, 4

# The level of a node: the position in the path of the first inner node that touches it, or one of
# these two.
_DEAD = -1
_FREE = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Cycles:
    """The cycles in canonical order: by complex, then size, then node sequence."""

    edges: Integers
    """(Σ size,) edge of every step, from a cycle's smallest node towards the smaller neighbour."""
    signs: NDArray[np.int8]
    """(Σ size,) +1 where the walk goes from the edge's smaller node to its larger, else −1."""
    sizes: Integers
    """(P,) number of nodes of every cycle."""


def chordless_cycles(
    edge_nodes: Integers, node_complex: Integers, max_polygon: int, *, limits: Limits
) -> Cycles:
    """Find all chordless cycles of 3…`max_polygon` nodes.

    edge_nodes: (2, E) smaller node first, sorted, no duplicates. node_complex: (N,) sorted.
    """
    # No cycle is longer than its graph, and the search allocates one entry per step.
    longest = min(max_polygon, max(int(np.bincount(node_complex).max(initial=0)), 3))
    status, culprit, edges, signs, sizes = _search(
        edge_nodes, node_complex, longest, limits.polygons, limits.steps, limits.pairs
    )
    if status == _TOO_MANY_POLYGONS:
        raise LimitError(
            f"graph {culprit} has more than {limits.polygons:,} chordless cycles of up to "
            f"{max_polygon} nodes; lower max_polygon or raise Limits.polygons"
        )
    if status == _TOO_MANY_STEPS:
        raise LimitError(
            f"graph {culprit}: the search for chordless cycles of up to {max_polygon} nodes did "
            f"not end within {limits.steps:,} steps; lower max_polygon or raise Limits.steps"
        )
    if status == _TOO_MANY_PAIRS:
        raise LimitError(
            f"graph {culprit} has more than {limits.pairs:,} upper pairs of edges on chordless "
            f"cycles of up to {max_polygon} nodes; lower max_polygon or raise Limits.pairs"
        )
    return Cycles(edges, signs, sizes)


@compiled
def _peel(v: int, start: Any, neighbours: Any, degree: Any, level: Any, pending: Any) -> Any:
    """Remove v, then every node with fewer than two neighbours left: it is on no further cycle."""
    level[v] = _DEAD
    pending[0] = v
    waiting = 1
    while waiting > 0:
        waiting -= 1
        v = pending[waiting]
        for c in range(start[v], start[v + 1]):
            w = neighbours[c]
            if level[w] == _DEAD:
                continue
            degree[w] -= 1
            if degree[w] < 2:
                level[w] = _DEAD
                pending[waiting] = w
                waiting += 1


@compiled
def _cycles_from(
    s: int,
    max_size: int,
    graph: Any,
    scratch: Any,
    found: Any,
    used: int,
    count: int,
    most_count: int,
    most_steps: int,
    most_pairs: int,
) -> Any:
    """Append the cycles whose smallest node is s to `found`, sorted within each size.

    Returns a status, the new `used` and `count`, and the steps taken. The state is unchanged
    unless a limit was exceeded. `found` keeps its size here: growing it inside the loop costs a
    factor of four.
    """
    start, neighbours, incident = graph
    level, touch, closer, seen, seen_edge, path, path_edge, begin, cursor, end = scratch
    edges, signs, sizes = found
    status, steps, pairs, largest = _DONE, 0, 0, -1
    for c in range(start[s], start[s + 1]):
        v = neighbours[c]
        touch[v] = incident[c]
        if level[v] != _DEAD:
            # Neighbours are sorted, so the last one written is the largest.
            largest = v
            steps += start[v + 1] - start[v]
            for d in range(start[v], start[v + 1]):
                closer[neighbours[d]] = v
    level[s] = 0
    path[0] = s
    for first in range(start[s], start[s + 1]):
        second = neighbours[first]
        if level[second] == _DEAD or second == largest or status != _DONE:
            continue
        level[second] = 0
        path[1], path_edge[0] = second, incident[first]
        t, top, arrived = 1, 0, True
        while t > 0:
            if arrived:
                arrived = False
                begin[t] = cursor[t] = top
                v = path[t]
                steps += start[v + 1] - start[v]
                for c in range(start[v], start[v + 1]):
                    w = neighbours[c]
                    if level[w] != _FREE:
                        continue
                    if touch[w] >= 0 and w > second:
                        if used + t + 2 > edges.size or count == sizes.size:
                            status = _FULL
                            break
                        path[t + 1], path_edge[t] = w, incident[c]
                        for i in range(t + 1):
                            edges[used + i] = path_edge[i]
                            signs[used + i] = 1 if path[i] < path[i + 1] else -1
                        edges[used + t + 1], signs[used + t + 1] = touch[w], -1
                        used += t + 2
                        sizes[count] = t + 2
                        count += 1
                        pairs += (t + 2) * (t + 1)
                    if t + 2 < max_size:
                        level[w] = t
                        seen[top], seen_edge[top] = w, incident[c]
                        top += 1
                end[t] = top
                if count > most_count:
                    status = _TOO_MANY_POLYGONS
                elif steps > most_steps:
                    status = _TOO_MANY_STEPS
                elif pairs > most_pairs:
                    status = _TOO_MANY_PAIRS
            elif status == _DONE and cursor[t] < end[t]:
                i = cursor[t]
                cursor[t] = i + 1
                if touch[seen[i]] < 0 and (t + 3 < max_size or closer[seen[i]] > second):
                    path_edge[t] = seen_edge[i]
                    t += 1
                    path[t] = seen[i]
                    arrived = True
            else:
                for i in range(begin[t], end[t]):
                    level[seen[i]] = _FREE
                top = begin[t]
                t -= 1
        level[second] = _FREE
    level[s] = _FREE
    for c in range(start[s], start[s + 1]):
        v = neighbours[c]
        touch[v] = -1
        for d in range(start[v], start[v + 1]):
            closer[neighbours[d]] = -1
    return status, used, count, steps, pairs


@compiled
def _doubled(found: Any) -> Any:
    edges, signs, sizes = found
    more = (
        np.empty(2 * edges.size, np.int64),
        np.empty(2 * edges.size, np.int8),
        np.empty(2 * sizes.size, np.int64),
    )
    more[0][: edges.size], more[1][: edges.size], more[2][: sizes.size] = edges, signs, sizes
    return more


@compiled
def _search(
    edge_nodes: Any,
    node_complex: Any,
    max_size: int,
    most_polygons: int,
    most_steps: int,
    most_pairs: int,
) -> Any:
    num_nodes = node_complex.size
    start, incident = incidence_lists(edge_nodes, num_nodes)
    neighbours = np.empty_like(incident)
    degree = np.empty(num_nodes, np.int64)
    for v in range(num_nodes):
        degree[v] = start[v + 1] - start[v]
        for c in range(start[v], start[v + 1]):
            neighbours[c] = edge_nodes[0, incident[c]] + edge_nodes[1, incident[c]] - v
    level = np.full(num_nodes, _FREE, np.int32)
    seen, seen_edge = np.empty(num_nodes, np.int64), np.empty(num_nodes, np.int64)
    for v in range(num_nodes):
        if level[v] == _FREE and degree[v] < 2:
            _peel(v, start, neighbours, degree, level, seen)

    places = np.empty((5, max_size + 1), np.int64)
    graph = (start, neighbours, incident)
    scratch = (
        level, np.full(num_nodes, -1, np.int64), np.full(num_nodes, -1, np.int64), seen, seen_edge,
        places[0], places[1], places[2], places[3], places[4],
    )  # fmt: skip
    room = 64 + edge_nodes.shape[1] // 2
    found = (np.empty(room, np.int64), np.empty(room, np.int8), np.empty(room // 4, np.int64))
    current, used, count, last_count, steps_left, pairs_left = -1, 0, 0, 0, 0, 0
    for s in range(num_nodes):
        if level[s] == _DEAD:
            continue
        if node_complex[s] != current:
            current = node_complex[s]
            last_count, steps_left = count + most_polygons, most_steps
            pairs_left = most_pairs
        status = _FULL
        while status == _FULL:
            status, used_now, count_now, steps, pairs = _cycles_from(
                s, max_size, graph, scratch, found, used, count, last_count, steps_left, pairs_left
            )
            if status == _FULL:
                found = _doubled(found)
        if status != _DONE:
            return status, current, found[0][:0], found[1][:0], found[2][:0]
        used, count = used_now, count_now
        steps_left, pairs_left = steps_left - steps, pairs_left - pairs
        _peel(s, start, neighbours, degree, level, seen)
    edges, signs, sizes = _arranged(
        found[0][:used], found[1][:used], found[2][:count], edge_nodes, node_complex, max_size
    )
    return _DONE, -1, edges, signs, sizes


@compiled
def _arranged(
    edges: Any, signs: Any, sizes: Any, edge_nodes: Any, node_complex: Any, max_size: int
) -> Any:
    """Sort the cycles of every complex by size, with a stable sort."""
    edges_out, signs_out, sizes_out = (
        np.empty_like(edges),
        np.empty_like(signs),
        np.empty_like(sizes),
    )
    step, place = np.zeros(max_size + 2, np.int64), np.zeros(max_size + 2, np.int64)
    p, at = 0, 0
    while p < sizes.size:
        first, first_at, largest = p, at, 0
        current = node_complex[edge_nodes[0, edges[at]]]
        while p < sizes.size and node_complex[edge_nodes[0, edges[at]]] == current:
            step[sizes[p] + 1] += sizes[p]
            place[sizes[p] + 1] += 1
            largest = max(largest, sizes[p])
            at += sizes[p]
            p += 1
        step[0], place[0] = first_at, first
        for size in range(1, largest + 2):
            step[size] += step[size - 1]
            place[size] += place[size - 1]
        source = first_at
        for q in range(first, p):
            size = sizes[q]
            sizes_out[place[size]] = size
            place[size] += 1
            for i in range(size):
                edges_out[step[size] + i] = edges[source + i]
                signs_out[step[size] + i] = signs[source + i]
            step[size] += size
            source += size
        step[: largest + 2], place[: largest + 2] = 0, 0
    return edges_out, signs_out, sizes_out
