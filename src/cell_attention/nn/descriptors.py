"""A branch of the network that reads the features of whole complexes: descriptors of molecules.

    z_C = 2 · rank(x_C) − 1        rank: the share of training complexes below x; z = 0 if unknown
    y_C = w φ(norm(B φ(norm(A z_C)))) + b

Descriptors differ in unit and range by orders of magnitude, and some have outliers: only their
order among the training complexes counts. A value beyond all of them ranks like the last one, so
that no descriptor can carry a prediction beyond what was learned.
"""

import torch
from torch import Tensor, nn

from cell_attention.nn.config import Kernel, NetworkConfig
from cell_attention.nn.norm import NormedActivation

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


class DescriptorBranch(nn.Module):
    """Outputs from the features of whole complexes alone."""

    def __init__(self, config: NetworkConfig, features: int, outputs: int, kernel: Kernel) -> None:
        super().__init__()
        width = config.head_hidden
        self.rates = config.dropout, config.head_dropout
        self.ranks = Ranks(features)
        self.linear = nn.ModuleList([nn.Linear(features, width), nn.Linear(width, width)])
        self.norms = nn.ModuleList(
            NormedActivation.from_config(config, width, kernel) for _ in range(2)
        )
        self.last = nn.Linear(width, outputs)

    def forward(self, features: Tensor) -> Tensor:
        """features: (complexes, features), NaN where unknown; return (complexes, outputs)."""
        hidden = self.ranks(features).to(self.last.weight.dtype)
        for linear, norm, rate in zip(self.linear, self.norms, self.rates, strict=True):
            hidden = norm(linear(hidden), rate if self.training else 0.0)
        found: Tensor = self.last(hidden)
        return found
