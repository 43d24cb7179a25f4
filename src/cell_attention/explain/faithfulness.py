"""How faithful importances are: what becomes of a prediction when edges go, or come back.

Attention is a weight, not a cause. Whether an edge matters to a prediction shows when it is gone:
deleting what is said to matter should change the prediction more than deleting edges at random.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cell_attention.data.dataset import Kind
from cell_attention.explain.importance import margin
from cell_attention.learn.tasks import predictions_of
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.topology.complex import CellComplex

STEPS = tuple(step / 10 for step in range(11))
"""Shares of the edges at which curves are read."""
TOP = 0.2
"""Share of the edges that fidelity takes away, or leaves alone."""
DRAWS = 10
"""Random orders that stand for chance."""


@dataclass(frozen=True)
class Faithfulness:
    """Of one ranking of the edges of some graphs; (G,) or (G, steps) each."""

    deletion: Tensor
    """What is predicted after the best share of the edges is deleted, at every step."""
    insertion: Tensor
    """What is predicted when only the best share is there."""
    fidelity_plus: Tensor
    """How much the prediction falls without the best fifth: higher is more faithful."""
    fidelity_minus: Tensor
    """How much it falls with the best fifth alone: lower is more faithful."""

    @property
    def area(self) -> Tensor:
        """(G,) mean of insertion minus deletion over the steps: higher is more faithful."""
        return (self.insertion - self.deletion).mean(1)


def faithfulness(
    network: CellAttentionNetwork,
    complexes: CellComplex,
    ranking: Tensor,
    outputs: Tensor,
    task: Kind = "classes",
) -> Faithfulness:
    """What becomes of the predictions as edges go in the order of a ranking, the highest first.

    ranking: (E,) of all edges of all graphs; outputs: (G,) what is explained of every graph.
    """
    position = _position(ranking, complexes)
    count = complexes.edge_complex.bincount(minlength=len(complexes))

    def predicted(keep: Callable[[Tensor], Tensor]) -> Tensor:
        return _predicted(network, complexes.restrict(keep(position)), outputs, task)

    def best(share: float) -> Tensor:
        # The share, rounded up as pooling does, but not for what floats make of 0.2 · 10.
        return (share * count.double() - 1e-9).ceil().clamp(min=0)[complexes.edge_complex]

    whole = _predicted(network, complexes, outputs, task)
    without = [predicted(lambda rank, s=s: rank >= best(s)) for s in STEPS]  # type: ignore[misc]
    alone = [predicted(lambda rank, s=s: rank < best(s)) for s in STEPS]  # type: ignore[misc]
    top = STEPS.index(TOP)
    return Faithfulness(
        torch.stack(without, 1), torch.stack(alone, 1), whole - without[top], whole - alone[top]
    )


def by_chance(
    network: CellAttentionNetwork,
    complexes: CellComplex,
    outputs: Tensor,
    task: Kind = "classes",
    seed: int = 0,
) -> Faithfulness:
    """The mean over random rankings."""
    draw = torch.Generator().manual_seed(seed)
    orders = [torch.rand(complexes.num_edges, generator=draw) for _ in range(DRAWS)]
    found = [faithfulness(network, complexes, order, outputs, task) for order in orders]
    means = [
        torch.stack([getattr(one, name) for one in found]).mean(0)
        for name in ("deletion", "insertion", "fidelity_plus", "fidelity_minus")
    ]
    return Faithfulness(*means)


def gradient_times_input(
    network: CellAttentionNetwork, complexes: CellComplex, outputs: Tensor, task: Kind = "classes"
) -> Tensor:
    """(E,) the other ranking that people use: slope of the margin times the features, of an edge
    and of its ends, whose own is shared out among their edges.
    """
    inputs = [complexes.node_features.detach().clone().requires_grad_()]
    if complexes.edge_features is not None:
        inputs.append(complexes.edge_features.detach().clone().requires_grad_())
    with torch.enable_grad():
        edges = inputs[1] if len(inputs) > 1 else None
        logits = network(replace(complexes, node_features=inputs[0], edge_features=edges))
        total = margin(logits, outputs, task == "classes").sum()
        slopes = torch.autograd.grad(total, inputs)
    shares = [(slope * value).sum(1).detach() for slope, value in zip(slopes, inputs, strict=True)]
    degree = complexes.edge_nodes.flatten().bincount(minlength=complexes.num_nodes).clamp(min=1)
    small, large = complexes.edge_nodes
    found = (shares[0] / degree)[small] + (shares[0] / degree)[large]
    return found + shares[1] if len(shares) > 1 else found


def _position(ranking: Tensor, complexes: CellComplex) -> Tensor:
    """(E,) place of every edge among those of its graph, 0 for the highest."""
    order = ranking.argsort(descending=True, stable=True)
    order = order[complexes.edge_complex[order].argsort(stable=True)]
    count = complexes.edge_complex.bincount(minlength=len(complexes))
    first = (count.cumsum(0) - count)[complexes.edge_complex[order]]
    place = torch.empty_like(order)
    place[order] = torch.arange(order.size(0), device=order.device) - first
    return place


@torch.no_grad()
def _predicted(
    network: CellAttentionNetwork, complexes: CellComplex, outputs: Tensor, task: Kind
) -> Tensor:
    """(G,) probability of a class or label, or value."""
    predictions = predictions_of(task, network(complexes))
    return predictions.gather(1, outputs[:, None])[:, 0]
