"""Rivals that see only nodes and edges, built from PyG's layers; GSN also counts polygons."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GATConv, GCNConv, GINConv, SortAggregation

from cell_attention.models.perceptron import BatchNorm, perceptron
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.functional import segment_sum
from cell_attention.topology.complex import CellComplex


def both_ways(complexes: CellComplex) -> Tensor:
    """Return (2, 2E) every edge in both directions, as PyG's `edge_index`."""
    return torch.cat([complexes.edge_nodes, complexes.edge_nodes.flip(0)], dim=1)


class NodeNetwork(nn.Module):
    """Convolutions over the nodes; the nodes of a graph are summed before the first and after every
    layer, and the output is a sum of linear maps of these sums (Xu et al. 2019).
    """

    def __init__(
        self,
        widths: list[int],
        convolution: Callable[[int, int], nn.Module],
        *,
        dropout: float,
        outputs: int,
        counted: int = 0,
    ) -> None:
        super().__init__()
        self.counted = counted
        self.convolutions = nn.ModuleList(convolution(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(BatchNorm(width) for width in widths[1:])
        self.votes = nn.ModuleList(nn.Linear(width, outputs) for width in widths)
        self.dropout = nn.Dropout(dropout)

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        nodes, edge_index = complexes.node_features, both_ways(complexes)
        if self.counted:
            nodes = torch.cat([nodes, polygon_counts(complexes, self.counted)], dim=1)
        layers = [nodes]
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            layers.append(functional.relu(norm(convolution(layers[-1], edge_index))))
        logits = torch.zeros((), device=nodes.device, dtype=nodes.dtype)
        for vote, values in zip(self.votes, layers, strict=True):
            total = segment_sum(values, complexes.node_complex, complexes.num_complexes)
            logits = logits + self.dropout(vote(total))
        return logits


def gin(
    config: NetworkConfig,
    node_features: int,
    edge_features: int,
    outputs: int,
    *,
    counted: int = 0,
) -> NodeNetwork:
    """GIN-0: h_i ← MLP(h_i + Σ_j h_j), five layers by default (Xu et al. 2019).

    counted: the largest polygon that is counted at the nodes, which gives GSN with induced cycles
    as substructures (Bouritsas et al. 2022); 0 counts none. Deviation: counts are numbers here,
    one-hot vectors there.
    """
    more = counted - 2 if counted else 0
    widths = [node_features + more, *config.hidden]

    def convolution(fin: int, fout: int) -> nn.Module:
        layer: nn.Module = GINConv(nn.Sequential(perceptron(fin, fout), nn.Linear(fout, fout)))
        return layer

    return NodeNetwork(
        widths, convolution, dropout=config.dropout, outputs=outputs, counted=counted
    )


def gsn(config: NetworkConfig, node_features: int, edge_features: int, outputs: int) -> NodeNetwork:
    """GIN with the number of polygons through every node, by size (Bouritsas et al. 2022)."""
    return gin(config, node_features, edge_features, outputs, counted=config.max_polygon)


def gat(config: NetworkConfig, node_features: int, edge_features: int, outputs: int) -> NodeNetwork:
    """GAT with concatenated heads (Veličković et al. 2018) and GIN's readout.

    Deviation: batch normalisation, ReLU and GIN's readout are added. Veličković et al. classify
    nodes and have no readout.
    """
    heads = iter(config.heads)

    def convolution(fin: int, fout: int) -> nn.Module:
        count = next(heads)
        layer: nn.Module = GATConv(fin, fout // count, count)
        return layer

    return NodeNetwork(
        [node_features, *config.widths], convolution, dropout=config.dropout, outputs=outputs
    )


def polygon_counts(complexes: CellComplex, largest: int) -> Tensor:
    """Return (N, largest − 2) counts of polygons of 3, 4, …, `largest` edges at every node."""
    node, polygon = complexes.polygon_nodes
    sizes = complexes.polygon_sizes[polygon] - 3
    counts = complexes.node_features.new_zeros(complexes.num_nodes * (largest - 2))
    ones = counts.new_ones(node.size(0))
    return counts.index_add(0, node * (largest - 2) + sizes, ones).view(-1, largest - 2)


class DGCNN(nn.Module):
    """Graph convolutions with tanh; the nodes are sorted by the last channel, cut to a fixed
    number, and convolved in that order (Zhang et al. 2018).

    Deviation: PyG's GCNConv normalises by the degrees of both ends, the paper by the receiver's
    alone.
    """

    def __init__(
        self,
        config: NetworkConfig,
        node_features: int,
        edge_features: int,
        outputs: int,
        *,
        kept_nodes: int,
    ) -> None:
        super().__init__()
        widths = [node_features, *config.hidden, 1]
        self.convolutions = nn.ModuleList(GCNConv(*pair) for pair in pairwise(widths))
        total = sum(widths[1:])
        self.sort = SortAggregation(kept_nodes)
        self.first = nn.Conv1d(1, 16, total, total)
        self.second = nn.Conv1d(16, 32, 5)
        self.head = nn.Sequential(
            nn.Linear(32 * (kept_nodes // 2 - 4), config.head_hidden),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.head_hidden, outputs),
        )

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        nodes, edge_index = complexes.node_features, both_ways(complexes)
        layers = []
        for convolution in self.convolutions:
            nodes = torch.tanh(convolution(nodes, edge_index))
            layers.append(nodes)
        rows = self.sort(
            torch.cat(layers, dim=1), complexes.node_complex, dim_size=complexes.num_complexes
        )
        values = functional.relu(self.first(rows.unsqueeze(1)))
        values = functional.relu(self.second(functional.max_pool1d(values, 2)))
        logits: Tensor = self.head(values.flatten(1))
        return logits


def kept_nodes(complexes: CellComplex) -> dict[str, int]:
    """Return how many nodes DGCNN keeps: 60 % of the graphs have at least as many; at least ten."""
    sizes = complexes.node_complex.bincount(minlength=complexes.num_complexes)
    return {"kept_nodes": max(10, int(sizes.float().quantile(0.4)))}
