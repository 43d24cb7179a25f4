"""The pointwise functions of a network inside compiled kernels, and their slopes from their values.

Written so that the compiler can use vector instructions, which it cannot for calls of the C
library: φ without branches, exp as a polynomial.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from cell_attention.nn.config import Activation
from cell_attention.topology.compiled import compiled, compiled_sums

IDENTITY, RELU, LEAKY_RELU, ELU, TANH, SIGMOID = range(6)
KINDS: dict[Activation, int] = {
    "identity": IDENTITY,
    "relu": RELU,
    "leaky_relu": LEAKY_RELU,
    "elu": ELU,
    "tanh": TANH,
    "sigmoid": SIGMOID,
}
"""The functions that kernels know; the slope of each follows from its value."""


def expm1(x: Any) -> Any:
    """The exponential of x, less 1; below −87 as at −87."""
    raise NotImplementedError("for kernels only")


def exp(x: Any) -> Any:
    """The exponential of x; below −87 as at −87."""
    raise NotImplementedError("for kernels only")


@overload(expm1)  # type: ignore[untyped-decorator]
def _expm1(x: Any) -> Callable[[Any], Any]:
    def single(x: Any) -> Any:
        power, rest = _powers(x)
        return power * rest + (power - np.float32(1))

    def double(x: Any) -> Any:
        return math.expm1(x)

    return single if x == types.float32 else double


@overload(exp)  # type: ignore[untyped-decorator]
def _exp(x: Any) -> Callable[[Any], Any]:
    def single(x: Any) -> Any:
        power, rest = _powers(x)
        return power + power * rest

    def double(x: Any) -> Any:
        return math.exp(x)

    return single if x == types.float32 else double


@compiled_sums
def _powers(x: Any) -> Any:
    """2ⁿ and exp(r) − 1 with x = n ln 2 + r, |r| ≤ ½ ln 2: their product gives exp(x)."""
    # ln 2 is split into two numbers, of which the first times n is exact.
    bounded = max(x, np.float32(-87.0))
    n = np.floor(bounded * np.float32(1.4426950408889634) + np.float32(0.5))
    r = (bounded - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)
    tail = np.float32(1 / 5040) * r + np.float32(1 / 720)
    tail = tail * r + np.float32(1 / 120)
    tail = tail * r + np.float32(1 / 24)
    tail = tail * r + np.float32(1 / 6)
    tail = tail * r + np.float32(1 / 2)
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return power, r + tail * r * r


@compiled_sums
def activate(x: Any, kind: int, slope: Any, y: Any) -> None:
    """Write φ of a row; `slope` is that of a leaky ReLU below zero and the α of an ELU."""
    # One loop per function: a branch inside the loop would prevent vector instructions.
    zero, one = x.dtype.type(0), x.dtype.type(1)
    size = np.uint64(x.size)
    if kind == IDENTITY:
        for c in range(size):
            y[c] = x[c]
    elif kind == RELU:
        for c in range(size):
            y[c] = max(x[c], zero)
    elif kind == LEAKY_RELU:
        for c in range(size):
            y[c] = max(x[c], zero) + slope * min(x[c], zero)
    elif kind == ELU:
        for c in range(size):
            y[c] = max(x[c], zero) + slope * expm1(min(x[c], zero))
    elif kind == TANH:
        for c in range(size):
            low = expm1(-abs(x[c] + x[c]))
            value = -low / (low + one + one)
            y[c] = value if x[c] > 0 else -value
    else:
        for c in range(size):
            low = exp(-abs(x[c]))
            value = one / (one + low)
            y[c] = value if x[c] > 0 else low * value


@compiled_sums
def slope_of(y: Any, kind: int, slope: Any) -> Any:
    """φ'(x) where φ(x) = y."""
    zero, one = type(y)(0), type(y)(1)
    if kind == RELU:
        return one if y > 0 else zero
    if kind == LEAKY_RELU:
        return one if y > 0 else slope
    if kind == ELU:
        return one if y > 0 else y + slope
    if kind == TANH:
        return one - y * y
    if kind == SIGMOID:
        return y * (one - y)
    return one


@compiled
def hashed(position: Any, seed: Any) -> Any:
    """Return 32 random bits for a position."""
    # The finaliser of MurmurHash3: every bit of the position reaches every bit of the hash.
    # Numba widens products to 64 bits, hence the casts back to 32.
    bits = np.uint32(np.uint32(position) * np.uint32(0x9E3779B9) + seed)
    bits = np.uint32((bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    bits = np.uint32((bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(bits ^ (bits >> np.uint32(16)))
