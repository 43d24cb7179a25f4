"""The branch of the network that reads complexes as wholes.

What they are made of, and their own features, such as descriptors of molecules:

    c_C = log(1 + Σ x_v), log(1 + Σ f_e), log(1 + cells of each kind)       with the sign of the sum
    z_C = 2 · rank(x_C) − 1        rank: the share of training complexes below x; z = 0 if unknown
    y_C = w φ(norm(B φ(norm(A [c_C ‖ z_C])))) + b

A bag of nodes (Errica et al. 2020) beats deep networks on proteins: the composition alone says a
lot, and in a branch of its own it need not pass through layers of attention.
Descriptors differ in unit and range by orders of magnitude, and some have outliers: only their
order among the training complexes counts. A value beyond all of them ranks like the last one, so
that no descriptor can carry a prediction beyond what was learned.
"""

import torch
from torch import Tensor, nn

from cell_attention.nn.config import Kernel, NetworkConfig
from cell_attention.nn.functional import segment_sum
from cell_attention.nn.norm import NormedActivation
from cell_attention.topology.complex import CellComplex

KNOTS = 65
"""Quantiles of the training complexes that are kept of every descriptor."""


class Ranks(nn.Module):
    """The rank of every feature among the training complexes, in [−1, 1]; 0 where it is NaN."""

    knots: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("knots", torch.zeros(features, KNOTS, dtype=torch.float32))

    @torch.no_grad()
    def learn(self, values: Tensor) -> None:
        """Take the quantiles of these rows, (complexes, features), without the unknown ones."""
        shares = torch.linspace(0.0, 1.0, KNOTS, dtype=torch.float64, device=values.device)
        known = values.double()
        known = torch.where(known.isfinite(), known, torch.nan)
        found = known.nanquantile(shares, 0).T if values.size(0) else known.new_zeros(0)
        if values.size(0):
            self.knots.copy_(found.nan_to_num(0.0))

    def forward(self, values: Tensor) -> Tensor:
        """values: (complexes, features)"""
        knots, asked = self.knots, values.to(self.knots).T.contiguous()
        known = asked.isfinite()
        asked = torch.where(known, asked, knots[:, :1])
        below = torch.searchsorted(knots, asked)
        not_above = torch.searchsorted(knots, asked, right=True)
        # Between two knots the rank grows linearly; on knots that are equal it is their middle.
        left = (below - 1).clamp(0, KNOTS - 2)
        low, high = knots.gather(1, left), knots.gather(1, left + 1)
        share = ((asked - low) / (high - low).clamp(min=torch.finfo(knots.dtype).tiny)).clamp(0, 1)
        middle = 0.5 * (below + not_above - 1).to(asked)
        rank = torch.where(not_above > below, middle, left + share)
        rank = torch.where(below == 0, middle.clamp(min=0.0), rank)
        rank = torch.where(below == KNOTS, torch.full_like(rank, KNOTS - 1), rank)
        varied = knots[:, :1] < knots[:, -1:]
        scaled = 2.0 * rank / (KNOTS - 1) - 1.0
        return torch.where(known & varied, scaled, torch.zeros_like(scaled)).T


def composition(complexes: CellComplex, longest: int) -> Tensor:
    """(complexes, ·) sums of the features of nodes and edges, and the numbers of nodes, edges and
    polygons of every size, longer ones than `longest` together; on a logarithmic scale.
    """
    count, features = complexes.num_complexes, complexes.node_features
    sizes = complexes.polygon_sizes.clamp(3, longest + 1) - 3
    polygons = features.new_zeros(count, longest - 1).index_put_(
        (complexes.polygon_complex, sizes), features.new_ones(()), accumulate=True
    )
    sums = [polygons]
    for given, member in (
        (features, complexes.node_complex), (complexes.edge_features, complexes.edge_complex),
    ):  # fmt: skip
        sums.append(member.bincount(minlength=count)[:, None].to(features))
        if given is not None:
            sums.append(segment_sum(given.to(features), member, count))
    found = torch.cat(sums, 1)
    return found.sign() * found.abs().log1p()


class DescriptorBranch(nn.Module):
    """Outputs from the composition of complexes and from their own features."""

    def __init__(
        self, config: NetworkConfig, sizes: tuple[int, int, int], outputs: int, *, kernel: Kernel
    ) -> None:
        """sizes: node features, edge features and features of whole complexes."""
        super().__init__()
        width, (nodes, edges, whole) = config.head_hidden, sizes
        self.rates = config.dropout, config.head_dropout
        self.longest = config.max_polygon if config.composition else 0
        made_of = nodes + edges + 2 + self.longest - 1 if config.composition else 0
        self.ranks = Ranks(whole) if whole else None
        self.linear = nn.ModuleList([nn.Linear(made_of + whole, width), nn.Linear(width, width)])
        self.norms = nn.ModuleList(
            NormedActivation.from_config(config, width, kernel) for _ in range(2)
        )
        self.last = nn.Linear(width, outputs)

    def forward(self, complexes: CellComplex) -> Tensor:
        """(complexes, outputs)"""
        return self.read(self.composition(complexes), complexes.complex_features)

    def composition(self, complexes: CellComplex) -> Tensor | None:
        """(complexes, ·) what the complexes are made of, if the network reads it."""
        return composition(complexes, self.longest) if self.longest else None

    def read(self, made_of: Tensor | None, features: Tensor | None) -> Tensor:
        """(complexes, outputs) from the composition and from features, NaN where unknown."""
        parts = [] if made_of is None else [made_of]
        if self.ranks is not None and features is not None:
            parts.append(self.ranks(features))
        weight = self.last.weight
        hidden = torch.cat([part.to(weight.dtype) for part in parts], 1)
        for linear, norm, rate in zip(self.linear, self.norms, self.rates, strict=True):
            hidden = norm(linear(hidden), rate if self.training else 0.0)
        found: Tensor = self.last(hidden)
        return found
