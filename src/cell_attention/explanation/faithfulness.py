"""How faithful importances are: how a prediction changes when edges are deleted or inserted.

Attention is a weight, not a cause. Whether an edge matters to a prediction shows when it is gone:
deleting the most important edges should change the prediction more than deleting edges at random.
"""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from scipy.special import stdtr
from torch import Tensor

from cell_attention.data.file_format import Kind
from cell_attention.explanation.importance import Importance, margin
from cell_attention.explanation.subjects import Explained, members_of, temperatures_of
from cell_attention.inference.prediction import mean_prediction
from cell_attention.topology.complex import CellComplex

STEPS = tuple(step / 10 for step in range(11))
"""Shares of the edges at which the curves are computed."""
TOP = 0.2
"""Share of the edges that fidelity deletes, or keeps."""
DRAWS = 10
"""Number of random rankings that are averaged."""
AT_ONCE = 1024
"""Number of graphs, with some edges deleted, in one forward pass."""
MEASURES = ("area", "fidelity_plus", "fidelity_minus")


@dataclass(frozen=True)
class Faithfulness:
    """Faithfulness of one ranking of the edges of some graphs; (G,) or (G, steps) each."""

    deletion: Tensor
    """Prediction after the best share of the edges is deleted, at every step."""
    insertion: Tensor
    """Prediction when only the best share of the edges is kept, at every step."""
    fidelity_plus: Tensor
    """How much the prediction falls without the best fifth: higher is more faithful."""
    fidelity_minus: Tensor
    """How much it falls with only the best fifth: lower is more faithful."""

    @property
    def area(self) -> Tensor:
        """(G,) mean of insertion minus deletion over the steps: higher is more faithful."""
        return (self.insertion - self.deletion).mean(1)

    def of(self, graph: int) -> "Faithfulness":
        """Of one of the graphs."""
        return Faithfulness(*(getattr(self, f.name)[graph : graph + 1] for f in fields(self)))

    @staticmethod
    def joined(parts: "Sequence[Faithfulness]") -> "Faithfulness":
        """Of all graphs of several."""
        names = [f.name for f in fields(Faithfulness)]
        return Faithfulness(*(torch.cat([getattr(p, name) for p in parts]) for name in names))


@dataclass(frozen=True)
class Compared:
    """The faithfulness of three rankings of the same edges."""

    ours: Faithfulness
    gradient: Faithfulness
    """Gradient × input."""
    chance: Faithfulness
    """The mean over random orders."""

    def of(self, graph: int) -> "Compared":
        """Of one of the graphs."""
        return Compared(self.ours.of(graph), self.gradient.of(graph), self.chance.of(graph))

    @staticmethod
    def joined(parts: "Sequence[Compared]") -> "Compared":
        """Of all graphs of several."""
        names = [f.name for f in fields(Compared)]
        return Compared(*(Faithfulness.joined([getattr(p, n) for p in parts]) for n in names))

    def means(self) -> dict[str, dict[str, float]]:
        """Average every measure of every ranking over the graphs; `p` is the p-value of a paired
        t-test that ours is more faithful than chance (NaN for a single graph).
        """
        found = {}
        for name in MEASURES:
            values = {f.name: getattr(getattr(self, f.name), name) for f in fields(self)}
            found[name] = {key: float(value.double().mean()) for key, value in values.items()}
            more = (values["ours"] - values["chance"]).double()
            found[name]["p"] = _p_value(-more if name == "fidelity_minus" else more)
        return found


def compared(
    network: Explained,
    complexes: CellComplex,
    ranking: Tensor,
    *,
    outputs: Tensor,
    task: Kind = "classes",
) -> Compared:
    """Compare a ranking with gradient × input and with random rankings."""
    other = gradient_times_input(network, complexes, outputs, task=task)
    return Compared(
        faithfulness(network, complexes, ranking, outputs=outputs, task=task),
        faithfulness(network, complexes, other, outputs=outputs, task=task),
        by_chance(network, complexes, outputs, task=task),
    )


def faithfulness(
    network: Explained,
    complexes: CellComplex,
    ranking: Tensor,
    *,
    outputs: Tensor,
    task: Kind = "classes",
) -> Faithfulness:
    """Measure how predictions change when edges are deleted by rank, the highest first.

    ranking: (E,) for all edges of all graphs; outputs: (G,) the explained output of each graph.
    """
    position = _position(ranking, complexes)
    count = complexes.edge_complex.bincount(minlength=len(complexes))
    # The share is rounded up as in pooling, but not because of the rounding error in 0.2 · 10.
    best = [(s * count.double() - 1e-9).ceil().clamp(min=0)[complexes.edge_complex] for s in STEPS]
    without = [position >= limit for limit in best]
    alone = [position < limit for limit in best]
    found = _predicted(network, complexes, torch.stack(without + alone), outputs=outputs, task=task)
    deletion, insertion = found.T.split(len(STEPS), dim=1)
    top = STEPS.index(TOP)
    whole = deletion[:, 0]
    return Faithfulness(deletion, insertion, whole - deletion[:, top], whole - insertion[:, top])


