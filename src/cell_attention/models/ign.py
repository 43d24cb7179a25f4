"""IGN (Maron et al. 2019, "Invariant and equivariant graph networks"), of order two."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.models.pairs import ROWS, Pairs, again, in_pieces, pair_features
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.functional import segment_mean
from cell_attention.topology.complex import CellComplex


class EquivariantLayer(nn.Module):
    """Every linear map of n × n matrices that commutes with numbering the nodes: a sum of 15, with
    a bias at all pairs and one on the diagonal (§3 of the paper).

    At (i, j): x_ij and x_ji (2); of i and of j, each, x_ii and the means of its row and column
    (3 + 3); the means of all entries and of the diagonal (2). At (i, i) besides: x_ii and the means
    of its row and column (3), of all entries and of the diagonal (2). Means stand for sums, as in
    the released code.
    """

    def __init__(self, fin: int, fout: int) -> None:
        super().__init__()
        self.own = nn.Linear(2 * fin, fout, bias=False)
        self.nodes = nn.Linear(3 * fin, 3 * fout, bias=False)
        self.graphs = nn.Linear(2 * fin, 2 * fout)

    def forward(self, values: Tensor, pairs: Pairs) -> Tensor:
        """values: (rows, F_in) features of every pair."""
        (i, j), node_graph = pairs.ends, pairs.node_graph
        nodes, graphs = node_graph.size(0), pairs.sizes.size(0)
        diagonal = values.index_select(0, pairs.diagonal)
        row, column = segment_mean(values, i, nodes), segment_mean(values, j, nodes)
        total, trace = (segment_mean(part, node_graph, graphs) for part in (row, diagonal))
        of_node = self.nodes(torch.cat([diagonal, row, column], dim=1))
        as_row, as_column, on_diagonal = of_node.chunk(3, dim=1)
        of_graph = self.graphs(torch.cat([total, trace], dim=1)).index_select(0, node_graph)
        everywhere, along = of_graph.chunk(2, dim=1)
        own = self.own(torch.cat([values, values.index_select(0, pairs.transposed)], dim=1))
        heard = (as_row + everywhere).index_select(0, i) + as_column.index_select(0, j)
        result: Tensor = (own + heard).index_add(0, pairs.diagonal, on_diagonal + along)
        return result


class InvariantNetwork(nn.Module):
    """Equivariant layers with ReLU, the maxima on the diagonal and beside it, and an MLP.

    Deviation: edge features are at the pairs that are edges; the paper has none.
    """

    def __init__(
        self, config: NetworkConfig, node_features: int, edge_features: int, outputs: int
    ) -> None:
        super().__init__()
        widths = [pair_features(node_features, edge_features), *config.hidden]
        self.layers = nn.ModuleList(EquivariantLayer(*pair) for pair in pairwise(widths))
        wide, narrow = config.head_hidden, max(1, config.head_hidden // 2)
        self.head = nn.Sequential(
            nn.Linear(2 * widths[-1], wide), nn.ReLU(),
            nn.Linear(wide, narrow), nn.ReLU(),
            nn.Linear(narrow, outputs),
        )  # fmt: skip

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        return in_pieces(complexes, self.piece)

    def piece(self, pairs: Pairs) -> Tensor:
        """Return the outputs of the graphs of one piece."""
        values = pairs.features
        for layer in self.layers:
            values = again(_activated, layer, values, pairs, save=values.size(0) > ROWS)
        logits: Tensor = self.head(pairs.largest(values))
        return logits


def _activated(layer: nn.Module, values: Tensor, pairs: Pairs) -> Tensor:
    return functional.relu(layer(values, pairs))
