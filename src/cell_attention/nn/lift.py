"""The attentional lift: edge features learned from those of the end nodes (paper Def. 6)."""

from typing import Literal

import torch
from torch import Tensor, nn

from cell_attention.errors import InputError
from cell_attention.nn.activations import activation as pointwise
from cell_attention.nn.config import Activation
from cell_attention.nn.dropout import Dropout


class AttentionalLift(nn.Module):
    """One edge feature per head: φ_n(aᵀ[x_i‖x_j]), then the edge features that the input has.

    kind "paper" takes (i, j) = (smaller, larger) as App. A does; "symmetric" averages both orders
    with the same parameters, so that the numbering of nodes does not matter; "none" learns
    nothing and gives the one feature ⟨x_i, x_j⟩.
    """

    def __init__(
        self,
        in_channels: int,
        heads: int,
        kind: Literal["symmetric", "paper", "none"] = "symmetric",
        activation: Activation = "elu",
        negative_slope: float = 0.1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if kind not in ("symmetric", "paper", "none"):
            raise InputError(f"lift must be 'symmetric', 'paper' or 'none', got {kind!r}")
        self.in_channels, self.kind = in_channels, kind
        self.out_channels = 1 if kind == "none" else heads
        self.activation = pointwise(activation, negative_slope)
        self.dropout = Dropout(dropout)
        if kind != "none":
            self.weight = nn.Parameter(torch.empty(2, heads, in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw a ∈ R^{2F_n} of every head anew."""
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
            first, second = nodes @ self.weight[0].T, nodes @ self.weight[1].T
            lifted = self.activation(first[i] + second[j])
            if self.kind == "symmetric":
                lifted = 0.5 * (lifted + self.activation(first[j] + second[i]))
            lifted = self.dropout(lifted)
        return lifted if edge_features is None else torch.cat([lifted, edge_features], dim=1)

    def extra_repr(self) -> str:
        """What `print(network)` shows."""
        return f"{self.in_channels}, heads={self.out_channels}, kind={self.kind!r}"
