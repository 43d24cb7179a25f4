"""Networks that read edge features, of PyG's layers: GINE (Hu et al. 2020) and GPS (Rampášek et al.
2022), with the encodings of random walks of Dwivedi et al. 2022.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GINEConv, GPSConv

from cell_attention.errors import InputError
from cell_attention.models.node_networks import both_ways
from cell_attention.models.perceptron import BatchNorm, perceptron
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.functional import segment_sum
from cell_attention.topology.complex import CellComplex

WALKS = 20
"""Length of the longest random walk that GPS counts, as for ZINC in its paper."""


class GineNetwork(nn.Module):
    """GINE layers, or GPS layers around them; the nodes of a graph are summed after every layer,
    and the head is one linear map of all sums.

    Edges without features all have the feature 1. Deviation: both papers read the last layer alone,
    and the head of GPS is an MLP there.
    """

    def __init__(
        self,
        node_features: int,
        edge_features: int,
        outputs: int,
        *,
        widths: Sequence[int],
        heads: int,
        attend: bool,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        walks: int = 0,
    ) -> None:
        super().__init__()
        self.attend, self.walks = attend, walks
        self.scale = BatchNorm(walks) if walks else None
        self.start = nn.Linear(node_features + walks, widths[0])
        self.layers, self.norms = nn.ModuleList(), nn.ModuleList()
        for fin, fout in pairwise((widths[0], *widths)):
            inner = nn.Sequential(*perceptron(fin, fout), nn.Linear(fout, fout))
            layer: nn.Module = GINEConv(inner, edge_dim=max(1, edge_features))
            if attend:
                layer = GPSConv(
                    fout, layer, heads=heads, dropout=dropout,
                    norm_kwargs={"allow_single_element": True},
                    attn_kwargs={"dropout": attention_dropout},
                )  # fmt: skip
            self.layers.append(layer)
            self.norms.append(nn.Identity() if attend else BatchNorm(fout))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(sum(widths), outputs)

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        nodes = complexes.node_features
        if self.scale is not None:
            walks = returning_walks(complexes, self.walks).to(nodes)
            nodes = torch.cat([nodes, self.scale(walks)], dim=1)
        pairs, given = both_ways(complexes), complexes.edge_features
        edges = nodes.new_ones(complexes.num_edges, 1) if given is None else given.to(nodes.dtype)
        edges = edges.repeat(2, 1)
        # Numbered without gaps: attention within a graph without nodes would be no number.
        graph = complexes.node_complex.unique_consecutive(return_inverse=True)[1]
        nodes, read = self.start(nodes), []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            if self.attend:
                nodes = layer(nodes, pairs, graph, edge_attr=edges)
            else:
                nodes = functional.relu(norm(layer(nodes, pairs, edges)))
            read.append(segment_sum(nodes, complexes.node_complex, len(complexes)))
        logits: Tensor = self.head(self.dropout(torch.cat(read, 1)))
        return logits


def gine(
    config: NetworkConfig, node_features: int, edge_features: int, outputs: int
) -> GineNetwork:
    """GINE: h_i ← MLP(h_i + Σ_j relu(h_j + W e_ij)) (Hu et al. 2020, App. A, in PyG's form)."""
    return GineNetwork(
        node_features, edge_features, outputs, widths=config.hidden, heads=1, attend=False,
        dropout=config.dropout,
    )  # fmt: skip


def gps(config: NetworkConfig, node_features: int, edge_features: int, outputs: int) -> GineNetwork:
    """GPS: GINE and attention among all nodes of a graph, side by side, on nodes with encodings of
    random walks (Rampášek et al. 2022).
    """
    if len({*config.widths}) > 1 or len({*config.heads}) > 1:
        each = zip(config.hidden, config.heads, strict=True)
        shown = ", ".join(f"{width} × {count}" for width, count in each)
        raise InputError(f"model 'gps' needs layers of equal hidden × heads, got {shown}")
    return GineNetwork(
        node_features, edge_features, outputs, widths=config.widths, heads=config.heads[0],
        attend=True, dropout=config.dropout, attention_dropout=config.attention_dropout,
        walks=WALKS,
    )  # fmt: skip


def returning_walks(complexes: CellComplex, longest: int) -> Tensor:
    """Return (N, longest) the chances that a random walk of 1, 2, … steps ends where it began: the
    diagonals of (D⁻¹A)ᵏ, zero at a node without edges (Dwivedi et al. 2022).
    """
    ends, count = both_ways(complexes).cpu().numpy(), complexes.num_nodes
    degree = np.bincount(ends[0], minlength=count)
    step = sparse.csr_array((1.0 / degree[ends[0]], (ends[0], ends[1])), shape=(count, count))
    walk, found = step, []
    for length in range(longest):
        walk = walk @ step if length else walk
        found.append(walk.diagonal())
    return torch.from_numpy(np.stack(found, axis=1)).to(complexes.device)
