"""Edge pooling: keep the best-scored edges of every complex and scale them by their score."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cell_attention.arguments import require, require_choice
from cell_attention.errors import InputError
from cell_attention.nn.config import Activation, Kernel, NetworkConfig
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.functional import is_monotone, segment_max
from cell_attention.nn.kernels import compilable

TIE = {torch.float64: 1e-12, torch.float32: 1e-5}
"""Scores this close, relative to the largest of their complex, are ties; other types: 1e-2."""


@dataclass(frozen=True)
class Pooled:
    """The edges that are left after pooling."""

    edges: Tensor
    """(K, F) surviving edge features, each scaled by its score."""
    kept: Tensor
    """(K,) row of every survivor in the input, increasing."""
    score: Tensor
    """(E,) score of every input edge; what explanations draw."""


class EdgePooling(nn.Module):
    """Keep the ⌈ratio · |E|⌉ best-scored edges of each complex (paper §3.4).

    Deviation: edges tied with the last one that is kept are kept too, so more than ⌈ratio · |E|⌉
    may stay: the paper's top-k is a set of scores, and without it the outcome on a plain ring would
    depend on the numbering of its edges.
    Dropping the polygons of a lost edge is `CellComplex.restrict`'s job, not this layer's.
    """

    def __init__(
        self,
        in_channels: int,
        ratio: float = 0.75,
        activation: Activation = "tanh",
        *,
        negative_slope: float = 0.1,
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        require("in_channels", in_channels >= 1, "be at least 1", in_channels)
        require("ratio", 0.0 < ratio <= 1.0, "lie in (0, 1]", ratio)
        require_choice("kernel", kernel, Kernel)
        pointwise(activation, negative_slope)
        self.in_channels, self.ratio = in_channels, ratio
        self.activation: Activation = activation
        self.negative_slope, self.kernel = negative_slope, kernel
        self.weight = nn.Parameter(torch.empty(in_channels))
        self.reset_parameters()

    @classmethod
    def from_config(cls, config: NetworkConfig, in_channels: int, kernel: Kernel) -> "EdgePooling":
        """Build the pooling layer of a network."""
        return cls(
            in_channels,
            config.ratio,
            config.pool_activation,
            negative_slope=config.negative_slope,
            kernel=kernel,
        )

    def reset_parameters(self) -> None:
        """Draw a_p again."""
        bound = (2.0 * 6.0 / (self.in_channels + 1)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, edges: Tensor, edge_complex: Tensor, num_complexes: int) -> Pooled:
        """edges: (E, F); edge_complex: (E,)."""
        self._check(edges, edge_complex, num_complexes)
        in_order = bool((edge_complex[1:] >= edge_complex[:-1]).all())
        if in_order and compilable(self.kernel, edges, self.activation):
            from cell_attention.nn.kernels.pooling import FusedPooling

            pooled = FusedPooling.apply(  # type: ignore[no-untyped-call]
                edges, self.weight, edge_complex, num_complexes, self.ratio, self.activation,
                self.negative_slope,
            )  # fmt: skip
            return Pooled(*pooled)
        logit = edges @ self.weight
        score = pointwise(self.activation, self.negative_slope)(logit)
        # A monotone φ_p keeps the order, but where it saturates it would make false ties.
        monotone = is_monotone(self.activation, self.negative_slope)
        rank = (logit if monotone else score).detach()
        kept = best_rows(rank, edge_complex, num_complexes, ratio=self.ratio)
        scaled = score.index_select(0, kept).unsqueeze(1) * edges.index_select(0, kept)
        return Pooled(scaled, kept, score)

    def _check(self, edges: Tensor, edge_complex: Tensor, num_complexes: int) -> None:
        if edges.dim() != 2 or edges.size(1) != self.in_channels:
            shape = tuple(edges.shape)
            raise InputError(f"edges must be (E, {self.in_channels}), got {shape}")
        if edges.dtype != self.weight.dtype and not torch.is_autocast_enabled(edges.device.type):
            raise InputError(f"edges must be {self.weight.dtype}, got {edges.dtype}")
        if tuple(edge_complex.shape) != (edges.size(0),):
            shape = tuple(edge_complex.shape)
            raise InputError(f"edge_complex must be ({edges.size(0)},), got {shape}")
        if edges.size(0) and int(edge_complex.max()) >= num_complexes:
            raise InputError(
                f"edge_complex must lie in 0…{num_complexes - 1}, got {int(edge_complex.max())}"
            )

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return f"{self.in_channels}, ratio={self.ratio}"


def best_rows(rank: Tensor, group: Tensor, num_groups: int, *, ratio: float) -> Tensor:
    """(K,) rows, increasing, that are among the ⌈ratio · size⌉ highest of their group, or tied."""
    sizes = torch.bincount(group, minlength=num_groups)
    wanted = torch.from_numpy(num_wanted(sizes.cpu().numpy(), ratio)).to(sizes.device)
    if bool((wanted == sizes).all()):
        return torch.arange(rank.size(0), device=rank.device)
    order = rank.argsort(descending=True, stable=True)
    order = order[group[order].argsort(stable=True)]
    filled = sizes > 0
    last = (sizes.cumsum(0) - sizes + wanted - 1)[filled]
    least = rank.new_zeros(num_groups)
    least[filled] = rank[order[last]]
    slack = TIE.get(rank.dtype, 1e-2) * segment_max(rank.abs(), group, num_groups)
    # Written so that NaN is kept: a network that has diverged must not look healthy.
    return (~(rank < (least - slack)[group])).nonzero().squeeze(1)


def num_wanted(sizes: NDArray[np.int64], ratio: float) -> NDArray[np.int64]:
    """⌈ratio · size⌉ of every size, exactly: 0.6 · 25 is 15 and not the 15.000001 of float32."""
    share = Fraction(repr(float(ratio)))
    # Whole numbers of any length: 0.1 + 0.2 has seventeen digits, which overflow int64.
    different, place = np.unique(sizes, return_inverse=True)
    exact = [-(-int(size) * share.numerator // share.denominator) for size in different]
    return np.array(exact, np.int64)[place.reshape(-1)]
