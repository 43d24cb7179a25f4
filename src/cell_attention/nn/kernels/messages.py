"""The kernels of fused attention: one block of edges forward (`listen`) and backward (`answer`).

Indices are unsigned wherever a loop over features is to use vector instructions: a signed one
might be negative and count from the end, and checking this prevents them.
"""

from typing import Any

import numpy as np

from cell_attention.nn.kernels.pointwise import SIGMOID, TANH, activate, slope_of
from cell_attention.nn.kernels.rows import add_scaled, inner
from cell_attention.nn.kernels.softmax import softmax
from cell_attention.topology.compiled import compiled_sums


@compiled_sums
def listen(
    values: Any, first: int, last: int, factor: Any, offsets: Any, starts: Any, senders: Any,
    halves: Any, logits: Any, weights: Any, total: Any, kind: int, slope: Any,
) -> None:  # fmt: skip
    """Write logits, weights and sum of the edges first…last, whose values are computed."""
    for e in range(np.uint64(first), np.uint64(last)):
        for c in range(np.uint64(total.shape[1])):
            total[e, c] = factor * values[e, c] if offsets[0] > 0 else 0
    for s in range(len(starts)):
        # Unpacked here: tuple access inside the loop would cost as much as all the rest.
        start, who, weight = starts[s], senders[s], weights[s]
        logit = logits[s][start[first] : start[last]].reshape(-1)
        scores = _scores(
            values, offsets[s], first, last, start, who, halves[2 * s], halves[2 * s + 1]
        )
        activate(scores.reshape(-1), kind, slope, logit)
        softmax(logits[s], start, first, last, kind in (TANH, SIGMOID), weight, ())
        _add_heard(values, offsets[s], first, last, start, who, weight, total)


@compiled_sums
def _add_heard(
    values: Any, offset: int, first: int, last: int, start: Any, senders: Any, weights: Any,
    total: Any,
) -> None:  # fmt: skip
    """Add the values of all senders, each times its weight, to the receivers first…last."""
    heads = np.uint64(weights.shape[1])
    size = np.uint64(total.shape[1]) // heads
    for e in range(np.uint64(first), np.uint64(last)):
        for j in range(start[e], start[e + np.uint64(1)]):
            k = np.uint64(senders[j])
            for h in range(heads):
                at = np.uint64(offset) + h * size
                add_scaled(total, e, h * size, weights[j, h], values, k, at, size)


@compiled_sums
def _scores(
    values: Any, offset: int, first: int, last: int, start: Any, senders: Any, receiver: Any,
    sender: Any,
) -> Any:  # fmt: skip
    """aᵀ[Wh_e‖Wh_k] of every pair of the receivers first…last, head by head; `attend` in torch."""
    heads, size = np.uint64(receiver.shape[0]), np.uint64(receiver.shape[1])
    low, zero = np.uint64(first), np.uint64(0)
    towards = np.empty((last - first, receiver.shape[0]), values.dtype)
    away = np.empty_like(towards)
    for e in range(low, np.uint64(last)):
        for h in range(heads):
            at = np.uint64(offset) + h * size
            towards[e - low, h] = inner(receiver, h, zero, values, e, at, size)
            away[e - low, h] = inner(sender, h, zero, values, e, at, size)
    begin = start[first]
    scores = np.empty((start[last] - begin, receiver.shape[0]), values.dtype)
    for e in range(low, np.uint64(last)):
        for j in range(start[e], start[e + np.uint64(1)]):
            k = np.uint64(senders[j])
            for h in range(heads):
                scores[np.uint64(j - begin), h] = towards[e - low, h] + away[k - low, h]
    return scores


