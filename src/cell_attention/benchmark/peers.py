"""Training steps to compare with ours: rivals, TopoModelX's layers, matrix products alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.errors import DataError
from cell_attention.models.registry import build_network, defaults, sizes_of
from cell_attention.nn.attention import CellAttention
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.edge_network import EdgeNetwork
from cell_attention.topology.complex import CellComplex

Step = Callable[[], object]


def optimiser(network: nn.Module) -> torch.optim.Optimizer:
    """Return AdamW, the same for every contender."""
    return torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)


def _targets(batch: CellComplex) -> Tensor:
    if batch.targets is None:
        raise DataError("training needs graphs with targets, got batch.targets None")
    return batch.targets


def config_of(model: str, preset: str) -> NetworkConfig:
    """Return the configuration of the paper's network, or of a rival with the same widths."""
    paper = NetworkConfig.paper(preset)
    if model == "can":
        return paper
    usual, heads = defaults(model, preset)[0], (1,) * len(paper.widths)
    if model == "gat":
        return replace(usual, hidden=paper.hidden, heads=paper.heads)
    return replace(usual, hidden=paper.widths, heads=heads, head_hidden=paper.head_hidden)


def model_step(model: str, preset: str, batch: CellComplex) -> tuple[Step, nn.Module]:
    """Make a training step of a model on a batch with targets; also return its network."""
    torch.manual_seed(0)
    outputs = int(_targets(batch).max()) + 1
    network = build_network(model, config_of(model, preset), sizes_of(model, batch, outputs))
    return training_step(network, batch), network


def plain_step(network: EdgeNetwork, batch: CellComplex) -> Step:
    """Make a training step of the same network without compiled kernels."""
    sizes = network.node_features, network.edge_features, network.outputs
    return training_step(EdgeNetwork(network.config, *sizes, kernel="torch"), batch)


def training_step(network: nn.Module, batch: CellComplex) -> Step:
    """Make a training step: forward, backward and AdamW."""
    targets, adam = _targets(batch), optimiser(network)

    def step() -> None:
        adam.zero_grad()
        functional.cross_entropy(network(batch), targets).backward()
        adam.step()

    return step


def our_step(preset: str, batch: CellComplex) -> tuple[Step, EdgeNetwork]:
    """Make a training step of the paper's network; also return the network."""
    step, network = model_step("can", preset, batch)
    return step, cast(EdgeNetwork, network)


def floor_step(network: EdgeNetwork, batch: CellComplex) -> Step:
    """Make a step of only the matrix products that a training step needs: forward, gradient of the
    input and of the weights, at the edge counts that pooling leaves. The nodes need no gradient.
    """
    layers = network.trace(batch).layers
    config = network.config
    widths = (network.lift.out_channels + network.edge_features, *config.widths)
    shapes = [(batch.num_nodes, network.node_features, 2 * network.lift.out_channels, False)]
    for seen, (fin, fout) in zip(layers, pairwise(widths), strict=True):
        shapes.append((seen.complexes.num_edges, fin, 3 * fout, True))
    outputs = int(_targets(batch).max()) + 1
    for fin, fout in pairwise((config.readout_width, config.head_hidden, outputs)):
        shapes.append((batch.num_complexes, fin, fout, True))
    return products(shapes)


def products(shapes: Sequence[tuple[int, int, int, bool]]) -> Step:
    """Make a step of matrix products alone: forward, gradient of the weights and, where asked for,
    of the input; shapes: (rows, columns in, columns out, whether the input has a gradient).
    """
    given = [
        (torch.randn(rows, fin), torch.randn(fout, fin), torch.randn(rows, fout), back)
        for rows, fin, fout, back in shapes
    ]

    def step() -> None:
        for values, weight, grad, back in given:
            values @ weight.T
            if back:
                grad @ weight
            grad.T @ values

    return step


def stack_step(layers: list[nn.Module], width: int, batch: CellComplex, *near: Tensor) -> Step:
    """Make a training step of a stack of attention layers alone, on random edge features."""
    torch.manual_seed(0)
    edges = torch.randn(batch.num_edges, width)
    stack = nn.ModuleList(layers)
    adam = optimiser(stack)

    def step() -> None:
        adam.zero_grad()
        values = edges
        for layer in stack:
            result = layer(values, *near)
            values = result if isinstance(result, Tensor) else result.edges
        values.square().mean().backward()
        adam.step()

    return step


def our_stack(config: NetworkConfig, batch: CellComplex) -> Step:
    """Make a step of our attention layers without lift and pooling, with TopoModelX's functions."""
    widths = (config.lift_heads, *config.widths)
    layers: list[nn.Module] = [
        CellAttention(width, size, heads, activation="relu")
        for width, size, heads in zip(widths[:-1], config.hidden, config.heads, strict=True)
    ]
    return stack_step(layers, widths[0], batch, batch.lower_pairs, batch.upper_pairs)


def topomodelx_stack(config: NetworkConfig, batch: CellComplex) -> Step | None:
    """Make a step of TopoModelX's layers of the same widths (GAT scores, leaky ReLU, ReLU, no
    self-loops) on the same pairs; None if it is not installed.
    """
    if find_spec("topomodelx") is None:
        return None
    from topomodelx.nn.cell.can_layer import CANLayer

    widths = (config.lift_heads, *config.widths)
    layers: list[nn.Module] = [
        CANLayer(fin, fout, heads=heads, add_self_loops=False)
        for (fin, fout), heads in zip(pairwise(widths), config.heads, strict=True)
    ]
    size = (batch.num_edges, batch.num_edges)
    near = (
        torch.sparse_coo_tensor(
            pairs, torch.ones(pairs.size(1)), size, check_invariants=True
        ).coalesce()
        for pairs in (batch.lower_pairs, batch.upper_pairs)
    )
    return stack_step(layers, widths[0], batch, *near)
