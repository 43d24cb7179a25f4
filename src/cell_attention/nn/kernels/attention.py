"""Attention on the CPU without (pairs × features) in memory: compiled forward and backward.

The edges are taken block by block, a block being whole complexes: projected, scored, weighted and
summed while their features are in the cache. The kernels (`messages.py`) read the joint projection
(E, self | lower | upper) in place; the backward pass starts from the stored weights.
"""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from cell_attention.arguments import require_choice
from cell_attention.errors import InputError
from cell_attention.nn.config import Activation, Kernel
from cell_attention.nn.kernels import hindrance
from cell_attention.nn.kernels.messages import answer, listen
from cell_attention.nn.kernels.pointwise import KINDS
from cell_attention.topology.compiled import as_array, compiled, index_array

BLOCK = 2**17
"""Numbers of the joint projection in a block of small complexes: half a MiB of float32."""


Integers = NDArray[np.int64]


class Neighbours:
    """The pairs (2, ·) of one or more neighbourhoods of the same edges, each sorted by receiver.

    Everything is computed at first use, once for all layers that see the same complex.
    """

    def __init__(self, num_edges: int, *pairs: Tensor) -> None:
        self.num_edges, self.pairs = num_edges, pairs

    @cached_property
    def sorted(self) -> bool:
        """Whether every neighbourhood's pairs are sorted by receiver."""
        return all(bool((pairs[0, 1:] >= pairs[0, :-1]).all()) for pairs in self.pairs)

    @cached_property
    def heard(self) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
        """Of every neighbourhood (E + 1,) where the pairs of each receiver begin, and (M,) the
        senders.
        """
        if not self.sorted:
            raise InputError("pairs must be sorted by receiver for the fused kernel")
        starts, senders = [], []
        for pairs in self.pairs:
            receivers, others = index_array("pairs", pairs, (self.num_edges,) * 2)
            start = np.zeros(self.num_edges + 1, np.int64)
            np.cumsum(np.bincount(receivers, minlength=self.num_edges), out=start[1:])
            starts.append(start)
            senders.append(others)
        return tuple(starts), tuple(senders)

    @cached_property
    def hearers(self) -> tuple[tuple[Integers, ...], ...]:
        """The same by sender: (E + 1,) beginnings, (M,) receivers, (M,) which pair each one is."""
        begins, receivers, orders = zip(*map(_reversed, *self.heard), strict=True)
        return begins, receivers, orders


def use_fused(
    kernel: Kernel,
    values: Tensor,
    near: Neighbours,
    *,
    activation: Activation,
    score: str,
    aggregate: str,
    dropout: float,
) -> bool:
    """Whether to use the compiled kernels; refuse to force them where they do not apply."""
    require_choice("kernel", kernel, Kernel)
    if kernel == "torch":
        return False
    options = (
        (activation not in KINDS, f"attention activation {activation!r}"),
        (score != "gat", f"score {score!r}"),
        (aggregate != "sum", f"aggregate {aggregate!r}"),
        (dropout > 0, "attention dropout"),
    )
    reason = hindrance(values) or next((text for applies, text in options if applies), "")
    if not reason and not near.sorted:
        reason = "pairs that are not sorted by receiver"
    if kernel == "fused" and reason:
        raise InputError(f"kernel 'fused' cannot be used with {reason}; use 'auto' or 'torch'")
    return not reason


