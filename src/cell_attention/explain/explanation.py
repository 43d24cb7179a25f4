"""Explanations of predictions, graph by graph."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cell_attention.data.dataset import Kind
from cell_attention.errors import InputError
from cell_attention.explain.importance import Importance, importance
from cell_attention.nn.network import CellAttentionNetwork, LayerTrace, Trace
from cell_attention.topology.complex import CellComplex

AT_ONCE = 256
"""Graphs that are traced together."""


@dataclass(frozen=True)
class Layer:
    """What one layer did to one graph; edges and pairs are rows of the input graph."""

    lower_pairs: Tensor
    """(2, ·) who hears whom, sharing a node."""
    lower: Tensor
    """(·, H) attention weights of these pairs."""
    upper_pairs: Tensor
    """(2, ·) who hears whom, sharing a polygon that is still whole."""
    upper: Tensor
    """(·, H) attention weights of these pairs."""
    edges: Tensor
    """(K,) the edges that the layer saw."""
    score: Tensor | None
    """(K,) pooling score of every edge that it saw; None where it does not pool."""
    survivors: Tensor
    """(S,) the edges that are left after it."""


@dataclass(frozen=True)
class Explanation:
    """What the prediction for one graph rests on."""

    complexes: CellComplex
    """The graph, lifted."""
    logits: Tensor
    """(outputs,)."""
    output: int
    """The class, label or value that is explained."""
    margin: float
    """Its log-odds, its logit or its value."""
    edges: Tensor
    """(E,) share of the margin that every edge carries; negative ones speak against it."""
    polygons: Tensor
    """(P,) share that passed through every polygon."""
    nodes: Tensor
    """(N,) half of what the edges at every node carry."""
    layers: tuple[Layer, ...]

    def top_edges(self, count: int) -> Tensor:
        """The edges that carry most, the first one first."""
        return self.edges.argsort(descending=True, stable=True)[:count]


def explain(
    network: CellAttentionNetwork,
    graphs: Any,
    outputs: Sequence[int] | Tensor | None = None,
    task: Kind | None = None,
) -> list[Explanation]:
    """What the predictions of a trained network rest on, one explanation per graph.

    graphs: a CellComplex or anything that `lift` takes.
    outputs: which class, label or value of every graph is explained; by default the predicted
        class, or the first label or value.
    task: whether the outputs are classes of which one is right, or labels or values that stand for
        themselves; by default several outputs are classes.
    """
    if network.training:
        raise InputError("the network is in training mode; call network.eval() first")
    complexes = network.complexes_of(graphs)
    chosen = None if outputs is None else torch.as_tensor(outputs, dtype=torch.int64)
    if chosen is not None and tuple(chosen.shape) != (len(complexes),):
        raise InputError(f"outputs must be ({len(complexes)},), got {tuple(chosen.shape)}")
    if chosen is not None and not bool(((chosen >= 0) & (chosen < network.outputs)).all()):
        raise InputError(f"outputs must lie in 0…{network.outputs - 1}")
    exclusive = task == "classes" or (task is None and network.outputs > 1)
    if exclusive and network.outputs < 2:
        raise InputError("classes need at least two outputs, got one")
    found: list[Explanation] = []
    for first in range(0, len(complexes), AT_ONCE):
        part = complexes[first : first + AT_ONCE]
        with torch.no_grad():
            trace = network.trace(part)
        if chosen is not None:
            named = chosen[first : first + AT_ONCE].to(trace.logits.device)
        else:
            best = trace.logits.argmax(1)
            named = best if exclusive else torch.zeros_like(best)
        found.extend(_one_by_one(trace, named, importance(network, trace, named, exclusive)))
    return found


def _one_by_one(trace: Trace, outputs: Tensor, carried: Importance) -> Iterator[Explanation]:
    complexes = trace.complexes
    for graph in range(len(complexes)):
        edges, polygons, nodes = (
            (member == graph).nonzero().flatten()
            for member in (
                complexes.edge_complex, complexes.polygon_complex, complexes.node_complex,
            )
        )  # fmt: skip
        first = int(edges[0]) if edges.numel() else 0
        yield Explanation(
            complexes[graph : graph + 1],
            trace.logits[graph],
            int(outputs[graph]),
            float(carried.margins[graph]),
            carried.edges[edges],
            carried.polygons[polygons],
            carried.nodes[nodes],
            tuple(_layers_of(trace, graph, first)),
        )


def _layers_of(trace: Trace, graph: int, first: int) -> Iterator[Layer]:
    """The layers as one graph saw them; its edges begin at row `first` of the input."""
    alive = torch.arange(trace.complexes.num_edges, device=trace.complexes.device)
    for layer in trace.layers:
        mine = layer.complexes.edge_complex == graph
        lower, upper = _pairs_of(layer, mine, alive, first)
        left = trace.complexes.edge_complex[layer.edges] == graph
        yield Layer(
            *lower, *upper, alive[mine] - first,
            None if layer.score is None else layer.score[mine], layer.edges[left] - first,
        )  # fmt: skip
        alive = layer.edges


def _pairs_of(
    layer: LayerTrace, mine: Tensor, alive: Tensor, first: int
) -> list[tuple[Tensor, Tensor]]:
    """Lower and upper pairs of one graph as rows of its own edges, with their weights."""
    found = []
    for pairs, weights in (
        (layer.complexes.lower_pairs, layer.lower), (layer.complexes.upper_pairs, layer.upper),
    ):  # fmt: skip
        rows = mine[pairs[0]]
        found.append((alive[pairs[:, rows]] - first, weights[rows]))
    return found
