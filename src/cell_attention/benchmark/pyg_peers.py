"""PyG's GINE (Hu et al. 2020) and GPS (Rampášek et al. 2022) layers in a plain graph network."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINEConv, GPSConv

from cell_attention.nn.functional import segment_sum
from cell_attention.topology.complex import CellComplex


class GineNetwork(nn.Module):
    """GINE layers, or GPS layers around them; sums over nodes after every layer; a linear head."""

    def __init__(
        self,
        node_features: int,
        edge_features: int,
        outputs: int,
        *,
        widths: Sequence[int],
        heads: int,
        attend: bool,
    ) -> None:
        super().__init__()
        self.start = nn.Linear(node_features, widths[0])
        self.layers = nn.ModuleList()
        for fin, fout in pairwise((widths[0], *widths)):
            inner = nn.Sequential(
                nn.Linear(fin, fout), nn.BatchNorm1d(fout), nn.ReLU(), nn.Linear(fout, fout)
            )
            layer: nn.Module = GINEConv(inner, edge_dim=max(1, edge_features))
            self.layers.append(GPSConv(fout, layer, heads=heads) if attend else layer)
        self.attend = attend
        self.head = nn.Linear(sum(widths), outputs)

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        pairs = torch.cat([complexes.edge_nodes, complexes.edge_nodes.flip(0)], 1)
        given = complexes.edge_features
        values = (
            complexes.node_features.new_ones(complexes.num_edges, 1) if given is None else given
        )
        edges = values.repeat(2, 1)
        nodes, read = self.start(complexes.node_features), []
        for layer in self.layers:
            if self.attend:
                nodes = layer(nodes, pairs, complexes.node_complex, edge_attr=edges)
            else:
                nodes = layer(nodes, pairs, edges).relu()
            read.append(segment_sum(nodes, complexes.node_complex, len(complexes)))
        logits: Tensor = self.head(torch.cat(read, 1))
        return logits
