"""Dropout that costs little on the CPU: the mask is a hash of the position, never stored."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cell_attention.nn.config import Kernel
from cell_attention.nn.kernels import compilable
from cell_attention.topology.compiled import as_array, compiled


class Dropout(nn.Module):
    """`torch.nn.Dropout`, compiled on the CPU; seeded by torch, so the same seed gives the same
    mask.
    """

    def __init__(self, p: float = 0.0, kernel: Kernel = "auto") -> None:
        super().__init__()
        self.p, self.kernel = p, kernel

    def forward(self, values: Tensor) -> Tensor:
        """Drop a share p of the values in training and scale the others by 1 / (1 − p)."""
        if not self.training or self.p == 0.0:
            return values
        if not compilable(self.kernel, values):
            return functional.dropout(values, self.p)
        result: Tensor = _Drop.apply(values, Mask(self.p))  # type: ignore[no-untyped-call]
        return result

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return f"p={self.p}"


class Mask:
    """Which values of an array stay, as numbers for the kernels: seed, bound and factor."""

    def __init__(self, p: float) -> None:
        self.seed = np.uint32(int(torch.randint(2**32, ())) if p > 0 else 0)
        self.bound = np.uint32(min(int((1.0 - p) * 2.0**32), 2**32 - 1))
        self.factor = 1.0 / (1.0 - p)


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
def hashed(position: Any, seed: Any) -> Any:
    """32 random bits for a position."""
    # The finaliser of MurmurHash3: every bit of the position reaches every bit of the hash.
    # Numba widens products to 64 bits, hence the casts back to 32.
    bits = np.uint32(np.uint32(position) * np.uint32(0x9E3779B9) + seed)
    bits = np.uint32((bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    bits = np.uint32((bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(bits ^ (bits >> np.uint32(16)))


@compiled
def _drop(values: Any, seed: Any, bound: Any, factor: Any, result: Any) -> None:
    """Write the values whose hashed position lies below `bound`, times `factor`; else zeros."""
    for i in range(np.uint64(values.size)):
        result[i] = values[i] * factor if hashed(i, seed) < bound else 0
