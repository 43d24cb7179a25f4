"""Conversion of complexes to and from networkx, TopoNetX and scipy, with all features."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse import csc_array

from cell_attention.errors import InputError
from cell_attention.topology.compiled import as_array, compiled
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.readers import attribute, read_networkx

if TYPE_CHECKING:
    import networkx
    import toponetx


def to_networkx(complexes: CellComplex) -> "networkx.Graph":
    """Convert one complex to a networkx graph, with features under PyG's names.

    Nodes have `x`, edges `edge_attr`; `graph.graph` has `polygons` (node tuples), `polygon_attr`,
    `y` and `y_bounds`.
    """
    import networkx

    one = _single(complexes)
    graph = networkx.Graph(polygons=polygon_tuples(one))
    for node, given in enumerate(_rows("x", one.node_features, one.num_nodes)):
        graph.add_node(node, **given)
    edges = one.edge_nodes.T.tolist()
    for (u, v), given in zip(edges, _rows("edge_attr", one.edge_features, len(edges)), strict=True):
        graph.add_edge(u, v, **given)
    if one.polygon_features is not None:
        graph.graph["polygon_attr"] = one.polygon_features.tolist()
    if one.targets is not None:
        graph.graph["y"] = one.targets[0].tolist()
    if one.target_bounds is not None:
        graph.graph["y_bounds"] = one.target_bounds[0].tolist()
    return graph


def from_networkx(graph: "networkx.Graph") -> CellComplex:
    """Convert a graph of `to_networkx` with its polygons; `lift` would search for them again."""
    import networkx

    if not isinstance(graph, networkx.Graph):
        raise InputError(f"graph must be a networkx graph, got {type(graph).__name__}")
    raw = read_networkx(graph)
    place = {node: position for position, node in enumerate(graph.nodes)}
    strangers = [
        n for polygon in graph.graph.get("polygons", ()) for n in polygon if n not in place
    ]
    if strangers:
        raise InputError(f"a polygon names {strangers[0]!r}, which is not a node of the graph")
    features = graph.graph.get("polygon_attr")
    found = CellComplex.from_cells(
        raw.edge_index.T,
        [[place[node] for node in polygon] for polygon in graph.graph.get("polygons", ())],
        num_nodes=raw.num_nodes,
        node_features=raw.node_features,
        edge_features=raw.edge_features,
        polygon_features=None if features is None else torch.tensor(features),
        targets=raw.targets,
    )
    return replace(found, target_bounds=raw.target_bounds)


def to_toponetx(complexes: CellComplex) -> "toponetx.CellComplex":
    """Convert to TopoNetX's CellComplex; each cell has its row as attribute `features`."""
    import toponetx

    one = _single(complexes)
    cells = toponetx.CellComplex()
    for node, given in enumerate(_rows("features", one.node_features, one.num_nodes)):
        cells.add_node(node, **given)
    edges = one.edge_nodes.T.tolist()
    for (u, v), given in zip(edges, _rows("features", one.edge_features, len(edges)), strict=True):
        cells.add_edge(u, v, **given)
    polygons = polygon_tuples(one)
    rows = _rows("features", one.polygon_features, len(polygons))
    for polygon, given in zip(polygons, rows, strict=True):
        cells.add_cell(polygon, rank=2, **given)
    return cells


def from_toponetx(cells: "toponetx.CellComplex") -> CellComplex:
    """Convert a TopoNetX CellComplex as it is: nodes in its own order, and only its 2-cells."""
    import toponetx

    if not isinstance(cells, toponetx.CellComplex):
        raise InputError(f"cells must be a TopoNetX CellComplex, got {type(cells).__name__}")
    place = {node: position for position, node in enumerate(cells.nodes)}
    polygons = [cell.elements for cell in cells.cells]
    return CellComplex.from_cells(
        [(place[u], place[v]) for u, v in cells.edges],
        [[place[node] for node in polygon] for polygon in polygons],
        num_nodes=len(place),
        node_features=_attribute("node", place, cells.get_node_attributes("features")),
        edge_features=_attribute("edge", cells.edges, cells.get_edge_attributes("features")),
        polygon_features=_attribute("polygon", polygons, cells.get_cell_attributes("features", 2)),
    )


