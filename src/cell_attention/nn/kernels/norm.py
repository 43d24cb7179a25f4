"""BN(φ(h)) or φ(BN(h)), and the dropout after it: compiled, in few passes over the features."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cell_attention.nn.config import Activation
from cell_attention.nn.kernels.dropout import Mask
from cell_attention.nn.kernels.pointwise import KINDS, activate, hashed, slope_of
from cell_attention.topology.compiled import as_array, compiled_sums


def activated_norm(
    values: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    eps: float,
    activation: Activation,
    negative_slope: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Weight · (φ(values) − mean) / √(variance + eps) + bias over a batch (E, F), then dropout.

    Returns it with the mean and the variance (F,) of φ(values), which carry no gradient.
    """
    result: tuple[Tensor, Tensor, Tensor] = _ActivatedNorm.apply(  # type: ignore[no-untyped-call]
        values, weight, bias, eps, activation, negative_slope, Mask(dropout)
    )
    return result


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


def normed_activation(
    values: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    eps: float,
    activation: Activation,
    negative_slope: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """φ(weight · (values − mean) / √(variance + eps) + bias) over a batch (E, F), then dropout.

    Returns it with the mean and the variance (F,) of the values, which carry no gradient.
    """
    result: tuple[Tensor, Tensor, Tensor] = _NormedActivation.apply(  # type: ignore[no-untyped-call]
        values, weight, bias, eps, activation, negative_slope, Mask(dropout)
    )
    return result


class _NormedActivation(torch.autograd.Function):
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
        mean, variance = _moments(given, 0, real(0), given)
        inverse = (1.0 / np.sqrt(variance + eps)).astype(given.dtype)
        mean, variance = mean.astype(given.dtype), variance.astype(given.dtype)
        scale = as_array(weight) * inverse
        result = np.empty_like(given)
        kept = np.empty(given.shape if mask.factor != 1.0 else (0, 0), np.uint8)
        phi = KINDS[activation], real(slope)
        _normalise_then_activate(
            given, scale, as_array(bias) - mean * scale, *phi, mask.seed, mask.bound,
            real(mask.factor), kept, result,
        )  # fmt: skip
        saved = torch.from_numpy(result)
        ctx.save_for_backward(values, weight, saved, torch.from_numpy(kept))
        ctx.state = mean, inverse, phi, real(mask.factor)
        moments = torch.from_numpy(mean), torch.from_numpy(variance)
        ctx.mark_non_differentiable(*moments)
        return saved, *moments

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        given, weight, result, kept = (as_array(tensor) for tensor in ctx.saved_tensors)
        mean, inverse, phi, factor = ctx.state
        back = np.empty_like(given)
        _undo(result, as_array(grads[0]), phi[0], phi[1], kept, factor, back)
        one = given.dtype.type(1)
        total, along = _sums(given, back, mean, kept, one)
        along *= inverse
        count = given.dtype.type(given.shape[0])
        slant = along * inverse / count
        shift = total / count - mean * slant
        _differentiate(given, back, weight * inverse, shift, slant, 0, one, kept, one, back)
        return (
            torch.from_numpy(back), torch.from_numpy(along), torch.from_numpy(total),
            None, None, None, None,
        )  # fmt: skip


_ROWS = 64
"""Number of rows that are summed in the type of the values before they are added in float64."""


@compiled_sums
def _moments(values: Any, kind: int, slope: Any, active: Any) -> Any:
    """Write φ(values); (F,) mean and variance of every column of it, in float64."""
    count, width = values.shape[0], np.uint64(values.shape[1])
    mean, spread = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    middle, square = np.empty_like(values[0]), np.empty_like(values[0])
    for first in range(0, count, _ROWS):
        # Computed around the mean of each block, and combined as in Chan et al. 1983: a mean far
        # from zero must not drown the variance.
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
    """Write scale · active + shift, zero where dropped, and which values are kept."""
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


@compiled_sums
def _normalise_then_activate(
    values: Any, scale: Any, shift: Any, kind: int, slope: Any, seed: Any, bound: Any, factor: Any,
    kept: Any, result: Any,
) -> None:  # fmt: skip
    """Write φ(scale · values + shift), zero where dropped, and which values are kept."""
    width = np.uint64(values.shape[1])
    for e in range(np.uint64(values.shape[0])):
        for c in range(width):
            result[e, c] = values[e, c] * scale[c] + shift[c]
        activate(result[e], kind, slope, result[e])
        if factor != 1:
            for c in range(width):
                stays = hashed(e * width + c, seed) < bound
                kept[e, c] = stays
                result[e, c] = result[e, c] * factor if stays else 0


@compiled_sums
def _undo(result: Any, grad: Any, kind: int, slope: Any, kept: Any, factor: Any, back: Any) -> None:
    """Write the gradient before dropout and φ."""
    width = np.uint64(result.shape[1])
    for e in range(np.uint64(result.shape[0])):
        if factor == 1:
            for c in range(width):
                back[e, c] = grad[e, c] * slope_of(result[e, c], kind, slope)
        else:
            for c in range(width):
                given = grad[e, c] * factor if kept[e, c] else 0
                back[e, c] = given * slope_of(result[e, c] / factor, kind, slope)
