"""How much of a prediction every edge and every polygon carried.

The margin y of a graph is the log-odds of the explained class, the logit of a label, or the value.
Three things decide what an edge carries of it:

- readout and pooling: an edge e that survives layer l is read out with the features h̃_e, which are
  scaled by its pooling score. It carries c_e^l = ⟨∂y/∂h̃_e^l, h̃_e^l⟩ through that readout alone, and
  nothing where it was pooled away.
- attention: what e carries after a layer is half its own and half what it heard. The heard half is
  shared out between its lower and upper neighbourhood, where it has both, and within them by the
  attention weights α, averaged over the heads. From the last layer down to the input:

      r_k ← ½ r_k + Σ_e ½ r_e · s_e · α_ek,    r_e = c_e^l + (what the layer above has sent down)

- polygons: what passes from an edge to another through an upper pair passes through the polygons
  that both lie on, in equal shares.

A node carries half of what its edges carry, and what it is read out with itself where the network
reads nodes out (`node_readout`): ⟨∂y/∂x_v, x_v⟩ through that readout alone.

Half and half is the convention of attention rollout (Abnar and Zuidema 2020); they roll out only
the attention, which on MUTAG says nothing about what a prediction rests on. Shares may be
negative: such edges speak against the prediction.
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from cell_attention.nn.functional import segment_max
from cell_attention.nn.network import CellAttentionNetwork, LayerTrace, Trace
from cell_attention.topology.complex import CellComplex


class Importance(NamedTuple):
    """Shares of the margins, in the units of a logit or a value."""

    margins: Tensor
    """(num_complexes,) y, the explained margin."""
    edges: Tensor
    """(E,) r at the input."""
    polygons: Tensor
    """(P,) what passed through every polygon, over all layers."""
    nodes: Tensor
    """(N,) half of what every edge at the node carries, and what it is read out with itself."""


def importance(
    network: CellAttentionNetwork, trace: Trace, outputs: Tensor, *, classes: bool
) -> Importance:
    """Compute what the edges and polygons of a trace carry of its margins.

    outputs: (num_complexes,) the explained output of every complex.
    classes: whether outputs are classes of which one is right.
    """
    complexes = trace.complexes
    margins, carried, nodes = _read_out(network, trace, outputs, classes=classes)
    polygons = margins.new_zeros(complexes.num_polygons)
    edges = torch.zeros_like(carried[-1])  # nothing is sent down to the last layer
    for number in reversed(range(len(trace.layers))):
        layer = trace.layers[number]
        after = margins.new_zeros(layer.complexes.num_edges)
        after[layer.kept] = carried[number] + edges
        edges, passed = _sent_down(layer, after)
        polygons[_rows_of_polygons(trace, number)] += passed
    for ends in complexes.edge_nodes:
        nodes = nodes.index_add(0, ends, 0.5 * edges)
    return Importance(margins, edges, polygons, nodes)


def margin(logits: Tensor, outputs: Tensor, classes: bool) -> Tensor:
    """(num_complexes,) log-odds of a class, or an output as it is."""
    chosen = logits.gather(1, outputs[:, None])[:, 0]
    if not classes:
        return chosen
    others = logits.scatter(1, outputs[:, None], float("-inf"))
    return chosen - others.logsumexp(1)


def _read_out(
    network: CellAttentionNetwork, trace: Trace, outputs: Tensor, *, classes: bool
) -> tuple[Tensor, list[Tensor], Tensor]:
    """Return y, c^l of every layer and what every node carries itself: gradient times features,
    through the readout of that layer or of the nodes.
    """
    with torch.enable_grad():
        values = trace.complexes.node_features.to(trace.logits.dtype)
        leaves = [_tied(network, trace, layer).requires_grad_() for layer in trace.layers]
        leaves.append(values.detach().clone().requires_grad_())
        layers = tuple(
            replace(layer, features=leaf)
            for layer, leaf in zip(trace.layers, leaves[:-1], strict=True)
        )
        complexes = replace(trace.complexes, node_features=leaves[-1])
        logits = network.logits(network.read_out(complexes, layers))
        margins = margin(logits, outputs, classes)
        slopes = torch.autograd.grad(margins.sum(), leaves, allow_unused=True)
    *carried, nodes = (
        leaf.detach().new_zeros(leaf.size(0)) if slope is None else (slope * leaf).sum(1).detach()
        for slope, leaf in zip(slopes, leaves, strict=True)
    )
    return margins.detach(), carried, nodes


def _tied(network: CellAttentionNetwork, trace: Trace, layer: LayerTrace) -> Tensor:
    """Return the features that are read out. If the readout is a maximum, values that differ from
    it only by rounding errors are made equal, so that symmetric edges share it.
    """
    features = layer.features.detach()
    if network.config.readout != "max" or not features.numel():
        return features.clone()
    group = trace.complexes.edge_complex[layer.edges]
    top = segment_max(features, group, trace.complexes.num_complexes)[group]
    return torch.where(features > top - 1e-5 * features.abs().max(), top, features)


def _sent_down(layer: LayerTrace, after: Tensor) -> tuple[Tensor, Tensor]:
    """Return what every edge carries before a layer, from what the edges carry after it, and what
    has passed through every polygon of the layer's complexes.
    """
    seen = layer.complexes
    pairs = {"lower": seen.lower_pairs, "upper": seen.upper_pairs}
    weights = {"lower": layer.lower.detach().mean(1), "upper": layer.upper.detach().mean(1)}
    hears = {name: _marked(rows[0], seen.num_edges) for name, rows in pairs.items()}
    sides = hears["lower"].to(after.dtype) + hears["upper"].to(after.dtype)
    before = torch.where(sides > 0, 0.5 * after, after)  # without neighbours it keeps all
    share = 0.5 * after / sides.clamp(min=1)
    flows = {name: share[pairs[name][0]] * weights[name] for name in pairs}
    for name, flow in flows.items():
        before = before.index_add(0, pairs[name][1], flow)
    return before, _through_polygons(seen, flows["upper"])


def _marked(rows: Tensor, count: int) -> Tensor:
    """(count,) mask of these rows."""
    found = torch.zeros(count, dtype=torch.bool, device=rows.device)
    found[rows] = True
    return found


def _through_polygons(complexes: CellComplex, flow: Tensor) -> Tensor:
    """(P,) what passes along upper pairs, divided among the polygons that both edges lie on."""
    edge, polygon = complexes.polygon_edges
    sizes = complexes.polygon_sizes
    # Every ordered pair of edges of a polygon, each edge with itself too.
    order = polygon.argsort(stable=True)
    edge, polygon = edge[order], polygon[order]
    first = sizes.cumsum(0) - sizes
    receiver = torch.arange(edge.size(0), device=edge.device).repeat_interleave(sizes[polygon])
    step = torch.arange(receiver.size(0), device=edge.device)
    start = (sizes[polygon].cumsum(0) - sizes[polygon])[receiver]
    sender = first[polygon[receiver]] + step - start
    apart = receiver != sender
    receiver, sender = receiver[apart], sender[apart]
    count = complexes.num_edges
    keys = complexes.upper_pairs[0] * count + complexes.upper_pairs[1]
    sorted_keys, places = keys.sort()
    wanted = edge[receiver] * count + edge[sender]
    row = places[torch.searchsorted(sorted_keys, wanted)]
    shared = torch.zeros_like(flow).index_add(0, row, torch.ones_like(flow)[row])
    found = flow.new_zeros(complexes.num_polygons)
    return found.index_add(0, polygon[receiver], (flow / shared.clamp(min=1))[row])


def _rows_of_polygons(trace: Trace, number: int) -> Tensor:
    """Rows of the input's polygons that layer `number` still sees, in its order."""
    if number == 0:
        return torch.arange(trace.complexes.num_polygons, device=trace.complexes.device)
    edge, polygon = trace.complexes.polygon_edges
    alive = _marked(trace.layers[number - 1].edges, trace.complexes.num_edges)
    broken = _marked(polygon[~alive[edge]], trace.complexes.num_polygons)
    return (~broken).nonzero().flatten()
