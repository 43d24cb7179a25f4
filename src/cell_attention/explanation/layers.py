"""What the layers of a network did to one graph, for pictures and reports."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from cell_attention.nn.network import LayerTrace, Trace


@dataclass(frozen=True)
class Layer:
    """What one layer did to one graph; edges and pairs are rows of the input graph."""

    lower_pairs: Tensor
    """(2, ·) rows (receiver, sender): edges that share a node."""
    lower: Tensor
    """(·, H) attention weights of these pairs."""
    upper_pairs: Tensor
    """(2, ·) rows (receiver, sender): edges that share a polygon that is still whole."""
    upper: Tensor
    """(·, H) attention weights of these pairs."""
    edges: Tensor
    """(K,) the edges that the layer saw."""
    score: Tensor | None
    """(K,) pooling score of every edge that it saw; None if it does not pool."""
    survivors: Tensor
    """(S,) the edges that are left after it."""


def layers_of(trace: Trace, graph: int, first: int) -> Iterator[Layer]:
    """Yield the layers of one graph, whose edges begin at row `first` of the input."""
    alive = torch.arange(trace.complexes.num_edges, device=trace.complexes.device)
    for layer in trace.layers:
        mine = layer.complexes.edge_complex == graph
        lower, upper = _pairs_of(layer, mine, alive=alive, first=first)
        left = trace.complexes.edge_complex[layer.edges] == graph
        yield Layer(
            *lower, *upper, alive[mine] - first,
            None if layer.score is None else layer.score[mine], layer.edges[left] - first,
        )  # fmt: skip
        alive = layer.edges


def _pairs_of(
    layer: LayerTrace, mine: Tensor, *, alive: Tensor, first: int
) -> list[tuple[Tensor, Tensor]]:
    """Return lower and upper pairs of one graph as rows of its own edges, with weights."""
    found = []
    for pairs, weights in (
        (layer.complexes.lower_pairs, layer.lower), (layer.complexes.upper_pairs, layer.upper),
    ):  # fmt: skip
        rows = mine[pairs[0]]
        found.append((alive[pairs[:, rows]] - first, weights[rows]))
    return found
