"""The attentional lift: edge features learned from those of the end nodes (paper Def. 6)."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.arguments import require, require_choice
from cell_attention.nn.config import Activation, Kernel
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.kernels import compilable

Lift = Literal["symmetric", "paper", "none"]


class AttentionalLift(nn.Module):
    """One edge feature per head: φ_n(aᵀ[x_i‖x_j]), then the edge features that the input has.

    kind "paper" takes (i, j) = (smaller, larger) as App. A does; "symmetric" averages both orders
    with the same parameters, so that the numbering of nodes does not matter; "none" learns
    nothing and gives the one feature ⟨x_i, x_j⟩.

    Deviation: "symmetric" is the default. Def. 6 and Theorem 1 need it, App. A does without it.
    Deviation: edge features join once, after φ_n and the dropout, as §4 says. App. A writes them
    inside every head, which would repeat them F⁰ times.
    """

    def __init__(
        self,
        in_channels: int,
        heads: int,
        kind: Lift = "symmetric",
        *,
        activation: Activation = "elu",
        negative_slope: float = 0.1,
        dropout: float = 0.0,
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        require_choice("kind", kind, Lift)
        require_choice("kernel", kernel, Kernel)
        require("in_channels", in_channels >= 1, "be at least 1", in_channels)
        require("heads", heads >= 1, "be at least 1", heads)
        require("dropout", 0.0 <= dropout < 1.0, "lie in [0, 1)", dropout)
        pointwise(activation, negative_slope)
        self.in_channels, self.kind = in_channels, kind
        self.out_channels = 1 if kind == "none" else heads
        self.activation: Activation = activation
        self.negative_slope, self.dropout, self.kernel = negative_slope, dropout, kernel
        if kind != "none":
            self.weight = nn.Parameter(torch.empty(2, heads, in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw a ∈ R^{2F_n} of every head again."""
        if self.kind != "none":
            # Xavier with gain √2, of the one matrix (F⁰, 2F_n) that the two halves make.
            bound = (2.0 * 6.0 / (2 * self.in_channels + self.out_channels)) ** 0.5
            nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, nodes: Tensor, edge_nodes: Tensor, edge_features: Tensor | None) -> Tensor:
        """nodes: (N, F_n); edge_nodes: (2, E); returns (E, F⁰ + F_e)."""
        i, j = edge_nodes
        if self.kind == "none":
            lifted = (nodes[i] * nodes[j]).sum(-1, keepdim=True)
        else:
            # Projected per node and gathered per edge: (E, 2F_n) is never built.
            joint = functional.linear(nodes, self.weight.flatten(0, 1))
            both, dropout = self.kind == "symmetric", self.dropout if self.training else 0.0
            if compilable(self.kernel, joint, self.activation):
                from cell_attention.nn.kernels.lift import FusedLift

                lifted = FusedLift.apply(  # type: ignore[no-untyped-call]
                    joint, edge_nodes, both, self.activation, self.negative_slope, dropout
                )
            else:
                phi = pointwise(self.activation, self.negative_slope)
                first, second = torch.split(joint, self.out_channels, dim=1)
                lifted = phi(first[i] + second[j])
                if both:
                    lifted = 0.5 * (lifted + phi(first[j] + second[i]))
                lifted = functional.dropout(lifted, dropout) if dropout else lifted
        return lifted if edge_features is None else torch.cat([lifted, edge_features], dim=1)

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return f"{self.in_channels}, heads={self.out_channels}, kind={self.kind!r}"
