"""The attentional lift from projected nodes, compiled: φ, both orders and dropout in one pass."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cell_attention.nn.config import Activation
from cell_attention.nn.kernels.dropout import Mask
from cell_attention.nn.kernels.pointwise import KINDS, activate, hashed, slope_of
from cell_attention.topology.compiled import as_array, compiled_sums, index_array


class FusedLift(torch.autograd.Function):
    """φ(first_i + second_j), or the mean of both orders, and dropout."""

    @staticmethod
    def forward(
        ctx: Any,
        joint: Tensor,
        edge_nodes: Tensor,
        both: bool,
        activation: Activation,
        slope: float,
        dropout: float,
    ) -> Tensor:
        """joint: (N, first | second) projected nodes; edge_nodes: (2, E); returns (E, ·)."""
        nodes = as_array(joint)
        ends = index_array("edge_nodes", edge_nodes, (nodes.shape[0],) * 2)
        real = nodes.dtype.type
        mask = Mask(dropout)
        options = both, KINDS[activation], real(slope), mask.seed, mask.bound, real(mask.factor)
        lifted = np.empty((ends.shape[1], nodes.shape[1] // 2), nodes.dtype)
        _lift(nodes, ends, lifted, *options)
        ctx.save_for_backward(joint)
        ctx.state = ends, options
        return torch.from_numpy(lifted)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        """Gradient of the projected nodes."""
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
    """Add up the gradient of the nodes; φ is computed again instead of stored."""
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
