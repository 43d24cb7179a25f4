"""Dropout that costs little on the CPU: the mask is a hash of the position, never stored."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.topology.compiled import as_array, compiled


class Dropout(nn.Module):
    """`torch.nn.Dropout`, compiled on the CPU; seeded by torch, so the same seed gives the same
    mask.
    """

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.p = p

    def forward(self, values: Tensor) -> Tensor:
        """Drop a share p of the values in training and scale the others by 1 / (1 − p)."""
        if not self.training or self.p == 0.0:
            return values
        if values.device.type != "cpu" or values.dtype not in (torch.float32, torch.float64):
            return functional.dropout(values, self.p)
        seed = int(torch.randint(2**32, ()))
        result: Tensor = _Drop.apply(values, self.p, seed)  # type: ignore[no-untyped-call]
        return result

    def extra_repr(self) -> str:
        """What `print(network)` shows."""
        return f"p={self.p}"


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, p: float, seed: int) -> Tensor:
        ctx.options = p, seed
        return _dropped(values, p, seed)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return _dropped(grads[0], *ctx.options), None, None


def _dropped(values: Tensor, p: float, seed: int) -> Tensor:
    given = as_array(values)
    scale = given.dtype.type(1.0 / (1.0 - p))
    kept = np.uint32(min(int((1.0 - p) * 2.0**32), 2**32 - 1))
    return torch.from_numpy(_masked(given.reshape(-1), np.uint32(seed), kept, scale)).view_as(
        values
    )


@compiled
def _masked(values: Any, seed: Any, kept: Any, scale: Any) -> Any:
    """Values whose hashed position lies below `kept`, scaled; zeros elsewhere."""
    result = np.empty_like(values)
    for i in range(values.size):
        # The finaliser of MurmurHash3: every bit of the position reaches every bit of the hash.
        # Numba widens products to 64 bits, hence the casts back to 32.
        bits = np.uint32(np.uint32(i) * np.uint32(0x9E3779B9) + seed)
        bits = np.uint32((bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        bits = np.uint32((bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        bits = np.uint32(bits ^ (bits >> np.uint32(16)))
        result[i] = values[i] * scale if bits < kept else 0
    return result
