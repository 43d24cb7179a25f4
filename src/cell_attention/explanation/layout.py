"""Layout of graphs that are not molecules: nodes near in the graph are near in the picture.

Stress majorisation (Gansner, Koren and North 2004) starting from pivot distances (Brandes and
Pich 2006), component by component; the same graph always gives the same picture.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

LARGE = 1500
"""A component with more nodes keeps its start: improving it needs all pairs of distances."""
PIVOTS = 100
SWEEPS = 80
GAP = 1.5
"""Distance between components, in edge lengths."""

Points = NDArray[np.float64]


def laid_out(num_nodes: int, edge_nodes: NDArray[np.int64]) -> Points:
    """Compute (N, 2) positions; neighbours are about 1 apart."""
    if not num_nodes:
        return np.zeros((0, 2))
    ones = np.ones(edge_nodes.shape[1])
    graph = coo_array((ones, tuple(edge_nodes)), shape=(num_nodes, num_nodes)).tocsr()
    count, member = connected_components(graph, directed=False)
    points = np.zeros((num_nodes, 2))
    for component in range(count):
        nodes = np.flatnonzero(member == component)
        points[nodes] = _component(graph[nodes][:, nodes])
    return _packed(points, member, count)


def _component(graph: Any) -> Points:
    """Lay out a connected graph, wider than high."""
    count = graph.shape[0]
    if count == 1:
        return np.zeros((1, 2))
    points = _start(graph)
    # Nodes with equal distances to all pivots would stay on top of each other.
    points += 0.05 * np.random.default_rng(0).standard_normal(points.shape)
    if count <= LARGE:
        distance = shortest_path(graph, directed=False, unweighted=True)
        points = _majorised(points, distance)
    points -= points.mean(0)
    axes = np.linalg.svd(points, full_matrices=False)[2]
    turned: Points = points @ axes.T
    return turned


def _start(graph: Any) -> Points:
    """Pivot multidimensional scaling: distances to some far-apart nodes."""
    count, pivots = graph.shape[0], [0]
    rows: list[NDArray[np.float64]] = []
    for _ in range(min(PIVOTS, count)):
        found = shortest_path(graph, directed=False, unweighted=True, indices=pivots[-1])
        rows.append(found)
        pivots.append(int(np.min(rows, axis=0).argmax()))
    squared = np.array(rows).T ** 2
    centred = squared - squared.mean(0) - squared.mean(1, keepdims=True) + squared.mean()
    left, values, _ = np.linalg.svd(-0.5 * centred, full_matrices=False)
    points = np.zeros((count, 2))
    width = min(2, left.shape[1])
    points[:, :width] = left[:, :width] * np.sqrt(values[:width])
    spread = np.abs(points).max()
    reach = np.array(rows).max() / 2
    return points * (reach / spread if spread > 0 else 1.0)


def _majorised(points: Points, distance: NDArray[np.float64]) -> Points:
    """Lower the stress Σ d⁻² (|xᵢ − xⱼ| − d)², all positions at once, repeatedly."""
    count = len(points)
    np.fill_diagonal(distance, 1.0)
    weight = distance**-2.0
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(1)) - weight
    # The first node is fixed: positions are free up to a shift.
    factor = cho_factor(laplacian[1:, 1:])
    for _ in range(SWEEPS):
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        pull = weight * distance / np.maximum(apart, 1e-9)
        np.fill_diagonal(pull, 0.0)
        wanted = (np.diag(pull.sum(1)) - pull) @ points
        moved = np.zeros((count, 2))
        moved[1:] = cho_solve(factor, wanted[1:])
        points = moved
    return points


def _packed(points: Points, member: NDArray[np.int32], count: int) -> Points:
    """Place components side by side in rows, the largest first."""
    sizes = np.bincount(member, minlength=count)
    order = np.argsort(-sizes, kind="stable")
    boxes = []
    for component in order:
        own = points[member == component]
        boxes.append((component, own.min(0), own.max(0) - own.min(0) + GAP))
    width = max(max(box[2][0] for box in boxes), 1.4 * np.sqrt(sum(b[2].prod() for b in boxes)))
    placed, left, top, height = points.copy(), 0.0, 0.0, 0.0
    for component, corner, extent in boxes:
        if left > 0 and left + extent[0] > width:
            left, top, height = 0.0, top + height, 0.0
        placed[member == component] += np.array([left, top]) - corner
        left, height = left + extent[0], max(height, extent[1])
    return placed
