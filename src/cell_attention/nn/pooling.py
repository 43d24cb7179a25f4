"""Edge pooling: keep the best-scored edges of every complex and scale them by their score."""

from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor, nn

from cell_attention.errors import InputError
from cell_attention.nn.activations import MONOTONE
from cell_attention.nn.activations import activation as pointwise
from cell_attention.nn.config import Activation
from cell_attention.nn.segments import segment_max

TIE = {torch.float64: 1e-12, torch.float32: 1e-5}
"""Scores this close, relative to the largest of their complex, are ties; other types: 1e-2."""


@dataclass(frozen=True)
class Pooled:
    """What is left of the edges."""

    edges: Tensor
    """(K, F) surviving edge features, each scaled by its score."""
    kept: Tensor
    """(K,) row of every survivor in the input, increasing."""
    score: Tensor
    """(E,) score of every input edge; what explanations draw."""


class EdgePooling(nn.Module):
    """Keep the ⌈ratio · |E|⌉ best-scored edges of each complex (paper §3.4).

    Edges tied with the last one that is kept are kept too: the paper's top-k is a set of scores,
    and without it the outcome on a plain ring would depend on the numbering of its edges.
    Dropping the polygons of a lost edge is `CellComplex.restrict`'s job, not this layer's.
    """

    def __init__(
        self,
        in_channels: int,
        ratio: float = 0.75,
        activation: Activation = "tanh",
        negative_slope: float = 0.1,
    ) -> None:
        super().__init__()
        if not 0.0 < ratio <= 1.0:
            raise InputError(f"ratio must lie in (0, 1], got {ratio}")
        self.in_channels, self.ratio = in_channels, ratio
        self.monotone = activation in MONOTONE
        self.activation = pointwise(activation, negative_slope)
        self.weight = nn.Parameter(torch.empty(in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw a_p anew."""
        bound = (2.0 * 6.0 / (self.in_channels + 1)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, edges: Tensor, edge_complex: Tensor, num_complexes: int) -> Pooled:
        """edges: (E, F); edge_complex: (E,), sorted."""
        logit = edges @ self.weight
        score = self.activation(logit)
        # A monotone φ_p keeps the order, but where it saturates it would make ties that are none.
        rank = (logit if self.monotone else score).detach()
        kept = best_rows(rank, edge_complex, num_complexes, self.ratio)
        return Pooled(
            score.index_select(0, kept).unsqueeze(1) * edges.index_select(0, kept), kept, score
        )

    def extra_repr(self) -> str:
        """What `print(network)` shows."""
        return f"{self.in_channels}, ratio={self.ratio}"


def best_rows(rank: Tensor, group: Tensor, num_groups: int, ratio: float) -> Tensor:
    """(K,) rows, increasing, that are among the ⌈ratio · size⌉ highest of their group, or tied."""
    sizes = torch.bincount(group, minlength=num_groups)
    share = Fraction(repr(ratio))  # 0.6 · 25 is 15 and not the 15.000001 of float32
    wanted = -((-sizes * share.numerator) // share.denominator)
    if bool((wanted == sizes).all()):
        return torch.arange(rank.size(0), device=rank.device)
    order = rank.argsort(descending=True, stable=True)
    order = order[group[order].argsort(stable=True)]
    filled = sizes > 0
    last = (sizes.cumsum(0) - sizes + wanted - 1)[filled]
    least = rank.new_zeros(num_groups)
    least[filled] = rank[order[last]]
    slack = TIE.get(rank.dtype, 1e-2) * segment_max(rank.abs(), group, num_groups)
    return (rank >= (least - slack)[group]).nonzero().squeeze(1)