@compiled_sums
def answer(
    values: Any, heard: Any, first: int, last: int, factor: Any, offsets: Any, halves: Any,
    logits: Any, weights: Any, back: Any, vector_grad: Any, kind: int, slope: Any, starts: Any,
    senders: Any, begins: Any, listeners: Any, orders: Any,
) -> None:  # fmt: skip
    """Write the gradient of the values first…last and add to that of the vectors."""
    low = np.uint64(first)
    if offsets[0] > 0:
        for e in range(low, np.uint64(last)):
            for c in range(np.uint64(heard.shape[1])):
                back[e - low, c] = factor * heard[e, c]
    for s in range(len(starts)):
        change = _changes(
            values, offsets[s], first, last, starts[s], senders[s], weights[s], logits[s], kind,
            slope, heard,
        )  # fmt: skip
        _collect(
            values, heard, offsets[s], first, last, starts[s], begins[s], listeners[s], orders[s],
            weights[s], change, halves[2 * s : 2 * s + 2], back, vector_grad[2 * s : 2 * s + 2],
        )  # fmt: skip


@compiled_sums
def _collect(
    values: Any, heard: Any, offset: int, first: int, last: int, start: Any, begin: Any,
    listeners: Any, order: Any, weights: Any, change: Any, halves: Any, back: Any,
    vector_grad: Any,
) -> None:  # fmt: skip
    """Let every edge collect from those that heard it (`begin`, `listeners`, and `order`, which
    pair each one is), through its values and through its score.
    """
    heads, size = np.uint64(halves.shape[1]), np.uint64(halves.shape[2])
    low, zero = np.uint64(first), np.uint64(0)
    receiver, sender = halves[0], halves[1]
    toward, away = vector_grad[0], vector_grad[1]
    first_pair = start[first]
    one, other = np.empty_like(weights[0]), np.empty_like(weights[0])
    for e in range(low, np.uint64(last)):
        after = e + np.uint64(1)
        one[:] = 0
        other[:] = 0
        for j in range(start[e], start[after]):
            for h in range(heads):
                one[h] += change[np.uint64(j - first_pair), h]
        for j in range(begin[e], begin[after]):
            pair = np.uint64(order[j] - first_pair)
            for h in range(heads):
                other[h] += change[pair, h]
        for h in range(heads):
            at = np.uint64(offset) + h * size
            for f in range(size):
                back[e - low, at + f] = one[h] * receiver[h, f] + other[h] * sender[h, f]
            add_scaled(toward, h, zero, one[h], values, e, at, size)
            add_scaled(away, h, zero, other[h], values, e, at, size)
        for j in range(begin[e], begin[after]):
            k, pair = np.uint64(listeners[j]), np.uint64(order[j])
            for h in range(heads):
                at = np.uint64(offset) + h * size
                add_scaled(back, e - low, at, weights[pair, h], heard, k, h * size, size)


@compiled_sums
def _changes(
    values: Any, offset: int, first: int, last: int, start: Any, senders: Any, weights: Any,
    logits: Any, kind: int, slope: Any, heard: Any,
) -> Any:  # fmt: skip
    """Gradient of the score of every pair of the receivers first…last, head by head."""
    heads = np.uint64(weights.shape[1])
    size = np.uint64(heard.shape[1]) // heads
    begin, end = start[first], start[last]
    change = np.empty((end - begin, weights.shape[1]), weights.dtype)
    mean = np.empty(weights.shape[1], weights.dtype)
    for e in range(np.uint64(first), np.uint64(last)):
        after = e + np.uint64(1)
        mean[:] = 0
        for j in range(start[e], start[after]):
            k = np.uint64(senders[j])
            for h in range(heads):
                at, to = np.uint64(offset) + h * size, h * size
                pull = inner(heard, e, to, values, k, at, size)
                change[np.uint64(j - begin), h] = pull
                mean[h] += weights[j, h] * pull
        for j in range(start[e], start[after]):
            for h in range(heads):
                change[np.uint64(j - begin), h] = weights[j, h] * (
                    change[np.uint64(j - begin), h] - mean[h]
                )
    flat, active = change.reshape(-1), logits[begin:end].reshape(-1)
    for i in range(np.uint64(flat.size)):
        flat[i] *= slope_of(active[i], kind, slope)
    return change