def by_chance(
    network: Explained,
    complexes: CellComplex,
    outputs: Tensor,
    *,
    task: Kind = "classes",
    seed: int = 0,
) -> Faithfulness:
    """Average over random rankings, half of which reverse the other half; the rankings of a graph
    do not depend on other graphs.
    """
    drawn = [
        torch.rand(DRAWS // 2, graph.num_edges, generator=_generator(graph, seed))
        for graph in complexes
    ]
    orders = torch.cat(drawn, 1).to(complexes.device)
    found = [
        faithfulness(network, complexes, order, outputs=outputs, task=task)
        for order in torch.cat([orders, -orders])
    ]
    return Faithfulness(
        *(torch.stack([getattr(one, f.name) for one in found]).mean(0) for f in fields(found[0]))
    )


def _generator(graph: CellComplex, seed: int) -> torch.Generator:
    """Seed a generator for each graph: the same numbers for all would favour positions in the order
    of edges, which is not random.
    """
    checksum = seed
    for part in (graph.edge_nodes, graph.node_features):
        checksum = zlib.crc32(part.detach().cpu().numpy().tobytes(), checksum)
    return torch.Generator().manual_seed(checksum)


def gradient_times_input(
    network: Explained, complexes: CellComplex, outputs: Tensor, *, task: Kind = "classes"
) -> Tensor:
    """(E,) gradient of the margin times features: those of an edge, and those of its end nodes,
    divided among the edges of the node; the mean over an ensemble.
    """
    inputs = [complexes.node_features.detach().clone().requires_grad_()]
    if complexes.edge_features is not None:
        inputs.append(complexes.edge_features.detach().clone().requires_grad_())
    members = members_of(network)
    with torch.enable_grad():
        edges = inputs[1] if len(inputs) > 1 else None
        given = replace(complexes, node_features=inputs[0], edge_features=edges)
        totals = [margin(one(given), outputs, task == "classes").sum() for one in members]
        mean = sum(totals[1:], totals[0]) / len(totals)
        # A network may ignore the features of edges.
        slopes = torch.autograd.grad(mean, inputs, allow_unused=True, materialize_grads=True)
    shares = [(slope * value).sum(1).detach() for slope, value in zip(slopes, inputs, strict=True)]
    degree = complexes.edge_nodes.flatten().bincount(minlength=complexes.num_nodes).clamp(min=1)
    small, large = complexes.edge_nodes
    found = (shares[0] / degree)[small] + (shares[0] / degree)[large]
    return found + shares[1] if len(shares) > 1 else found


def gradient_importance(
    network: Explained, complexes: CellComplex, logits: Tensor, *, outputs: Tensor, task: Kind
) -> Importance:
    """Shares of a network without a trace: gradient × input of edges, zero for polygons."""
    edges = gradient_times_input(network, complexes, outputs, task=task)
    nodes = edges.new_zeros(complexes.num_nodes)
    for ends in complexes.edge_nodes:
        nodes = nodes.index_add(0, ends, 0.5 * edges)
    polygons = edges.new_zeros(complexes.num_polygons)
    return Importance(margin(logits, outputs, task == "classes"), edges, polygons, nodes)


def _position(ranking: Tensor, complexes: CellComplex) -> Tensor:
    """(E,) rank of every edge among those of its graph, 0 for the highest."""
    order = ranking.argsort(descending=True, stable=True)
    order = order[complexes.edge_complex[order].argsort(stable=True)]
    count = complexes.edge_complex.bincount(minlength=len(complexes))
    first = (count.cumsum(0) - count)[complexes.edge_complex[order]]
    place = torch.empty_like(order)
    place[order] = torch.arange(order.size(0), device=order.device) - first
    return place


@torch.no_grad()
def _predicted(
    network: Explained, complexes: CellComplex, kept: Tensor, *, outputs: Tensor, task: Kind
) -> Tensor:
    """(variants, G) probability of a class or label, or value; kept: (variants, E) edges."""
    graphs = torch.arange(len(complexes), device=complexes.device)
    members, found = members_of(network), []
    for part in kept.split(max(1, AT_ONCE // max(1, len(complexes)))):
        copies = complexes[graphs.repeat(part.size(0))].restrict(part.flatten())
        made = [one(copies) for one in members]
        every = mean_prediction(task, made, temperatures_of(network))
        found.append(every.gather(1, outputs.repeat(part.size(0))[:, None])[:, 0])
    return torch.cat(found).view(kept.size(0), -1)


def _p_value(differences: Tensor) -> float:
    """Return the p-value of a t-test that their mean is above zero."""
    count, spread = differences.numel(), float(differences.std()) if differences.numel() > 1 else 0
    if not spread > 0:
        return math.nan
    return float(stdtr(count - 1, -float(differences.mean()) / (spread / math.sqrt(count))))
