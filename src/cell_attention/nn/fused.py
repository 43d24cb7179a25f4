"""Attention on the CPU without (pairs × features) ever in memory: compiled forward and backward.

One row of pairs at a time: score, softmax, weighted sum; the backward pass recomputes from the
stored weights. The kernels read the joint projection (E, self | lower | upper) in place.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import InputError
from cell_attention.nn.config import Activation
from cell_attention.topology.compiled import as_array, compiled, compiled_sums

_KINDS: dict[str, int] = {"identity": 0, "relu": 1, "leaky_relu": 2, "tanh": 3}


@dataclass(frozen=True)
class Side:
    """One neighbourhood: where its values stand in the joint projection, and who hears whom."""

    offset: int
    """First column of its values."""
    start: NDArray[np.int64]
    """(E + 1,) where the pairs of every receiver begin."""
    senders: NDArray[np.int64]
    """(M,)."""


def obstacle(
    values: Tensor, activation: Activation, score: str, aggregate: str, dropout: float
) -> str:
    """Why the kernels cannot take the place of the plain implementation; empty if they can."""
    reasons = (
        (values.device.type != "cpu", f"values on {values.device}"),
        (values.dtype not in (torch.float32, torch.float64), f"values of {values.dtype}"),
        (activation not in _KINDS, f"attention activation {activation!r}"),
        (score != "gat", f"score {score!r}"),
        (aggregate != "sum", f"aggregate {aggregate!r}"),
        (dropout > 0, "attention dropout"),
    )
    return next((text for applies, text in reasons if applies), "")


def side(offset: int, pairs: Tensor, num_edges: int) -> Side:
    """The pairs (2, M) of one neighbourhood, which must be sorted by receiver."""
    receivers, senders = (as_array(row) for row in pairs)
    start = _starts(receivers, num_edges)
    if start[0] < 0:
        raise InputError("pairs must be sorted by receiver for the fused kernel")
    return Side(offset, start, senders)


class FusedMessages(torch.autograd.Function):
    """(1 + ε)·self + the messages of every side, from the joint projection (E, W)."""

    @staticmethod
    def forward(
        ctx: Any,
        joint: Tensor,
        epsilon: Tensor | None,
        heads: int,
        activation: Activation,
        slope: float,
        sides: tuple[Side, ...],
        *vectors: Tensor,
    ) -> tuple[Tensor, ...]:
        """vectors: receiver and sender (H, F) of every side in turn; returns sum and weights."""
        values = as_array(joint)
        halves = [as_array(vector) for vector in vectors]
        width = heads * halves[0].shape[1]
        total = np.zeros((values.shape[0], width), values.dtype)
        if epsilon is not None:
            _scale(values, values.dtype.type(1.0 + float(epsilon.detach())), total)
        weights, slopes = [], []
        for number, near in enumerate(sides):
            receiver, sender = halves[2 * number], halves[2 * number + 1]
            logits, slope_here = _logits(values, near, receiver, sender, activation, slope)
            np.exp(logits, out=logits)
            _gather(values, near.offset, near.start, near.senders, logits, total)
            weights.append(logits)
            slopes.append(slope_here)
        ctx.save_for_backward(joint, *vectors)
        ctx.state = (sides, weights, slopes, heads, epsilon)
        listened = [torch.from_numpy(weight) for weight in weights]
        ctx.mark_non_differentiable(*listened)
        return torch.from_numpy(total), *listened

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        """Gradients of the joint projection, of ε where it is learned, and of the vectors."""
        joint, *vectors = ctx.saved_tensors
        sides, weights, slopes, _, epsilon = ctx.state
        values = as_array(joint)
        heard = as_array(grads[0])
        back = np.zeros_like(values)
        vector_grads: list[Tensor] = []
        for number, near in enumerate(sides):
            halves = [as_array(vector) for vector in vectors[2 * number : 2 * number + 2]]
            gradient = np.zeros((2, *halves[0].shape), values.dtype)
            _scatter(
                values, near.offset, near.start, near.senders, weights[number], slopes[number],
                heard, halves[0], halves[1], back, gradient,
            )  # fmt: skip
            vector_grads += [torch.from_numpy(gradient[0]), torch.from_numpy(gradient[1])]
        epsilon_grad = None
        if epsilon is not None:
            _scale(heard, values.dtype.type(1.0 + float(epsilon.detach())), back)
            if epsilon.requires_grad:
                epsilon_grad = (grads[0] * joint[:, : heard.shape[1]]).sum()
        return torch.from_numpy(back), epsilon_grad, None, None, None, None, *vector_grads


def _logits(
    values: Any, near: Side, receiver: Any, sender: Any, activation: Activation, slope: float
) -> tuple[Any, Any]:
    """(M, H) φ_a of every pair's score, ready for exp, and (M, H) its derivative."""
    kind = _KINDS[activation]
    logits, slopes = _scores(
        values,
        near.offset,
        near.start,
        near.senders,
        receiver,
        sender,
        kind,
        values.dtype.type(slope),
    )
    if activation == "tanh":
        # Vectorised outside the kernel, and bounded: no maximum needs to be taken off.
        np.tanh(logits, out=logits)
        slopes = 1 - logits * logits
    return logits, slopes


@compiled
def _starts(receivers: Any, num_edges: int) -> Any:
    start = np.zeros(num_edges + 1, np.int64)
    for j in range(receivers.size):
        if j > 0 and receivers[j] < receivers[j - 1]:
            start[0] = -1
            return start
        start[receivers[j] + 1] += 1
    for e in range(num_edges):
        start[e + 1] += start[e]
    return start


