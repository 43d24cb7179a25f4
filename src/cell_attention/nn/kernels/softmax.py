"""The softmax over the pairs of every receiver, head by head."""

from typing import Any

import numpy as np

from cell_attention.nn.kernels.pointwise import exp
from cell_attention.nn.kernels.rows import heads_of
from cell_attention.topology.compiled import compiled_sums


@compiled_sums
def softmax(
    logits: Any, start: Any, first: int, last: int, bounded: bool, weights: Any, known: Any
) -> None:
    """Write the weights of the receivers first…last; each one's sum to 1 per head.

    start: where the pairs of every receiver begin; bounded: whether exp cannot overflow.
    """
    begin, end = start[first], start[last]
    weight, logit = weights[begin:end].reshape(-1), logits[begin:end].reshape(-1)
    heads, _ = heads_of(known, logits.shape[1], logits.shape[1])
    peak, norm = np.empty(logits.shape[1], logits.dtype), np.empty(logits.shape[1], logits.dtype)
    if bounded:
        for i in range(np.uint64(logit.size)):
            weight[i] = exp(logit[i])
    else:
        # The largest logit of each receiver is subtracted, so that exp cannot overflow.
        for e in range(first, last):
            peak[:] = -np.inf
            for j in range(start[e], start[e + 1]):
                for h in range(heads):
                    peak[h] = max(peak[h], logits[j, h])
            for j in range(start[e], start[e + 1]):
                for h in range(heads):
                    weights[j, h] = logits[j, h] - peak[h]
        for i in range(np.uint64(logit.size)):
            weight[i] = exp(weight[i])
    for e in range(first, last):
        norm[:] = 0
        for j in range(start[e], start[e + 1]):
            for h in range(heads):
                norm[h] += weights[j, h]
        for h in range(heads):
            norm[h] = 1 / norm[h]
        for j in range(start[e], start[e + 1]):
            for h in range(heads):
                weights[j, h] *= norm[h]
