"""h̃ = BN(φ(h)) with the dropout after it: two passes over the features, compiled on the CPU."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cell_attention.errors import InputError
from cell_attention.nn.activations import activation as pointwise
from cell_attention.nn.config import Activation, Kernel, Norm
from cell_attention.nn.dropout import Mask, hashed
from cell_attention.nn.kernels import compilable
from cell_attention.nn.kernels.pointwise import KINDS, activate, slope_of
from cell_attention.topology.compiled import as_array, compiled_sums


class ActivatedNorm(nn.Module):
    """φ, then batch or layer normalisation or none, then dropout where the next layer asks.

    Deviation: the paper does not say on which side of φ it normalises; here after it, as the
    released code does.
    """

    def __init__(
        self,
        width: int,
        norm: Norm = "batch",
        activation: Activation = "identity",
        negative_slope: float = 0.1,
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        self.kind, self.slope, self.kernel = activation, negative_slope, kernel
        self.activation = pointwise(activation, negative_slope)
        self.norm: nn.Module = nn.Identity()
        if norm == "batch":
            self.norm = _BatchNorm(width)
        elif norm == "layer":
            self.norm = nn.LayerNorm(width)

    def forward(self, values: Tensor, dropout: float = 0.0) -> Tensor:
        """values: (E, F); dropout: share of the result to drop, here and now."""
        if values.size(0) == 0:
            return values
        if isinstance(self.norm, _BatchNorm) and self.norm.training:
            if values.size(0) == 1:
                raise InputError(
                    "norm 'batch' needs at least 2 edges in a training batch, got 1 (after "
                    "pooling, if there is any); use larger batches or norm 'layer'"
                )
            tracked = self.norm.track_running_stats
            if tracked and self.kind in KINDS and compilable(self.kernel, values):
                return self._compiled(self.norm, values, dropout)
        normalised: Tensor = self.norm(self.activation(values))
        return functional.dropout(normalised, dropout) if dropout else normalised

    def _compiled(self, norm: "_BatchNorm", values: Tensor, dropout: float) -> Tensor:
        result: Tensor
        result, mean, variance = _ActivatedNorm.apply(  # type: ignore[no-untyped-call]
            values, norm.weight, norm.bias, norm.eps, self.kind, self.slope, Mask(dropout)
        )
        count = values.size(0)
        with torch.no_grad():
            norm.num_batches_tracked.add_(1)
            norm.running_mean.lerp_(mean, norm.momentum)
            norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)
        return result

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return f"activation={self.kind!r}"


class _BatchNorm(nn.BatchNorm1d):
    """PyTorch's, which always keeps running statistics here."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    momentum: float


class _ActivatedNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        activation: Activation,
        slope: float,
        mask: Mask,
    ) -> tuple[Tensor, ...]:
        given = as_array(values)
        real = given.dtype.type
        # The identity needs no second array.
        active = given if activation == "identity" else np.empty_like(given)
        mean, variance = _moments(given, KINDS[activation], real(slope), active)
        inverse = (1.0 / np.sqrt(variance + eps)).astype(given.dtype)
        mean, variance = mean.astype(given.dtype), variance.astype(given.dtype)
        scale = as_array(weight) * inverse
        result = np.empty_like(given)
        shift = as_array(bias) - mean * scale
        kept = np.empty(given.shape if mask.factor != 1.0 else (0, 0), np.uint8)
        _normalise(active, scale, shift, mask.seed, mask.bound, real(mask.factor), kept, result)
        # Saved as tensors, which torch frees after use and guards against changes in place.
        after = values if activation == "identity" else torch.from_numpy(active)
        ctx.save_for_backward(weight, after, torch.from_numpy(kept))
        ctx.state = mean, inverse, KINDS[activation], real(slope), mask.factor
        moments = torch.from_numpy(mean), torch.from_numpy(variance)
        ctx.mark_non_differentiable(*moments)
        return torch.from_numpy(result), *moments

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        weight, active, kept = ctx.saved_tensors
        active, kept = as_array(active), as_array(kept)
        mean, inverse, kind, slope, factor = ctx.state
        grad, drop = as_array(grads[0]), (kept, active.dtype.type(factor))
        total, along = _sums(active, grad, mean, *drop)
        along *= inverse
        back = np.empty_like(active)
        scale = as_array(weight) * inverse
        count = active.dtype.type(active.shape[0])
        slant = along * inverse / count
        _differentiate(
            active, grad, scale, total / count - mean * slant, slant, kind, slope, *drop, back
        )
        return (
            torch.from_numpy(back), torch.from_numpy(along), torch.from_numpy(total),
            None, None, None, None,
        )  # fmt: skip


