"""Input graphs: checked, repaired and joined to one CellComplex without polygons."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from cell_attention.errors import InputError
from cell_attention.topology.compiled import as_array
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.edges import CanonicalEdges, EdgeError, canonical_edges
from cell_attention.topology.limits import MOST_COMPLEXES
from cell_attention.topology.target_bounds import join_bounds

EdgeMerge = Literal["mean", "first"]


@dataclass(frozen=True)
class RawGraphs:
    """One graph, or a union of several, as read: not yet sorted, merged or checked."""

    num_nodes: int
    edge_index: Tensor
    """(2, M) in any order; an edge may be listed in one direction or in both."""
    node_features: Tensor | None = None
    """(N, Fn)."""
    edge_features: Tensor | None = None
    """(M, Fe) or (M,), per entry of `edge_index`."""
    targets: Tensor | None = None
    """(num_graphs, …)."""
    target_bounds: Tensor | None = None
    """As in `CellComplex`."""
    node_complex: Tensor | None = None
    """(N,) graph of every node; None for one graph."""
    num_graphs: int = 1
    lists_once: bool = False
    """Whether the source lists every edge once by design: one-way entries are not reported."""
    from_pyg: bool = False
    """Whether this is a PyG graph: nodes without features get their degrees."""


@dataclass(frozen=True)
class Joined:
    """Graphs joined to a complex, and what had to be repaired."""

    complexes: CellComplex
    """Each edge once, in the canonical order, and no polygons."""
    repairs: tuple[str, ...]
    """One clause per kind of repair, with a count and the first edge."""


def join(graphs: Sequence[RawGraphs], edge_merge: EdgeMerge | None = None) -> Joined:
    """Join graphs to their disjoint union.

    Self-loops are dropped, repeated edges merged and one-way edges taken as undirected; `repairs`
    lists this. Anything that cannot be repaired raises an `InputError`.
    """
    check_edge_merge(edge_merge)
    for position, graph in enumerate(graphs):
        _check_edge_index(position, graph)
    nodes = torch.tensor([graph.num_nodes for graph in graphs], dtype=torch.int64)
    before = nodes.cumsum(0) - nodes
    members = [_membership(position, graph) for position, graph in enumerate(graphs)]
    num_graphs = torch.tensor([graph.num_graphs for graph in graphs], dtype=torch.int64)
    earlier = (num_graphs.cumsum(0) - num_graphs).tolist()
    shifted = [member + shift for member, shift in zip(members, earlier, strict=True)]
    node_complex = torch.cat([nodes[:0], *shifted])
    edge_index = _joined_edges(graphs, nodes, before)
    device = edge_index.device

    once = np.repeat([g.lists_once for g in graphs], as_array(num_graphs)).astype(np.bool_)
    canonical = canonical_edges(as_array(edge_index), as_array(node_complex), once)
    edge_nodes = torch.from_numpy(canonical.edge_nodes)
    features = _joined("node features", [(g.node_features, g.num_nodes) for g in graphs])
    entry_features = _joined(
        "edge features", [(columns(g.edge_features), g.edge_index.size(1)) for g in graphs]
    )
    without = [place for place, g in enumerate(graphs) if g.targets is None and g.num_graphs]
    targets: Tensor | None = None
    bounds: Tensor | None = None
    lost: tuple[str, ...] = ()
    if not without:
        targets = _joined("targets", [(g.targets, g.num_graphs) for g in graphs])
        bounds = join_bounds([(g.targets, g.target_bounds) for g in graphs])
    elif len(without) < len(graphs):
        lost = (f"targets left out: graph {without[0]} has none",)
    nothing = torch.empty(0, dtype=torch.int64, device=device)
    total = int(nodes.sum())
    complexes = CellComplex(
        node_features=torch.empty(total, 0, device=device) if features is None else features,
        edge_nodes=edge_nodes.to(device),
        polygon_edges=nothing.expand(2, 0),
        polygon_signs=nothing.to(torch.int8),
        node_complex=node_complex.to(device),
        edge_complex=node_complex[edge_nodes[0]].to(device),
        polygon_complex=nothing,
        num_complexes=int(num_graphs.sum()),
        edge_features=_merged(
            entry_features, canonical, edge_merge=edge_merge, node_complex=node_complex
        ),
        targets=targets,
        target_bounds=bounds,
    )
    repairs = _repairs(canonical, edge_index, node_complex)
    return Joined(complexes, (*repairs, *lost))


def check_edge_merge(edge_merge: object) -> None:
    """Refuse an unknown edge_merge."""
    if edge_merge not in (None, "mean", "first"):
        raise InputError(f"edge_merge must be 'mean', 'first' or None, got {edge_merge!r}")


def _check_edge_index(position: int, graph: RawGraphs) -> None:
    index, features = graph.edge_index, graph.edge_features
    if index.dim() != 2 or index.size(0) != 2:
        raise InputError(f"graph {position}: edge_index must be (2, M), got {tuple(index.shape)}")
    if index.numel() and (
        index.is_floating_point() or index.is_complex() or index.dtype == torch.bool
    ):
        u, v = index[:, 0].tolist()
        raise InputError(
            f"graph {position}: edge_index must be integers, got {index.dtype}: edge ({u}, {v})"
        )
    if features is None:
        return
    if not features.is_floating_point():
        raise InputError(
            f"graph {position}: edge features must be floating point, got {features.dtype}; turn "
            "categories into columns first, for example with "
            "torch.nn.functional.one_hot(edge_attr).float()"
        )
    if features.dim() not in (1, 2) or features.size(0) != index.size(1):
        raise InputError(
            f"graph {position}: edge features must be ({index.size(1)}, F), one row per entry of "
            f"edge_index, got {tuple(features.shape)}"
        )


def _membership(position: int, graph: RawGraphs) -> Tensor:
    """(N,) graph of every node within its own union, on the CPU."""
    if graph.node_features is not None and graph.node_features.size(0) != graph.num_nodes:
        rows = graph.node_features.size(0)
        raise InputError(
            f"graph {position}: {graph.num_nodes} nodes but {rows} rows of node features"
        )
    if graph.node_complex is None:
        return torch.zeros(graph.num_nodes, dtype=torch.int64)
    if graph.num_graphs > MOST_COMPLEXES:
        raise InputError(f"batch names {graph.num_graphs:,} graphs, more than {MOST_COMPLEXES:,}")
    if graph.node_complex.is_floating_point() or graph.node_complex.dtype == torch.bool:
        raise InputError(f"batch must be integers, got {graph.node_complex.dtype}")
    member = graph.node_complex.cpu().to(torch.int64)
    if member.shape != (graph.num_nodes,):
        raise InputError(f"batch must be ({graph.num_nodes},), got {tuple(member.shape)}")
    if member.numel() == 0:
        return member
    if bool((member[1:] < member[:-1]).any()) or int(member[0]) < 0:
        raise InputError("batch must be non-negative and non-decreasing")
    if int(member[-1]) >= graph.num_graphs:
        raise InputError(f"batch names graph {int(member[-1])}, but there are {graph.num_graphs}")
    return member


def _joined_edges(graphs: Sequence[RawGraphs], nodes: Tensor, before: Tensor) -> Tensor:
    """(2, M) edges in the numbering of the union; refuse a node outside its own graph."""
    if not graphs:
        return torch.empty(2, 0, dtype=torch.int64)
    if len(graphs) == 1:
        return graphs[0].edge_index.to(torch.int64)
    edge_index = torch.cat([graph.edge_index.to(torch.int64) for graph in graphs], dim=1)
    lengths = torch.tensor([graph.edge_index.size(1) for graph in graphs])
    source = torch.arange(len(graphs)).repeat_interleave(lengths).to(edge_index.device)
    outside = ((edge_index < 0) | (edge_index >= nodes.to(source.device)[source])).any(0)
    if bool(outside.any()):
        entry = int(outside.nonzero()[0])
        graph, (u, v) = int(source[entry]), edge_index[:, entry].tolist()
        last = int(nodes[graph]) - 1
        raise InputError(f"graph {graph}: edge ({u}, {v}) names a node outside 0…{last}")
    return edge_index + before.to(source.device)[source]


def _joined(name: str, parts: Sequence[tuple[Tensor | None, int]]) -> Tensor | None:
    """Concatenate (tensor, rows) of all graphs, which all or none must have, of one width."""
    present = [part for part, _ in parts if part is not None]
    if not present:
        return None
    for position, (part, rows) in enumerate(parts):
        if part is None and rows == 0:
            continue
        if part is None:
            raise InputError(f"graph {position} has no {name}, but others have")
        if part.shape[1:] != present[0].shape[1:]:
            raise InputError(
                f"graph {position}: {name} must be as wide as the first graph's, "
                f"{tuple(present[0].shape[1:])}, got {tuple(part.shape[1:])}"
            )
    return torch.cat(present) if len(present) > 1 else present[0]


def columns(values: Tensor | None) -> Tensor | None:
    """Turn one value per cell into one column."""
    return values.unsqueeze(1) if values is not None and values.dim() == 1 else values


def _merged(
    features: Tensor | None,
    canonical: CanonicalEdges,
    *,
    edge_merge: EdgeMerge | None,
    node_complex: Tensor,
) -> Tensor | None:
    """(E, Fe) one row per edge, merged from one row per entry."""
    if features is None:
        return None
    row = torch.from_numpy(canonical.row).to(features.device)
    merged = features[torch.from_numpy(canonical.first).to(features.device)]
    if bool((row < 0).any()):
        features, row = features[row >= 0], row[row >= 0]
    if edge_merge == "first":
        return merged
    differs = (features != merged[row]) & ~(features.isnan() & merged[row].isnan())
    if not bool(differs.any()):
        return merged
    if edge_merge == "mean":
        total = torch.zeros_like(merged).index_add(0, row, features)
        return total / torch.bincount(row, minlength=merged.size(0)).unsqueeze(1)
    entry = int((torch.from_numpy(canonical.row) >= 0).nonzero()[differs.any(1).cpu()][0])
    edge = canonical.edge_nodes[:, canonical.row[entry]]
    raise EdgeError(
        f"{_edge_name(edge, node_complex)} is listed with features that differ; "
        "pass edge_merge='mean' or edge_merge='first' to settle it",
        entry,
    )


def _edge_name(edge: Any, node_complex: Tensor) -> str:
    graph = int(node_complex[int(edge[0])])
    first = int(torch.searchsorted(node_complex, graph))
    return f"graph {graph}: edge ({int(edge[0]) - first}, {int(edge[1]) - first})"


def _repairs(
    canonical: CanonicalEdges, edge_index: Tensor, node_complex: Tensor
) -> tuple[str, ...]:
    repairs = canonical.repairs
    found = (
        (repairs.self_loops, repairs.first_self_loop, "self-loops dropped"),
        (repairs.repeated, repairs.first_repeated, "repeated edges merged"),
        (repairs.one_way, repairs.first_one_way, "one-way edges taken as undirected"),
    )
    return tuple(
        f"{count} {what} (first: {_edge_name(edge_index[:, entry].tolist(), node_complex)})"
        for count, entry, what in found
        if count
    )
