"""Sums over incidences, forward and backward: what cells add up of their faces and cofaces."""

from typing import Any

import numpy as np

from cell_attention.nn.kernels.rows import columns_of
from cell_attention.topology.compiled import compiled_sums


@compiled_sums
def gather(values: Any, column: int, of: Any, to: Any, total: Any, known: Any) -> None:
    """Add a block of columns of the cells `of` to the cells `to`."""
    width = columns_of(known, total.shape[1])
    for i in range(np.uint64(of.size)):
        k, e = np.uint64(of[i]), np.uint64(to[i])
        for f in range(width):
            total[e, f] += values[k, np.uint64(column) + f]


@compiled_sums
def scatter(grad: Any, to: Any, of: Any, back: Any, column: int, known: Any) -> None:
    """Add the gradient of the cells `to` to a block of columns of the cells `of`."""
    width = columns_of(known, grad.shape[1])
    for i in range(np.uint64(of.size)):
        k, e = np.uint64(of[i]), np.uint64(to[i])
        for f in range(width):
            back[k, np.uint64(column) + f] += grad[e, f]