_ROWS = 64
"""Rows that are summed up in the type of the values before the sum moves on to float64."""


@compiled_sums
def _moments(values: Any, kind: int, slope: Any, active: Any) -> Any:
    """Write φ(values); (F,) mean and variance of every column of it, in float64."""
    count, width = values.shape[0], np.uint64(values.shape[1])
    mean, spread = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    middle, square = np.empty_like(values[0]), np.empty_like(values[0])
    for first in range(0, count, _ROWS):
        # Around the mean of each block, and the blocks brought together as Chan et al. 1983 do: a
        # mean far from zero must not drown the variance.
        last = min(first + _ROWS, count)
        middle[:] = 0
        square[:] = 0
        for e in range(np.uint64(first), np.uint64(last)):
            if kind != 0:
                activate(values[e], kind, slope, active[e])
            for c in range(width):
                middle[c] += active[e, c]
        for c in range(width):
            middle[c] /= last - first
        for e in range(np.uint64(first), np.uint64(last)):
            for c in range(width):
                off = active[e, c] - middle[c]
                square[c] += off * off
        for c in range(width):
            away = middle[c] - mean[c]
            mean[c] += away * (last - first) / last
            spread[c] += square[c] + away * away * first * (last - first) / last
    return mean, spread / count


@compiled_sums
def _normalise(
    active: Any, scale: Any, shift: Any, seed: Any, bound: Any, factor: Any, kept: Any,
    result: Any,
) -> None:  # fmt: skip
    """Write scale · active + shift, or zero where it is dropped, and what is kept."""
    width = np.uint64(active.shape[1])
    for e in range(np.uint64(active.shape[0])):
        if factor == 1:
            for c in range(width):
                result[e, c] = active[e, c] * scale[c] + shift[c]
        else:
            for c in range(width):
                value = (active[e, c] * scale[c] + shift[c]) * factor
                stays = hashed(e * width + c, seed) < bound
                kept[e, c] = stays
                result[e, c] = value if stays else 0


@compiled_sums
def _sums(active: Any, grad: Any, mean: Any, kept: Any, factor: Any) -> Any:
    """(F,) sum of the gradient before the dropout, and the same along the centred values."""
    count, width = np.uint64(active.shape[0]), np.uint64(active.shape[1])
    total, along = np.zeros(active.shape[1]), np.zeros(active.shape[1])
    part, part_along = np.zeros_like(mean), np.zeros_like(mean)
    for e in range(count):
        if factor == 1:
            for c in range(width):
                part[c] += grad[e, c]
                part_along[c] += grad[e, c] * (active[e, c] - mean[c])
        else:
            for c in range(width):
                given = grad[e, c] * factor if kept[e, c] else 0
                part[c] += given
                part_along[c] += given * (active[e, c] - mean[c])
        if e % np.uint64(_ROWS) == 0 or e == count - np.uint64(1):
            for c in range(width):
                total[c] += part[c]
                along[c] += part_along[c]
                part[c] = part_along[c] = 0
    return total.astype(active.dtype), along.astype(active.dtype)


@compiled_sums
def _differentiate(
    active: Any, grad: Any, scale: Any, shift: Any, slant: Any, kind: int, slope: Any, kept: Any,
    factor: Any, back: Any,
) -> None:  # fmt: skip
    """Write the gradient of the values: back through dropout, normalisation and φ."""
    width = np.uint64(active.shape[1])
    for e in range(np.uint64(active.shape[0])):
        if factor == 1:
            for c in range(width):
                back[e, c] = scale[c] * (grad[e, c] - shift[c] - active[e, c] * slant[c])
        else:
            for c in range(width):
                given = grad[e, c] * factor if kept[e, c] else 0
                back[e, c] = scale[c] * (given - shift[c] - active[e, c] * slant[c])
        if kind != 0:
            for c in range(width):
                back[e, c] *= slope_of(active[e, c], kind, slope)