@compiled_sums
def _scale(source: Any, factor: Any, target: Any) -> None:
    """Write factor · source into the columns that the two have in common."""
    width = min(source.shape[1], target.shape[1])
    for e in range(source.shape[0]):
        for c in range(width):
            target[e, c] = factor * source[e, c]


@compiled_sums
def _scores(
    values: Any,
    offset: int,
    start: Any,
    senders: Any,
    receiver: Any,
    sender: Any,
    kind: int,
    slope: Any,
) -> Any:
    num_edges, (heads, size) = start.size - 1, receiver.shape
    towards = np.empty((num_edges, heads), values.dtype)
    away = np.empty((num_edges, heads), values.dtype)
    for e in range(num_edges):
        for h in range(heads):
            # Rows are sliced out because indices into a slice need no check for a negative
            # one, and only loops without that check use vector instructions.
            row = values[e, offset + h * size : offset + (h + 1) * size]
            first = second = values.dtype.type(0)
            for f in range(size):
                first += row[f] * receiver[h, f]
                second += row[f] * sender[h, f]
            towards[e, h], away[e, h] = first, second
    logits = np.empty((senders.size, heads), values.dtype)
    slopes = np.ones((senders.size, heads), values.dtype)
    for e in range(num_edges):
        for j in range(start[e], start[e + 1]):
            for h in range(heads):
                raw = towards[e, h] + away[senders[j], h]
                if (kind == 1 or kind == 2) and raw <= 0:
                    slopes[j, h] = slope if kind == 2 else 0
                    raw *= slopes[j, h]
                logits[j, h] = raw
        if kind != 3:
            for h in range(heads):
                if start[e] < start[e + 1]:
                    peak = logits[start[e], h]
                    for j in range(start[e], start[e + 1]):
                        peak = max(peak, logits[j, h])
                    for j in range(start[e], start[e + 1]):
                        logits[j, h] -= peak
    return logits, slopes


@compiled_sums
def _gather(values: Any, offset: int, start: Any, senders: Any, weights: Any, total: Any) -> None:
    """Turn exponentials into weights and add the weighted values of the senders to their
    receivers.
    """
    heads = weights.shape[1]
    size = total.shape[1] // heads
    for e in range(start.size - 1):
        for h in range(heads):
            norm = values.dtype.type(0)
            for j in range(start[e], start[e + 1]):
                norm += weights[j, h]
            for j in range(start[e], start[e + 1]):
                weights[j, h] /= norm
        for j in range(start[e], start[e + 1]):
            k = senders[j]
            for h in range(heads):
                weight = weights[j, h]
                into = total[e, h * size : (h + 1) * size]
                row = values[k, offset + h * size : offset + (h + 1) * size]
                for f in range(size):
                    into[f] += weight * row[f]


@compiled_sums
def _scatter(
    values: Any, offset: int, start: Any, senders: Any, weights: Any, slopes: Any,
    heard: Any, receiver: Any, sender: Any, back: Any, gradient: Any,
) -> None:  # fmt: skip
    """Send the gradient of every receiver back to its senders, its scores and the vectors."""
    num_edges, (heads, size) = start.size - 1, receiver.shape
    towards = np.zeros((num_edges, heads), values.dtype)
    away = np.zeros((num_edges, heads), values.dtype)
    most = 0
    for e in range(num_edges):
        most = max(most, start[e + 1] - start[e])
    slant = np.empty((most, heads), values.dtype)
    mean = np.empty(heads, values.dtype)
    for e in range(num_edges):
        first = start[e]
        mean[:] = 0
        for j in range(first, start[e + 1]):
            k = senders[j]
            for h in range(heads):
                weight = weights[j, h]
                said = heard[e, h * size : (h + 1) * size]
                row = values[k, offset + h * size : offset + (h + 1) * size]
                into = back[k, offset + h * size : offset + (h + 1) * size]
                inner = values.dtype.type(0)
                for f in range(size):
                    inner += said[f] * row[f]
                for f in range(size):
                    into[f] += weight * said[f]
                slant[j - first, h] = inner
                mean[h] += weight * inner
        for j in range(first, start[e + 1]):
            for h in range(heads):
                change = weights[j, h] * (slant[j - first, h] - mean[h]) * slopes[j, h]
                towards[e, h] += change
                away[senders[j], h] += change
    for e in range(num_edges):
        for h in range(heads):
            one, other = towards[e, h], away[e, h]
            row = values[e, offset + h * size : offset + (h + 1) * size]
            into = back[e, offset + h * size : offset + (h + 1) * size]
            for f in range(size):
                into[f] += one * receiver[h, f] + other * sender[h, f]
            for f in range(size):
                gradient[0, h, f] += one * row[f]
                gradient[1, h, f] += other * row[f]


def fused_messages(
    joint: Tensor,
    epsilon: Tensor | None,
    heads: int,
    activation: Activation,
    slope: float,
    sides: tuple[Side, ...],
    *vectors: Tensor,
) -> tuple[Tensor, ...]:
    """`FusedMessages` with types: the sum (E, H·F), then the weights (M, H) of each side."""
    result: tuple[Tensor, ...] = FusedMessages.apply(  # type: ignore[no-untyped-call]
        joint, epsilon, heads, activation, slope, sides, *vectors
    )
    return result
