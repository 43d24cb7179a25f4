"""The number and width of attention heads in kernels: constants for those of the default network.

Innermost loops whose length is known when they are compiled take half the time. Kernels with an
argument `known` are therefore compiled once for any heads, and once for the usual ones.
"""

from typing import Any

import numpy as np

from cell_attention.topology.compiled import compiled_sums

USUAL = (0,) * 4, (0,) * 16
"""Tuples as long as the default network has heads, and a head features: for numba, the length of a
tuple is part of its type, and so is known when a kernel is compiled."""


def known_heads(heads: int, width: int) -> tuple[Any, ...]:
    """Return `USUAL` for the heads that kernels are compiled for, else an empty tuple."""
    return USUAL if (heads, width // heads) == tuple(map(len, USUAL)) else ()


@compiled_sums
def heads_of(known: Any, heads: int, width: int) -> Any:
    """Return the number of heads and the width of each: constants if they are known."""
    if len(known) > 0:
        return np.uint64(len(known[0])), np.uint64(len(known[1]))
    return np.uint64(heads), np.uint64(width) // np.uint64(heads)


@compiled_sums
def columns_of(known: Any, width: int) -> Any:
    """Return the width of all heads together: a constant if it is known."""
    if len(known) > 0:
        return np.uint64(len(known[0])) * np.uint64(len(known[1]))
    return np.uint64(width)
