"""Readers of PyG, networkx and scipy graphs, without importing a package that is not in use."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cell_attention.errors import InputError, warn
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.degrees import with_degrees
from cell_attention.topology.graphs import EdgeMerge, RawGraphs, columns, join

_KINDS = (
    "graphs must be PyG Data or Batch, networkx graphs, scipy adjacency matrices, CellComplexes, "
    "for cell_attention.lift also RDKit molecules and SMILES, or sequences of these"
)


def as_graphs(
    graphs: Any, edge_merge: EdgeMerge | None = None, degrees: int | None = None
) -> CellComplex:
    """Read anything that `lift` takes as a CellComplex without polygons."""
    if isinstance(graphs, CellComplex):
        return graphs.skeleton(1)
    whole = read_graph(graphs)
    if whole is not None:
        return _join_and_warn([whole], edge_merge, degrees)
    items = listed_graphs(graphs)
    if items is None:
        raise InputError(f"cannot read a graph from {type(graphs).__name__}; {_KINDS}")
    listed = []
    for position, item in enumerate(items):
        graph = read_graph(item)
        if graph is None:
            raise InputError(
                f"graph {position}: cannot read a graph from {type(item).__name__}; {_KINDS}"
            )
        listed.append(graph)
    return _join_and_warn(listed, edge_merge, degrees)


def listed_graphs(graphs: Any) -> list[Any] | None:
    """The items of a list, generator, data set or `Subset`; None for anything else."""
    if isinstance(graphs, str | bytes | dict | Tensor):
        return None
    try:
        items = iter(graphs)
    except (TypeError, NotImplementedError):
        return None
    return list(items)  # an error in a generator is the caller's: do not hide it


def _join_and_warn(
    graphs: list[RawGraphs], edge_merge: EdgeMerge | None, degrees: int | None
) -> CellComplex:
    joined = join(graphs, edge_merge)
    if joined.repairs:
        warn("; ".join(joined.repairs))
    bare = bool(graphs) and all(graph.node_features is None for graph in graphs)
    if bare and (degrees is not None or all(graph.from_pyg for graph in graphs)):
        return with_degrees(joined.complexes, degrees)
    return joined.complexes


def read_graph(graph: Any) -> RawGraphs | None:
    """Read one graph, PyG batch or complex without repairs; None if it is none of these."""
    reader = graph_reader(graph)
    return None if reader is None else reader(graph)


def graph_reader(graph: Any) -> Callable[[Any], RawGraphs] | None:
    """Return the function that reads graphs of this type, or None."""
    # An object of a package that was never imported cannot exist: looking into sys.modules saves
    # seconds of import time for users who do not need it.
    if (pyg := sys.modules.get("torch_geometric.data")) and isinstance(graph, pyg.Data):
        return read_pyg
    if (networkx := sys.modules.get("networkx")) and isinstance(graph, networkx.Graph):
        return read_networkx
    if (scipy := sys.modules.get("scipy.sparse")) and scipy.issparse(graph):
        return _read_scipy
    return _read_complex if isinstance(graph, CellComplex) else None


def _read_complex(complexes: CellComplex) -> RawGraphs:
    return RawGraphs(
        num_nodes=complexes.num_nodes,
        edge_index=complexes.edge_nodes,
        node_features=complexes.node_features,
        edge_features=complexes.edge_features,
        targets=complexes.targets,
        target_bounds=complexes.target_bounds,
        node_complex=complexes.node_complex,
        num_graphs=complexes.num_complexes,
        lists_once=True,
    )


def read_pyg(data: Any) -> RawGraphs:
    """Read PyG's `x`, `edge_index`, `edge_attr`, `y` and, from a batch, `batch`."""
    edge_index = _tensor("edge_index", data.edge_index)
    if edge_index is None:
        if "adj_t" in data or "adj" in data:
            raise InputError(
                "a PyG graph must have edge_index; convert adj_t with torch_geometric.utils"
            )
        edge_index = torch.empty(2, 0, dtype=torch.int64)
    member = _tensor("batch", getattr(data, "batch", None))
    num_graphs = 1
    if member is not None:
        start = getattr(data, "ptr", None)  # it also counts graphs without nodes at the end
        reach = int(member.max()) + 1 if member.numel() else 0
        num_graphs = start.numel() - 1 if isinstance(start, Tensor) else reach
    targets = _tensor("y", data.y)
    if targets is not None and targets.dim() == 0:
        targets = targets.unsqueeze(0)
    if targets is not None and targets.size(0) != num_graphs:
        if targets.size(0) != data.num_nodes:  # labels of nodes are not targets of complexes
            warn(f"y of shape {tuple(targets.shape)} is left out: {num_graphs} rows are expected")
        targets = None
    return RawGraphs(
        num_nodes=data.num_nodes or 0,
        edge_index=edge_index,
        node_features=columns(_tensor("x", data.x)),
        edge_features=_tensor("edge_attr", data.edge_attr),
        targets=targets,
        target_bounds=None if targets is None else getattr(data, "y_bounds", None),
        node_complex=member,
        num_graphs=num_graphs,
        from_pyg=True,
    )


def _tensor(name: str, value: Any) -> Tensor | None:
    """Convert an attribute, which may also be a number, a list or an array."""
    if value is None or isinstance(value, Tensor):
        return value
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} must be numbers, got {type(value).__name__}") from None


def read_networkx(graph: Any) -> RawGraphs:
    """Read nodes in networkx's order; features under PyG's names `x`, `edge_attr` and `y`."""
    place = {node: position for position, node in enumerate(graph.nodes)}
    ends = [(place[u], place[v]) for u, v in graph.edges()]
    target, bound = graph.graph.get("y"), graph.graph.get("y_bounds")
    return RawGraphs(
        num_nodes=len(place),
        edge_index=torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T.contiguous(),
        node_features=attribute("node", "x", graph.nodes(data="x")),
        edge_features=attribute(
            "edge", "edge_attr", (((u, v), value) for u, v, value in graph.edges(data="edge_attr"))
        ),
        targets=None if target is None else torch.as_tensor(target).unsqueeze(0),
        target_bounds=None if bound is None else torch.tensor([bound], dtype=torch.int8),
        lists_once=not graph.is_directed() and not graph.is_multigraph(),
    )


def attribute(kind: str, name: str, values: Iterable[tuple[Any, Any]]) -> Tensor | None:
    """Return (cells, F) values of an attribute that every cell has, or None if none has it."""
    named = list(values)
    missing = [cell for cell, value in named if value is None]
    if len(missing) == len(named):
        return None
    if missing:
        raise InputError(f"{kind} {missing[0]} has no attribute {name!r}, but others have")
    # Python's floats become torch's default type, as in torch.tensor; arrays keep their own.
    try:
        rows = torch.stack([torch.as_tensor(value) for _, value in named])
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{kind} attribute {name!r} must be equally many numbers") from None
    return columns(rows)


def _read_scipy(matrix: Any) -> RawGraphs:
    """Read a square adjacency matrix: a stored non-zero is an edge; weights are not features."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"an adjacency matrix must be square, got {matrix.shape}")
    rows, columns = matrix.nonzero()
    index = np.stack([rows, columns]).astype(np.int64)
    return RawGraphs(num_nodes=matrix.shape[0], edge_index=torch.from_numpy(index))
