"""The attentional lift: edge features learned from those of the end nodes (paper Def. 6)."""

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cell_attention.nn.activations import activation as pointwise
from cell_attention.nn.config import Activation, Kernel, require, require_choice
from cell_attention.nn.dropout import Mask, hashed
from cell_attention.nn.kernels import compilable
from cell_attention.nn.kernels.pointwise import KINDS, activate, slope_of
from cell_attention.topology.compiled import as_array, compiled_sums, index_array

Lift = Literal["symmetric", "paper", "none"]


class AttentionalLift(nn.Module):
    """One edge feature per head: φ_n(aᵀ[x_i‖x_j]), then the edge features that the input has.

    kind "paper" takes (i, j) = (smaller, larger) as App. A does; "symmetric" averages both orders
    with the same parameters, so that the numbering of nodes does not matter; "none" learns
    nothing and gives the one feature ⟨x_i, x_j⟩.

    Deviation: "symmetric" is the default. Def. 6 and Theorem 1 need it, App. A gives it up.
    Deviation: edge features join once, behind φ_n and the dropout, as §4 says. App. A writes them
    inside every head, which would repeat them F⁰ times.
    """

    def __init__(
        self,
        in_channels: int,
        heads: int,
        kind: Lift = "symmetric",
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
        """Draw a ∈ R^{2F_n} of every head anew."""
        if self.kind != "none":
            # Xavier with gain √2, of the one matrix (F⁰, 2F_n) that the two halves make.
            bound = (2.0 * 6.0 / (2 * self.in_channels + self.out_channels)) ** 0.5
            nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, nodes: Tensor, edge_nodes: Tensor, edge_features: Tensor | None) -> Tensor:
        """nodes: (N, F_n); edge_nodes: (2, E); returns (E, F⁰ + F_e)."""
        lifted = self._lifted(nodes, edge_nodes)
        return lifted if edge_features is None else torch.cat([lifted, edge_features], dim=1)

    def _lifted(self, nodes: Tensor, edge_nodes: Tensor) -> Tensor:
        i, j = edge_nodes
        if self.kind == "none":
            return (nodes[i] * nodes[j]).sum(-1, keepdim=True)
        # Projected per node and gathered per edge: (E, 2F_n) is never built.
        joint = functional.linear(nodes, self.weight.flatten(0, 1))
        dropout = self.dropout if self.training else 0.0
        if self.activation in KINDS and compilable(self.kernel, joint):
            result: Tensor = _Lifted.apply(  # type: ignore[no-untyped-call]
                joint, edge_nodes, self.kind == "symmetric", self.activation,
                self.negative_slope, Mask(dropout),
            )  # fmt: skip
            return result
        phi = pointwise(self.activation, self.negative_slope)
        first, second = torch.split(joint, self.out_channels, dim=1)
        lifted = phi(first[i] + second[j])
        if self.kind == "symmetric":
            lifted = 0.5 * (lifted + phi(first[j] + second[i]))
        return functional.dropout(lifted, dropout) if dropout else lifted

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return f"{self.in_channels}, heads={self.out_channels}, kind={self.kind!r}"


class _Lifted(torch.autograd.Function):
    """φ(first_i + second_j), or the mean of both orders, from (N, first | second), and dropout."""

    @staticmethod
    def forward(
        ctx: Any,
        joint: Tensor,
        edge_nodes: Tensor,
        both: bool,
        activation: Activation,
        slope: float,
        mask: Mask,
    ) -> Tensor:
        nodes = as_array(joint)
        ends = index_array("edge_nodes", edge_nodes, (nodes.shape[0],) * 2)
        real = nodes.dtype.type
        options = both, KINDS[activation], real(slope), mask.seed, mask.bound, real(mask.factor)
        lifted = np.empty((ends.shape[1], nodes.shape[1] // 2), nodes.dtype)
        _lift(nodes, ends, lifted, *options)
        ctx.save_for_backward(joint)
        ctx.state = ends, options
        return torch.from_numpy(lifted)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        nodes = as_array(ctx.saved_tensors[0])
        ends, options = ctx.state
        back = np.zeros_like(nodes)
        _lift_back(nodes, ends, as_array(grads[0]), back, *options)
        return torch.from_numpy(back), None, None, None, None, None


@compiled_sums
def _lift(
    nodes: Any, ends: Any, lifted: Any, both: bool, kind: int, slope: Any, seed: Any, bound: Any,
    factor: Any,
) -> None:  # fmt: skip
    width = np.uint64(lifted.shape[1])
    raw, other = (
        np.empty_like(nodes[0, : lifted.shape[1]]),
        np.empty_like(nodes[0, : lifted.shape[1]]),
    )
    for e in range(np.uint64(ends.shape[1])):
        i, j = np.uint64(ends[0, e]), np.uint64(ends[1, e])
        for c in range(width):
            raw[c] = nodes[i, c] + nodes[j, width + c]
        activate(raw, kind, slope, lifted[e])
        if both:
            for c in range(width):
                raw[c] = nodes[j, c] + nodes[i, width + c]
            activate(raw, kind, slope, other)
            for c in range(width):
                lifted[e, c] = nodes.dtype.type(0.5) * (lifted[e, c] + other[c])
        if factor != 1:
            for c in range(width):
                kept = hashed(e * width + c, seed) < bound
                lifted[e, c] = lifted[e, c] * factor if kept else 0


@compiled_sums
def _lift_back(
    nodes: Any, ends: Any, grad: Any, back: Any, both: bool, kind: int, slope: Any, seed: Any,
    bound: Any, factor: Any,
) -> None:  # fmt: skip
    """Add up the gradient of the nodes; φ is computed anew instead of kept."""
    width = np.uint64(grad.shape[1])
    raw, value, given = np.empty_like(grad[0]), np.empty_like(grad[0]), np.empty_like(grad[0])
    share = factor * nodes.dtype.type(0.5) if both else factor
    for e in range(np.uint64(ends.shape[1])):
        for c in range(width):
            given[c] = grad[e, c] * share
        if factor != 1:
            for c in range(width):
                given[c] = given[c] if hashed(e * width + c, seed) < bound else 0
        for turn in range(2 if both else 1):
            i, j = np.uint64(ends[turn, e]), np.uint64(ends[1 - turn, e])
            for c in range(width):
                raw[c] = nodes[i, c] + nodes[j, width + c]
            activate(raw, kind, slope, value)
            for c in range(width):
                value[c] = slope_of(value[c], kind, slope) * given[c]
            for c in range(width):
                back[i, c] += value[c]
            for c in range(width):
                back[j, width + c] += value[c]