class FusedMessages(torch.autograd.Function):
    """(1 + ε)·self + the messages of every neighbourhood."""

    @staticmethod
    def forward(
        ctx: Any,
        edges: Tensor,
        weight: Tensor | None,
        epsilon: Tensor | None,
        activation: Activation,
        slope: float,
        neighbours: Neighbours,
        *vectors: Tensor,
    ) -> tuple[Tensor, ...]:
        """edges: (E, F_in), weight: (W, F_in) of the joint projection; or edges: (E, W) projected
        already, no weight. The self term comes first where there is an ε, then one part per
        neighbourhood. vectors: receiver and sender (H, F) of each in turn. Returns the sum
        (E, H·F), then the weights (M, H) of each neighbourhood.
        """
        heads, size = vectors[0].shape
        joint = edges if weight is None else edges.new_empty(edges.size(0), weight.size(0))
        values = as_array(joint)
        real = values.dtype.type
        starts, senders = neighbours.heard
        offsets = (np.arange(len(starts)) + (epsilon is not None)) * heads * size
        logits = tuple(np.empty((others.size, heads), values.dtype) for others in senders)
        weights = tuple(np.empty_like(logit) for logit in logits)
        total = np.empty((values.shape[0], heads * size), values.dtype)
        halves = np.stack([as_array(vector) for vector in vectors])
        factor = real(0 if epsilon is None else 1.0 + float(epsilon.detach()))
        phi = KINDS[activation], real(slope)
        blocks = cut_blocks(starts, senders, BLOCK // max(1, values.shape[1]))
        for first, last in pairwise(blocks):
            if weight is not None:
                torch.mm(edges[first:last], weight.t(), out=joint[first:last])
            listen(
                values, first, last, factor, offsets, starts, senders, halves,
                logits, weights, total, *phi,
            )  # fmt: skip
        listened = [torch.from_numpy(heard) for heard in weights]
        # Saved as tensors, which torch frees after use and guards against changes in place.
        arrays = [torch.from_numpy(array) for array in (values, halves, *logits)]
        ctx.save_for_backward(edges, weight, epsilon, *arrays, *listened)
        ctx.state = factor, offsets, neighbours, phi, blocks
        ctx.mark_non_differentiable(*listened)
        return torch.from_numpy(total), *listened

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        """Gradients of edges, projection, ε where it is learned, and of the vectors."""
        edges, weight, epsilon, *saved = ctx.saved_tensors
        factor, offsets, neighbours, phi, blocks = ctx.state
        values, halves, *both = (as_array(tensor) for tensor in saved)
        logits, weights = tuple(both[: len(offsets)]), tuple(both[len(offsets) :])
        heard = as_array(grads[0])
        vector_grad = np.zeros_like(halves)
        # One array for all edges if it is the result; else only the gradient of one block.
        rows = values.shape[0] if weight is None else int(np.diff(blocks).max(initial=0))
        back = np.empty((rows, values.shape[1]), values.dtype)
        edge_grad = weight_grad = None
        if weight is None:
            edge_grad = torch.from_numpy(back)
        else:
            edge_grad = torch.empty_like(edges) if ctx.needs_input_grad[0] else None
            weight_grad = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        for first, last in pairwise(blocks):
            here = back[first:last] if weight is None else back[: last - first]
            answer(
                values, heard, first, last, factor, offsets, halves, logits, weights, here,
                vector_grad, *phi, *neighbours.heard, *neighbours.hearers,
            )  # fmt: skip
            block = torch.from_numpy(here)
            if weight is not None and edge_grad is not None:
                torch.mm(block, weight, out=edge_grad[first:last])
            if weight_grad is not None:
                weight_grad.addmm_(block.t(), edges[first:last])
        epsilon_grad = None
        if epsilon is not None and epsilon.requires_grad:
            epsilon_grad = (grads[0] * torch.from_numpy(values[:, : heard.shape[1]])).sum()
        return (
            edge_grad, weight_grad, epsilon_grad, None, None, None, *torch.from_numpy(vector_grad)
        )  # fmt: skip


@compiled
def _reversed(start: Any, senders: Any) -> Any:
    num_edges = start.size - 1
    begin = np.zeros(num_edges + 1, np.int64)
    for j in range(senders.size):
        begin[senders[j] + 1] += 1
    for e in range(num_edges):
        begin[e + 1] += begin[e]
    free = begin[:-1].copy()
    receivers, order = np.empty_like(senders), np.empty_like(senders)
    for e in range(num_edges):
        for j in range(start[e], start[e + 1]):
            place = free[senders[j]]
            receivers[place], order[place] = e, j
            free[senders[j]] += 1
    return begin, receivers, order


@compiled
def cut_blocks(starts: Any, senders: Any, rows: int) -> Any:
    """Return the borders of blocks of at least `rows` edges that hear only each other."""
    num_edges = starts[0].size - 1
    farthest = np.arange(num_edges)
    for s in range(len(starts)):
        start, others = starts[s], senders[s]
        for e in range(num_edges):
            for j in range(start[e], start[e + 1]):
                low, high = min(e, others[j]), max(e, others[j])
                farthest[low] = max(farthest[low], high)
    blocks = np.empty(num_edges + 1, np.int64)
    blocks[0] = last = reach = 0
    for e in range(num_edges):
        reach = max(reach, farthest[e])
        if reach == e and (e + 1 - blocks[last] >= rows or e + 1 == num_edges):
            last += 1
            blocks[last] = e + 1
    return blocks[: last + 1]
