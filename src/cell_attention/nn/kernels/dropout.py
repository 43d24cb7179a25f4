"""Dropout whose mask is a hash of the position: it is never stored, and costs little on the CPU."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cell_attention.nn.kernels.pointwise import hashed
from cell_attention.topology.compiled import as_array, compiled


class Mask:
    """Which values of an array dropout keeps, as numbers for kernels: seed, bound and factor."""

    def __init__(self, p: float) -> None:
        self.seed = np.uint32(int(torch.randint(2**32, ())) if p > 0 else 0)
        self.bound = np.uint32(min(int((1.0 - p) * 2.0**32), 2**32 - 1))
        self.factor = 1.0 / (1.0 - p)


def drop(values: Tensor, p: float) -> Tensor:
    """Drop a share p of the values and scale the others by 1 / (1 − p); torch seeds the mask."""
    result: Tensor = _Drop.apply(values, Mask(p))  # type: ignore[no-untyped-call]
    return result


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, mask: Mask) -> Tensor:
        ctx.mask = mask
        return _dropped(values, mask)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return _dropped(grads[0], ctx.mask), None


def _dropped(values: Tensor, mask: Mask) -> Tensor:
    given = as_array(values)
    kept = np.empty_like(given)
    factor = given.dtype.type(mask.factor)
    _drop(given.reshape(-1), mask.seed, mask.bound, factor, kept.reshape(-1))
    return torch.from_numpy(kept)


@compiled
def _drop(values: Any, seed: Any, bound: Any, factor: Any, result: Any) -> None:
    """Write the values whose hashed position lies below `bound`, times `factor`; else zeros."""
    for i in range(np.uint64(values.size)):
        result[i] = values[i] * factor if hashed(i, seed) < bound else 0
