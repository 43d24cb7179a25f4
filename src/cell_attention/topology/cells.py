"""Cells of a user, in any order: checked and sorted into the canonical order."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import InputError
from cell_attention.topology.compiled import as_array, compiled
from cell_attention.topology.edges import canonical_edges
from cell_attention.topology.limits import MOST_COMPLEXES, Limits
from cell_attention.topology.neighbourhoods import check_pairs

Integers = NDArray[np.int64]

_FINE, _SHORT, _OUTSIDE, _REPEATED, _OPEN = 0, 1, 2, 3, 4
_FAULTS = {
    _SHORT: "has fewer than 3 nodes",
    _OUTSIDE: "names a node that does not exist",
    _REPEATED: "visits a node twice",
    _OPEN: "is not closed: two successive nodes are not an edge",
}


def canonical_cells(
    edges: Any,
    polygons: Any,
    num_nodes: int | None,
    *,
    node_features: Tensor | None,
    edge_features: Tensor | None,
    polygon_features: Tensor | None,
    node_complex: Tensor | None,
    targets: Tensor | None,
    limits: Limits,
) -> dict[str, Any]:
    """Return the fields of `CellComplex.from_cells`, which documents the arguments."""
    edge_list = _pairs(edges)
    nodes, sizes = _sequences(polygons)
    members = _membership(
        edge_list, nodes, num_nodes, node_features=node_features, node_complex=node_complex
    )
    count = 1
    if node_complex is not None:
        count = int(members.max(initial=-1)) + 1
        if targets is not None:
            count = max(count, targets.size(0))  # the last complexes may have no nodes
    canonical = canonical_edges(np.ascontiguousarray(edge_list.T), members)
    if (loop := canonical.repairs.first_self_loop) >= 0:
        raise InputError(f"edge {_numbers(edge_list[loop])} joins a node to itself")
    if canonical.edge_nodes.shape[1] < edge_list.shape[0]:
        counts = np.bincount(canonical.row)
        twice = canonical.edge_nodes[:, counts.argmax()]
        raise InputError(f"edge {_numbers(twice)} is given {counts.max()} times")
    degrees = np.bincount(canonical.edge_nodes.ravel(), minlength=members.size)
    check_pairs("lower", np.bincount(members, degrees * (degrees - 1.0), count), limits.pairs)

    nodes = np.ascontiguousarray(nodes)
    status, culprit, walks, sides, signs = _walks(nodes, sizes, canonical.edge_nodes, members.size)
    if status != _FINE:
        where = slice(sizes[:culprit].sum(), sizes[: culprit + 1].sum())
        raise InputError(f"polygon {_numbers(nodes[where])} {_FAULTS[status]}")
    order = polygon_order(walks, sizes, members)
    rows = _ranges((np.cumsum(sizes) - sizes)[order], sizes[order])
    sides, signs, sizes = sides[rows], signs[rows], sizes[order]
    polygon = np.repeat(np.arange(sizes.size), sizes)
    polygon_complex = members[canonical.edge_nodes[0, sides[np.cumsum(sizes) - sizes]]]
    check_pairs("upper", np.bincount(polygon_complex, sizes * (sizes - 1.0), count), limits.pairs)

    tensor = torch.from_numpy
    features = node_features if node_features is not None else torch.empty(members.size, 0)
    return {
        "node_features": features,
        "edge_nodes": tensor(canonical.edge_nodes),
        "polygon_edges": tensor(np.stack([sides, polygon])),
        "polygon_signs": tensor(signs),
        "node_complex": tensor(members),
        "edge_complex": tensor(members[canonical.edge_nodes[0]]),
        "polygon_complex": tensor(polygon_complex),
        "num_complexes": count,
        "edge_features": _follow("edge_features", edge_features, canonical.first),
        "polygon_features": _follow("polygon_features", polygon_features, order),
        "targets": targets,
    }


def _numbers(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _whole(name: str, values: Any) -> Integers:
    try:
        array = as_array(values) if isinstance(values, Tensor) else np.asarray(values)
    except ValueError:
        raise InputError(f"{name} must be integers, got sequences of different lengths") from None
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} must be integers, got {array.dtype}")
    return array.astype(np.int64)


def _pairs(edges: Any) -> Integers:
    if not isinstance(edges, Iterable):
        raise InputError(f"edges must be (E, 2), got {type(edges).__name__}")
    array = _whole("edges", edges if isinstance(edges, Tensor | np.ndarray) else list(edges))
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"edges must be (E, 2), got {array.shape}")
    return array


def _sequences(polygons: Any) -> tuple[Integers, Integers]:
    """Return all node sequences concatenated, and the length of each."""
    try:
        listed = list(polygons)
        sizes = np.fromiter(map(len, listed), np.int64, len(listed))
    except TypeError:
        raise InputError("polygons must be sequences of nodes") from None
    return _whole("polygons", list(chain.from_iterable(listed))), sizes


def _membership(
    edges: Integers,
    polygon_nodes: Integers,
    num_nodes: int | None,
    *,
    node_features: Tensor | None,
    node_complex: Tensor | None,
) -> Integers:
    """(N,) complex of every node; N as given, else up to the largest node of the cells."""
    members = None if node_complex is None else _whole("node_complex", node_complex)
    stated = {
        "num_nodes": num_nodes,
        "node_features": None if node_features is None else node_features.size(0),
        "node_complex": None if members is None else members.size,
    }
    sizes = {name: size for name, size in stated.items() if size is not None}
    if len(set(sizes.values())) > 1:
        raise InputError(f"all arguments must give the same number of nodes, got {sizes}")
    reach = max(edges.max(initial=-1), polygon_nodes.max(initial=-1)) + 1
    count = next(iter(sizes.values()), int(reach))
    if not isinstance(count, int) or not 0 <= count <= MOST_COMPLEXES:
        raise InputError(f"num_nodes must be an integer from 0 to {MOST_COMPLEXES:,}, got {count}")
    if members is None:
        return np.zeros(count, np.int64)
    if members.ndim != 1 or (np.diff(members) < 0).any() or (members[:1] < 0).any():
        raise InputError("node_complex must be (N,), non-negative and non-decreasing")
    if members.max(initial=0) >= MOST_COMPLEXES:
        raise InputError(f"node_complex must lie below {MOST_COMPLEXES:,}, got {members.max()}")
    return members


def _ranges(begin: Integers, lengths: Integers) -> Integers:
    """begin[0], …, begin[0] + lengths[0] − 1, begin[1], …, concatenated."""
    ahead = np.cumsum(lengths) - lengths
    rows: Integers = np.arange(int(lengths.sum())) + np.repeat(begin - ahead, lengths)
    return rows


def polygon_order(walks: Integers, sizes: Integers, members: Integers) -> Integers:
    """Sort polygons (P,) by complex, size and node sequence; refuse duplicates."""
    begin = np.cumsum(sizes) - sizes
    rank = np.empty(sizes.size, np.int64)
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        sequence = walks[begin[same][:, None] + np.arange(size)]
        order = np.lexsort(sequence.T[::-1])
        twice = (sequence[order[1:]] == sequence[order[:-1]]).all(axis=1)
        if twice.any():
            raise InputError(f"polygon {_numbers(sequence[order[twice.argmax()]])} is given twice")
        rank[same[order]] = np.arange(same.size)
    whole: Integers = np.lexsort((rank, sizes, members[walks[begin]]))
    return whole


def _follow(name: str, values: Tensor | None, rows: Integers) -> Tensor | None:
    if values is None:
        return None
    values = torch.as_tensor(values)
    if values.size(0) != rows.size:
        raise InputError(f"{name} must have {rows.size} rows, got {values.size(0)}")
    return values[torch.from_numpy(rows).to(values.device)]


@compiled
def _walks(nodes: Any, sizes: Any, edge_nodes: Any, num_nodes: int) -> Any:
    """Return nodes, edges and signs of every polygon, in the canonical walk."""
    walks, sides = np.empty_like(nodes), np.empty_like(nodes)
    signs = np.empty(nodes.size, np.int8)
    start = np.searchsorted(edge_nodes[0], np.arange(num_nodes + 1))
    visited = np.full(num_nodes, -1, np.int64)
    at = 0
    for p in range(sizes.size):
        size = sizes[p]
        if size < 3:
            return _SHORT, p, walks, sides, signs
        low = 0
        for i in range(size):
            v = nodes[at + i]
            if v < 0 or v >= num_nodes:
                return _OUTSIDE, p, walks, sides, signs
            if visited[v] == p:
                return _REPEATED, p, walks, sides, signs
            visited[v] = p
            if v < nodes[at + low]:
                low = i
        step = 1 if nodes[at + (low + 1) % size] < nodes[at + (low - 1) % size] else -1
        for i in range(size):
            u, v = nodes[at + (low + step * i) % size], nodes[at + (low + step * (i + 1)) % size]
            a, b = min(u, v), max(u, v)
            e = start[a] + np.searchsorted(edge_nodes[1, start[a] : start[a + 1]], b)
            if e == start[a + 1] or edge_nodes[1, e] != b:
                return _OPEN, p, walks, sides, signs
            walks[at + i], sides[at + i], signs[at + i] = u, e, 1 if u < v else -1
        at += size
    return _FINE, -1, walks, sides, signs
