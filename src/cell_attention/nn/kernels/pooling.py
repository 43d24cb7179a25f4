"""Edge pooling, compiled: score, choice and scaling, for edges sorted by complex."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cell_attention.nn.config import Activation
from cell_attention.nn.functional import is_monotone
from cell_attention.nn.kernels.pointwise import KINDS, activate, slope_of
from cell_attention.nn.kernels.rows import add_scaled, inner
from cell_attention.nn.pooling import TIE, num_wanted
from cell_attention.topology.compiled import as_array, compiled, compiled_sums


class FusedPooling(torch.autograd.Function):
    """Kept and scaled edges (K, F), their rows (K,), and the score (E,) of all."""

    @staticmethod
    def forward(
        ctx: Any,
        edges: Tensor,
        weight: Tensor,
        edge_complex: Tensor,
        num_complexes: int,
        ratio: float,
        activation: Activation,
        slope: float,
    ) -> tuple[Tensor, ...]:
        """edges: (E, F); weight: (F,); edge_complex: (E,), not decreasing."""
        values, vector = as_array(edges), as_array(weight).reshape(1, -1)
        kind, slant = KINDS[activation], values.dtype.type(slope)
        logit = np.empty(values.shape[0], values.dtype)
        score = np.empty_like(logit)
        _score(values, vector, kind, slant, logit, score)
        rank = logit if is_monotone(activation, slope) else score
        sizes = np.bincount(as_array(edge_complex), minlength=num_complexes)
        kept = _best(rank, sizes, num_wanted(sizes, ratio), values.dtype.type(TIE[edges.dtype]))
        pooled = np.empty((kept.size, values.shape[1]), values.dtype)
        _scale(values, score, kept, pooled)
        rows, scores = torch.from_numpy(kept), torch.from_numpy(score)
        ctx.save_for_backward(edges, weight, rows, scores)
        ctx.phi = kind, slant
        ctx.mark_non_differentiable(rows)
        return torch.from_numpy(pooled), rows, scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        """Gradients of the edges and of the weight."""
        edges, weight, rows, scores = ctx.saved_tensors
        kept, score = as_array(rows), as_array(scores)
        values, vector = as_array(edges), as_array(weight).reshape(1, -1)
        back, vector_grad = np.empty_like(values), np.zeros_like(vector)
        _unscale(
            values, vector, score, kept, as_array(grads[0]), as_array(grads[2]), back,
            vector_grad, *ctx.phi,
        )  # fmt: skip
        vector_back = torch.from_numpy(vector_grad).view_as(weight)
        return torch.from_numpy(back), vector_back, None, None, None, None, None


@compiled_sums
def _score(edges: Any, vector: Any, kind: int, slope: Any, logit: Any, score: Any) -> None:
    """Write the projection aᵀh of every edge, and its score φ(aᵀh)."""
    width, zero = np.uint64(edges.shape[1]), np.uint64(0)
    for e in range(np.uint64(edges.shape[0])):
        logit[e] = inner(edges, e, zero, vector, zero, zero, width)
    activate(logit, kind, slope, score)


@compiled
def _best(rank: Any, sizes: Any, wanted: Any, slack: Any) -> Any:
    """`best_rows` of groups of these sizes, one after another."""
    kept = np.empty(rank.size, np.int64)
    found = first = 0
    for g in range(sizes.size):
        last = first + sizes[g]
        least = -np.inf
        if wanted[g] < sizes[g]:
            ranked = np.sort(rank[first:last])
            largest = max(abs(ranked[0]), abs(ranked[-1]))
            least = ranked[ranked.size - wanted[g]] - slack * largest
        for e in range(first, last):
            if not rank[e] < least:
                kept[found] = e
                found += 1
        first = last
    return kept[:found].copy()


@compiled_sums
def _scale(edges: Any, score: Any, kept: Any, pooled: Any) -> None:
    width = np.uint64(edges.shape[1])
    for r in range(np.uint64(kept.size)):
        e = np.uint64(kept[r])
        for c in range(width):
            pooled[r, c] = score[e] * edges[e, c]


@compiled_sums
def _unscale(
    edges: Any, vector: Any, score: Any, kept: Any, grad: Any, score_grad: Any, back: Any,
    vector_grad: Any, kind: int, slope: Any,
) -> None:  # fmt: skip
    """Write the gradient of all edges and sum up that of the vector."""
    width, zero = np.uint64(edges.shape[1]), np.uint64(0)
    r = zero
    for e in range(np.uint64(edges.shape[0])):
        pull = score_grad[e]
        stays = r < np.uint64(kept.size) and np.uint64(kept[r]) == e
        if stays:
            pull += inner(edges, e, zero, grad, r, zero, width)
        pull *= slope_of(score[e], kind, slope)
        for c in range(width):
            back[e, c] = pull * vector[zero, c]
        add_scaled(vector_grad, zero, zero, pull, edges, e, zero, width)
        if stays:
            add_scaled(back, e, zero, score[e], grad, r, zero, width)
            r += np.uint64(1)
