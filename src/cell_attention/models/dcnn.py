"""DCNN (Atwood and Towsley 2016): what random walks find, on average over a graph."""

import torch
from torch import Tensor, nn

from cell_attention.models.node_networks import both_ways
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.functional import segment_mean
from cell_attention.topology.complex import CellComplex

HOPS = 5
"""H: walks of 0, 1, …, H − 1 steps. Deviation: the paper gives no number for whole graphs."""


class DiffusionNetwork(nn.Module):
    """Z = tanh(W ⊙ 1ᵀP*X / n), with the powers of P = D⁻¹A in P*, then a linear map of all of Z:
    the paper's network for whole graphs.

    Deviation: dropout on Z, which the paper does not have; 0 by default.
    """

    def __init__(
        self, config: NetworkConfig, node_features: int, edge_features: int, outputs: int
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(HOPS, node_features).normal_(std=0.1))
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(HOPS * node_features, outputs)

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        means = diffused(complexes, HOPS)
        logits: Tensor = self.head(self.dropout(torch.tanh(self.weight * means).flatten(1)))
        return logits


def diffused(complexes: CellComplex, hops: int) -> Tensor:
    """Return (num_complexes, hops, F): 1ᵀPʰX / n for h = 0 … hops − 1, where the rows of P are zero
    at nodes without edges.
    """
    receiver, sender = both_ways(complexes)
    nodes, means = complexes.node_features, []
    for hop in range(hops):
        if hop:
            nodes = segment_mean(nodes.index_select(0, sender), receiver, complexes.num_nodes)
        means.append(segment_mean(nodes, complexes.node_complex, complexes.num_complexes))
    return torch.stack(means, dim=1)
