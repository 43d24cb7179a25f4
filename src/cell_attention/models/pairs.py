"""All ordered pairs of nodes of the same graph, as rows: what IGN and PPGN compute on.

Rows are ordered by (size of the graph, graph, i, j). Graphs of one size follow each other, so that
their pairs are a dense (graphs, n, n) block without padding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cell_attention.errors import InputError
from cell_attention.nn.functional import segment_max
from cell_attention.topology.complex import CellComplex

LARGEST = 700
"""Nodes of the largest graph: a layer keeps some hundred numbers for every pair of its nodes. A
training step on the largest graph of PROTEINS, with 620, takes 0.8 GB for PPGN and 2.8 for IGN."""
ROWS = 2**17
"""Pairs that are computed at once; a single graph may have more."""


@dataclass(frozen=True)
class Pairs:
    """The pairs of nodes of some graphs of one batch."""

    sizes: Tensor
    """(graphs,) number of nodes, not decreasing."""
    features: Tensor
    """(rows, F) input: edge or not, features of the edge, and on the diagonal those of the node."""

    @cached_property
    def graph(self) -> Tensor:
        """(rows,) graph of every pair."""
        return _repeat(torch.arange(self.sizes.size(0), device=self.sizes.device), self.sizes**2)

    @cached_property
    def node_graph(self) -> Tensor:
        """(nodes,) graph of every node."""
        return _repeat(torch.arange(self.sizes.size(0), device=self.sizes.device), self.sizes)

    @cached_property
    def ends(self) -> tuple[Tensor, Tensor]:
        """(rows,) nodes i and j of every pair."""
        size = self.sizes[self.graph]
        within = torch.arange(size.size(0), device=size.device) - _starts(self.sizes**2)[self.graph]
        first = _starts(self.sizes)[self.graph]
        return first + within // size, first + within % size

    @cached_property
    def transposed(self) -> Tensor:
        """(rows,) row of (j, i)."""
        i, j = self.ends
        first, size = _starts(self.sizes)[self.graph], self.sizes[self.graph]
        return _starts(self.sizes**2)[self.graph] + (j - first) * size + i - first

    @cached_property
    def diagonal(self) -> Tensor:
        """(nodes,) row of (i, i)."""
        i, j = self.ends
        return (i == j).nonzero()[:, 0]

    def blocks(self, *values: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Yield the rows of all graphs of one size as (graphs, F, n, n), for every size."""
        first = 0
        for size, count in zip(*self.sizes.unique(return_counts=True), strict=True):
            n, graphs = int(size), int(count)
            rows = slice(first, first := first + graphs * n * n)
            shape = graphs, n, n
            yield tuple(
                value[rows].view(*shape, value.size(1)).permute(0, 3, 1, 2) for value in values
            )

    def largest(self, values: Tensor) -> Tensor:
        """(graphs, 2F) maxima on the diagonal and beside it; zeros for a graph without such pairs
        (Maron et al. 2019).
        """
        count, beside = self.sizes.size(0), torch.ones_like(self.graph, dtype=torch.bool)
        beside[self.diagonal] = False
        on = segment_max(values[self.diagonal], self.node_graph, count)
        off = segment_max(values[beside], self.graph[beside], count)
        return torch.cat([on, off], dim=1)


def pairs_of(complexes: CellComplex) -> Pairs:
    """Make the pairs of graphs that are sorted by size."""
    sizes = complexes.node_complex.bincount(minlength=complexes.num_complexes)
    nodes, edges = complexes.node_features, complexes.edge_features
    width = 1 + (0 if edges is None else edges.size(1))
    made = Pairs(sizes, nodes.new_zeros(int((sizes**2).sum()), width + nodes.size(1)))
    first = _starts(sizes)[complexes.edge_complex]
    i, j = complexes.edge_nodes - first
    square, size = _starts(sizes**2)[complexes.edge_complex], sizes[complexes.edge_complex]
    given = nodes.new_ones(complexes.num_edges, 1)
    if edges is not None:
        given = torch.cat([given, edges.to(nodes.dtype)], dim=1)
    for rows in (square + i * size + j, square + j * size + i):
        made.features[rows, :width] = given
    made.features[made.diagonal, width:] = nodes
    return made


def pair_features(node_features: int, edge_features: int) -> int:
    """Return the number of features of a pair."""
    return 1 + edge_features + node_features


def in_pieces(complexes: CellComplex, compute: Callable[[Pairs], Tensor]) -> Tensor:
    """Apply a network to all graphs, about ROWS pairs at a time, and return (num_complexes, F).

    While training, only the outputs of a piece are kept, and the rest is computed again when it is
    needed: the memory is that of the largest piece.
    """
    bare = replace(complexes, polygon_features=None, complex_features=None, targets=None)
    require_small(complexes)
    sizes = complexes.node_complex.bincount(minlength=complexes.num_complexes)
    order = sizes.sort(stable=True).indices
    piece = ((sizes[order] ** 2).cumsum(0) - 1).clamp(min=0) // ROWS
    counts = piece.unique_consecutive(return_counts=True)[1].tolist()
    chosen = order.split(counts or [0])
    found = [again(compute, pairs_of(bare[graphs]), save=len(chosen) > 1) for graphs in chosen]
    result = torch.cat(found)
    return torch.zeros_like(result).index_copy(0, order, result)


def again(function: Callable[..., Tensor], *given: Any, save: bool) -> Tensor:
    """Call a function; to `save` memory, its backward pass computes it again."""
    if not save or not torch.is_grad_enabled():
        return function(*given)
    result: Tensor = checkpoint(function, *given, use_reentrant=False)
    return result


def require_small(complexes: CellComplex) -> dict[str, int]:
    """Refuse graphs whose pairs need too much memory; a network of pairs needs no further sizes."""
    sizes = complexes.node_complex.bincount(minlength=complexes.num_complexes)
    too_large = (sizes > LARGEST).nonzero()[:, 0]
    if too_large.numel():
        graph = int(too_large[0])
        raise InputError(
            f"graph {graph} has {int(sizes[graph]):,} nodes; the models ign and ppgn compute on "
            f"all pairs of nodes and take graphs of at most {LARGEST}"
        )
    return {}


def _starts(sizes: Tensor) -> Tensor:
    return sizes.cumsum(0) - sizes


def _repeat(values: Tensor, counts: Tensor) -> Tensor:
    return values.repeat_interleave(counts)
