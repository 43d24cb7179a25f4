"""The networks that ours is timed beside: TopoModelX's layers, PyG's GAT and GIN, matmuls alone."""

from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.errors import DataError
from cell_attention.nn.attention import CellAttention
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.topology.complex import CellComplex

Step = Callable[[], object]


def optimiser(network: nn.Module) -> torch.optim.Optimizer:
    """AdamW for every contender alike."""
    return torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)


def _targets(batch: CellComplex) -> Tensor:
    if batch.targets is None:
        raise DataError("training needs graphs with targets")
    return batch.targets


def our_step(preset: str, batch: CellComplex) -> tuple[Step, CellAttentionNetwork]:
    """Forward, backward and AdamW of the paper's network on a batch with targets."""
    torch.manual_seed(0)
    given, targets = batch.edge_features, _targets(batch)
    network = CellAttentionNetwork(
        NetworkConfig.paper(preset),
        batch.node_features.size(1),
        0 if given is None else given.size(1),
        int(targets.max()) + 1,
    )
    adam = optimiser(network)

    def step() -> None:
        adam.zero_grad()
        functional.cross_entropy(network(batch), targets).backward()
        adam.step()

    return step, network


def floor_step(network: CellAttentionNetwork, batch: CellComplex) -> Step:
    """The matrix products that such a step cannot do without, and nothing else: forward, gradient
    of the input and of the weights, at the edge counts that pooling leaves. The nodes need no
    gradient.
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
    """A training step of attention layers alone, one after the other, on random edge features."""
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
    """Our attention layers without lift and pooling, with the functions that TopoModelX has."""
    widths = (config.lift_heads, *config.widths)
    layers: list[nn.Module] = [
        CellAttention(width, size, heads, activation="relu")
        for width, size, heads in zip(widths[:-1], config.hidden, config.heads, strict=True)
    ]
    return stack_step(layers, widths[0], batch, batch.lower_pairs, batch.upper_pairs)


def topomodelx_stack(config: NetworkConfig, batch: CellComplex) -> Step | None:
    """TopoModelX's layers of the same widths (GAT scores, leaky ReLU, ReLU, no self-loops) on the
    same pairs; None where it is not installed.
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


def pyg_step(kind: str, config: NetworkConfig, batch: CellComplex) -> Step:
    """A training step of PyG's GAT or GIN on the nodes of the same graphs, with the same widths."""
    from torch_geometric.nn import GATConv, GINConv, global_add_pool

    edge_index = torch.cat([batch.edge_nodes, batch.edge_nodes.flip(0)], dim=1)
    widths = (batch.node_features.size(1), *config.widths)
    convolutions = [
        GATConv(fin, fout // heads, heads)
        if kind == "GAT"
        else GINConv(nn.Sequential(nn.Linear(fin, fout), nn.ReLU(), nn.Linear(fout, fout)))
        for (fin, fout), heads in zip(pairwise(widths), config.heads, strict=True)
    ]
    targets = _targets(batch)
    outputs = int(targets.max()) + 1
    norms = [nn.BatchNorm1d(width) for width in widths[1:]]
    head = nn.Sequential(
        nn.Linear(widths[-1], config.head_hidden), nn.ReLU(), nn.Linear(config.head_hidden, outputs)
    )
    network = nn.ModuleList([*convolutions, *norms, head])
    adam = optimiser(network)

    def step() -> None:
        adam.zero_grad()
        nodes = batch.node_features
        for convolution, norm in zip(convolutions, norms, strict=True):
            nodes = norm(functional.elu(convolution(nodes, edge_index)))
        read = global_add_pool(nodes, batch.node_complex, batch.num_complexes)
        functional.cross_entropy(head(read), targets).backward()
        adam.step()

    return step
