"""PPGN (Maron et al. 2019, "Provably powerful graph networks"): products of matrices of pairs."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from cell_attention.models.pairs import ROWS, Pairs, again, in_pieces, pair_features
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.complex import CellComplex


class ProductBlock(nn.Module):
    """X ← W[X ‖ m₁(X)·m₂(X)] + b, where m₁ and m₂ are perceptrons of two layers at every pair, and
    · multiplies the n × n matrices of every feature.
    """

    def __init__(self, fin: int, fout: int) -> None:
        super().__init__()
        self.left, self.right = (
            nn.Sequential(nn.Linear(fin, fout), nn.ReLU(), nn.Linear(fout, fout), nn.ReLU())
            for _ in range(2)
        )
        self.skip = nn.Linear(fin + fout, fout)

    def forward(self, values: Tensor, pairs: Pairs) -> Tensor:
        """values: (rows, F_in) features of every pair."""
        left, right = self.left(values), self.right(values)
        products = [
            (one @ other).permute(0, 2, 3, 1).flatten(0, 2)
            for one, other in pairs.blocks(left, right)
        ]
        skipped: Tensor = self.skip(torch.cat([values, torch.cat(products)], dim=1))
        return skipped


class PowerfulNetwork(nn.Module):
    """Blocks, each read by the maxima on the diagonal and beside it; the output is a sum of linear
    maps of these.

    Deviation: widths of 32 instead of 400, with edge features at the pairs that are edges.
    """

    def __init__(
        self, config: NetworkConfig, node_features: int, edge_features: int, outputs: int
    ) -> None:
        super().__init__()
        widths = [pair_features(node_features, edge_features), *config.hidden]
        self.blocks = nn.ModuleList(ProductBlock(*pair) for pair in pairwise(widths))
        self.votes = nn.ModuleList(nn.Linear(2 * width, outputs) for width in widths[1:])
        for part in self.modules():
            if isinstance(part, nn.Linear):  # as in the released code
                nn.init.xavier_uniform_(part.weight)
                nn.init.zeros_(part.bias)

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        return in_pieces(complexes, self.piece)

    def piece(self, pairs: Pairs) -> Tensor:
        """Return the outputs of the graphs of one piece."""
        values = pairs.features
        logits = values.new_zeros(())
        for block, vote in zip(self.blocks, self.votes, strict=True):
            values = again(block, values, pairs, save=values.size(0) > ROWS)
            logits = logits + vote(pairs.largest(values))
        return logits