def from_incidence(
    b1: Any,
    b2: Any = None,
    *,
    node_features: torch.Tensor | None = None,
    edge_features: torch.Tensor | None = None,
    polygon_features: torch.Tensor | None = None,
) -> CellComplex:
    """Build a complex from scipy incidence matrices B₁ (N, E) and B₂ (E, P), signed or not.

    The cells are renumbered and reoriented in the canonical way. Features have one row per node,
    per column of B₁ and per column of B₂, and follow their cells.
    """
    b1 = _own_matrix("B1", b1)
    b2 = _own_matrix("B2", b2 if b2 is not None else csc_array((b1.shape[1], 0)))
    if b2.shape[0] != b1.shape[1]:
        raise InputError(f"B2 must have a row per column of B1: {b1.shape[1]}, got {b2.shape[0]}")
    ends = np.diff(b1.indptr)
    if (ends != 2).any():
        edge = int((ends != 2).argmax())
        raise InputError(f"column {edge} of B1 must have 2 entries, got {ends[edge]}")
    if (b1.data < 0).any() and (b1 @ b2).count_nonzero():
        raise InputError("B1 B2 must be zero: the orientations of the two matrices disagree")
    edges = b1.indices.reshape(-1, 2).astype(np.int64)
    offsets = b2.indptr.astype(np.int64)
    status, walks = _walks(edges, b2.indices.astype(np.int64), offsets, b1.shape[0])
    if status >= 0:
        raise InputError(f"column {status} of B2 is not a closed walk along edges of B1")
    polygons = np.split(walks, offsets[1:-1]) if offsets.size > 1 else []
    return CellComplex.from_cells(
        edges,
        polygons,
        num_nodes=b1.shape[0],
        node_features=node_features,
        edge_features=edge_features,
        polygon_features=polygon_features,
    )


def _own_matrix(name: str, given: Any) -> Any:
    """Return a CSC copy, so that the caller's matrix is not changed; entries are 1 or −1."""
    try:
        matrix = csc_array(given, copy=True, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a matrix, got {type(given).__name__}") from None
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not (abs(matrix.data) == 1).all():
        raise InputError(f"the entries of {name} must be 0, 1 or -1")
    return matrix


def polygon_tuples(complexes: CellComplex) -> list[tuple[int, ...]]:
    """Return the node sequence of every polygon, in canonical order."""
    if complexes.num_polygons == 0:
        return []
    ends = np.cumsum(as_array(complexes.polygon_sizes))[:-1]
    return [tuple(part.tolist()) for part in np.split(as_array(complexes.polygon_nodes[0]), ends)]


def _single(complexes: CellComplex) -> CellComplex:
    if not isinstance(complexes, CellComplex):
        raise InputError(f"complexes must be a CellComplex, got {type(complexes).__name__}")
    if complexes.num_complexes != 1:
        raise InputError(
            f"expected one complex, got {complexes.num_complexes}; select one with complexes[i]"
        )
    return complexes


def _rows(name: str, features: Any, count: int) -> Iterable[dict[str, list[float]]]:
    """Yield one dictionary of attributes per cell, empty if the rank has no features."""
    if features is None or features.size(1) == 0:
        return ({} for _ in range(count))
    return ({name: row} for row in features.tolist())


def _attribute(kind: str, cells: Iterable[Any], values: dict[Any, Any]) -> torch.Tensor | None:
    return attribute(kind, "features", [(cell, values.get(cell)) for cell in cells])


@compiled
def _walks(edges: Any, sides: Any, start: Any, num_nodes: int) -> Any:
    """Walk along the edges of every column; return the nodes, or a column that is not closed."""
    walks = np.empty_like(sides)
    around = np.empty((num_nodes, 2), np.int64)
    degree = np.zeros(num_nodes, np.int64)
    for p in range(start.size - 1):
        closed = start[p + 1] - start[p] >= 3
        for i in range(start[p], start[p + 1]):
            for side in range(2):
                degree[edges[sides[i], side]] = 0
        for i in range(start[p], start[p + 1]):
            for side in range(2):
                v = edges[sides[i], side]
                if degree[v] < 2:
                    around[v, degree[v]] = edges[sides[i], 1 - side]
                degree[v] += 1
        for i in range(start[p], start[p + 1]):
            closed &= degree[edges[sides[i], 0]] == 2 and degree[edges[sides[i], 1]] == 2
        if not closed:
            return p, walks
        first = before = edges[sides[start[p]], 0]
        v = around[first, 0]
        walks[start[p]] = first
        steps = 1
        while v != first:
            walks[start[p] + steps] = v
            steps += 1
            v, before = (around[v, 1] if around[v, 0] == before else around[v, 0]), v
        if steps != start[p + 1] - start[p]:
            return p, walks
    return -1, walks
