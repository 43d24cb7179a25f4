"""`hear` and `gather_sum` on the CPU: compiled forward and backward, reading projections in place.

A round of attention projects every rank once, to all the blocks of columns that the round needs.
The kernels read their blocks out of these joint arrays, and the backward pass writes into joint
gradients, of which every column belongs to one block: nothing is sliced, copied or added up.
Receivers are taken in blocks of whole complexes, so that what a block says is still in the cache
when it is heard.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cell_attention.nn.kernels.pointwise import KINDS, SIGMOID, activate, slope_of
from cell_attention.nn.kernels.rows import add_scaled, columns_of, heads_of, inner, known_heads
from cell_attention.nn.kernels.rows import gather as gather
from cell_attention.nn.kernels.rows import scatter as scatter
from cell_attention.nn.kernels.softmax import softmax
from cell_attention.topology.compiled import as_array, compiled_sums

MODES = {"softmax": 0, "gate": 1, "sum": 2}


class FusedRound(torch.autograd.Function):
    """(cells, H·F) sums of every rank, and the weights (M, H) of every neighbourhood."""

    @staticmethod
    def forward(ctx: Any, plan: Any, structure: Any, *joints: Tensor) -> tuple[Tensor, ...]:
        """plan: a `Plan`; structure: the arrays of every `Neighbourhood`, then receiver and sender
        of every sum; joints: (cells, blocks) of every rank.
        """
        arrays = [as_array(joint) for joint in joints]
        real = arrays[0].dtype.type
        totals = [np.ascontiguousarray(array[:, : plan.width]) for array in arrays]
        mode, kind, slope = MODES[plan.weights], KINDS[plan.activation], real(plan.slope)
        known = known_heads(plan.heads, plan.width)
        saved = []
        spoken: dict[Any, Any] = {}
        hearings, sums = structure
        for step, (sender, shared, start, heard, blocks) in zip(
            plan.hearings, hearings, strict=True
        ):
            cells, through = arrays[step.rank], arrays[step.through]
            speaks = step.message not in spoken
            if speaks:
                spoken[step.message] = np.empty((sender.size, plan.width), cells.dtype)
            messages = spoken[step.message]
            logits = np.empty((heard.size, plan.heads), cells.dtype)
            weights = np.empty_like(logits)
            _hear(
                cells, (step.value, step.query, step.key), through,
                (step.shared_value, step.shared_key), sender, shared, start, heard, blocks, speaks,
                plan.rectified, mode, kind, slope, messages, logits, weights, totals[step.rank],
                known,
            )  # fmt: skip
            saved += [messages, logits, weights]
        for (rank, other, column), (to, of) in zip(plan.sums, sums, strict=True):
            gather(arrays[other], column, of, to, totals[rank], known)
        ctx.save_for_backward(*(torch.from_numpy(array) for array in saved))
        ctx.state = plan, structure, (mode, kind, slope), [array.shape for array in arrays]
        heard_by_name = [torch.from_numpy(weights) for weights in saved[2::3]]
        ctx.mark_non_differentiable(*heard_by_name)
        return *(torch.from_numpy(total) for total in totals), *heard_by_name

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        """Gradients of the joint projections."""
        plan, (hearings, sums), (mode, kind, slope), shapes = ctx.state
        saved = [as_array(tensor) for tensor in ctx.saved_tensors]
        given = [as_array(grad) for grad in grads[: len(shapes)]]
        backs = [np.zeros(shape, given[0].dtype) for shape in shapes]
        for back, grad in zip(backs, given, strict=True):
            back[:, : plan.width] = grad
        known = known_heads(plan.heads, plan.width)
        pulls: dict[Any, Any] = {}
        last = {step.message: place for place, step in enumerate(plan.hearings)}
        for place, step in enumerate(plan.hearings):
            sender, shared, start, heard, blocks = hearings[place]
            messages, logits, weights = saved[3 * place : 3 * place + 3]
            if step.message not in pulls:
                pulls[step.message] = np.zeros_like(messages)
            _answer(
                given[step.rank], messages, logits, weights, sender, shared, start, heard, blocks,
                mode, kind, slope, pulls[step.message], plan.rectified,
                last[step.message] == place, backs[step.rank], (step.value, step.query, step.key),
                backs[step.through], (step.shared_value, step.shared_key), known,
            )  # fmt: skip
        for (rank, other, column), (to, of) in zip(plan.sums, sums, strict=True):
            scatter(given[rank], to, of, backs[other], column, known)
        return None, None, *(torch.from_numpy(back) for back in backs)


@compiled_sums
def _hear(
    cells: Any, columns: Any, shared: Any, shared_columns: Any, sender: Any, through: Any,
    start: Any, heard: Any, blocks: Any, speaks: bool, rectified: bool, mode: int, kind: int,
    slope: Any, messages: Any, logits: Any, weights: Any, total: Any, known: Any,
) -> None:  # fmt: skip
    """Write the messages, scores and weights of a neighbourhood, and add what is heard."""
    value, query, key = columns
    shared_value, shared_key = shared_columns
    for b in range(blocks.shape[1] - 1):
        first, last = blocks[0, b], blocks[0, b + 1]
        begin, end = blocks[1, b], blocks[1, b + 1]
        if speaks:
            _speak(
                cells, value, shared, shared_value, sender, through, begin, end, rectified,
                messages, known,
            )  # fmt: skip
        if mode != 2:
            _score(
                cells, query, key, shared, shared_key, sender, through, begin, end, start, heard,
                first, last, logits, known,
            )  # fmt: skip
        _listen(
            logits, mode, kind, slope, messages, start, heard, first, last, weights, total, known
        )


@compiled_sums
def _speak(
    cells: Any, at: int, shared: Any, beside: int, sender: Any, through: Any, begin: int, end: int,
    rectified: bool, messages: Any, known: Any,
) -> None:  # fmt: skip
    """Write φ_m(V h_k + C h_c) of every incidence; a negative column stands for a term of zero."""
    width = columns_of(known, messages.shape[1])
    zero = messages.dtype.type(0)
    for i in range(np.uint64(begin), np.uint64(end)):
        k, c = np.uint64(sender[i]), np.uint64(through[i])
        first, second = np.uint64(at), np.uint64(beside)
        if beside >= 0:
            for f in range(width):
                messages[i, f] = cells[k, first + f] + shared[c, second + f]
        else:
            for f in range(width):
                messages[i, f] = cells[k, first + f]
        if rectified:
            for f in range(width):
                messages[i, f] = max(messages[i, f], zero)


@compiled_sums
def _score(
    cells: Any, query: int, key: int, shared: Any, shared_key: int, sender: Any, through: Any,
    begin: int, end: int, start: Any, heard: Any, first: int, last: int, logits: Any, known: Any,
) -> None:  # fmt: skip
    """Write qᵀh_e + sᵀh_k + tᵀh_c of every triple, head by head."""
    heads, _ = heads_of(known, logits.shape[1], logits.shape[1])
    keys = np.empty((end - begin, logits.shape[1]), logits.dtype)
    for i in range(np.uint64(end - begin)):
        k, c = np.uint64(sender[np.uint64(begin) + i]), np.uint64(through[np.uint64(begin) + i])
        for h in range(heads):
            keys[i, h] = cells[k, np.uint64(key) + h]
            if shared_key >= 0:
                keys[i, h] += shared[c, np.uint64(shared_key) + h]
    for e in range(np.uint64(first), np.uint64(last)):
        for j in range(start[e], start[e + np.uint64(1)]):
            k = np.uint64(heard[j] - begin)
            for h in range(heads):
                logits[j, h] = cells[e, np.uint64(query) + h] + keys[k, h]


@compiled_sums
def _listen(
    logits: Any, mode: int, kind: int, slope: Any, messages: Any, start: Any, heard: Any,
    first: int, last: int, weights: Any, total: Any, known: Any,
) -> None:  # fmt: skip
    """Write φ_a of the scores in their place, and the weights; add what every receiver hears, each
    message times its weight.
    """
    rows = slice(start[first], start[last])
    flat = logits[rows].reshape(-1)
    if mode == 2:
        weights[rows] = 1
    else:
        activate(flat, kind, slope, flat)
    if mode == 1:
        activate(flat, SIGMOID, slope, weights[rows].reshape(-1))
    elif mode == 0:
        softmax(logits, start, first, last, False, weights, known)
    heads, size = heads_of(known, weights.shape[1], messages.shape[1])
    for e in range(np.uint64(first), np.uint64(last)):
        for j in range(start[e], start[e + np.uint64(1)]):
            k = np.uint64(heard[j])
            for h in range(heads):
                add_scaled(total, e, h * size, weights[j, h], messages, k, h * size, size)


@compiled_sums
def _answer(
    grad: Any, messages: Any, logits: Any, weights: Any, sender: Any, through: Any, start: Any,
    heard: Any, blocks: Any, mode: int, kind: int, slope: Any, pulled: Any, rectified: bool,
    returns: bool, back: Any, columns: Any, beside_back: Any, shared_columns: Any, known: Any,
) -> None:  # fmt: skip
    """Pass the gradients of what is heard on to the queries, to the keys and, if no neighbourhood
    that comes later `returns` those of the same messages, to the cells that spoke.
    """
    value, query, key = columns
    shared_value, shared_key = shared_columns
    for b in range(blocks.shape[1] - 1):
        first, last = blocks[0, b], blocks[0, b + 1]
        begin, end = blocks[1, b], blocks[1, b + 1]
        scored = np.zeros((end - begin, weights.shape[1]), messages.dtype)
        _pull(
            grad, messages, logits, weights, start, heard, first, last, mode, kind, slope, pulled,
            begin, scored, back, query, known,
        )  # fmt: skip
        if mode != 2:
            _return_scores(
                scored, sender, through, begin, back, key, beside_back, shared_key, known
            )
        if returns:
            _return(
                messages, pulled, sender, through, begin, end, rectified, back, value, beside_back,
                shared_value, known,
            )  # fmt: skip


@compiled_sums
def _pull(
    grad: Any, messages: Any, logits: Any, weights: Any, start: Any, heard: Any, first: int,
    last: int, mode: int, kind: int, slope: Any, pulled: Any, begin: int, scored: Any, back: Any,
    query: int, known: Any,
) -> None:  # fmt: skip
    """Add the gradients of the messages (`pulled`), of the keys (`scored`), and of the queries."""
    heads, size = heads_of(known, weights.shape[1], messages.shape[1])
    most = 0
    for e in range(first, last):
        most = max(most, start[e + 1] - start[e])
    change = np.empty((most, weights.shape[1]), weights.dtype)
    mean = np.empty(weights.shape[1], weights.dtype)
    rows = slice(start[first], start[last])
    slopes = np.empty_like(logits[rows])
    flat, active = slopes.reshape(-1), logits[rows].reshape(-1)
    for i in range(np.uint64(flat.size if mode != 2 else 0)):
        flat[i] = slope_of(active[i], kind, slope)
    for e in range(np.uint64(first), np.uint64(last)):
        near, far = start[e], start[e + np.uint64(1)]
        mean[:] = 0
        for j in range(near, far):
            k = np.uint64(heard[j])
            for h in range(heads):
                add_scaled(pulled, k, h * size, weights[j, h], grad, e, h * size, size)
            if mode != 2:
                for h in range(heads):
                    pull = inner(grad, e, h * size, messages, k, h * size, size)
                    change[j - near, h] = pull
                    mean[h] += weights[j, h] * pull
        if mode == 2:
            continue
        for j in range(near, far):
            k = np.uint64(heard[j] - begin)
            for h in range(heads):
                weight, score = weights[j, h], change[j - near, h]
                score = weight * (score - mean[h]) if mode == 0 else score * weight * (1 - weight)
                score *= slopes[j - start[first], h]
                scored[k, h] += score
                back[e, np.uint64(query) + h] += score


@compiled_sums
def _return(
    messages: Any, pulled: Any, sender: Any, through: Any, begin: int, end: int, rectified: bool,
    back: Any, at: int, beside_back: Any, beside: int, known: Any,
) -> None:  # fmt: skip
    """Pass the gradients of the messages on to the cells that spoke and to the shared cells."""
    width = columns_of(known, messages.shape[1])
    zero = messages.dtype.type(0)
    for i in range(np.uint64(begin), np.uint64(end)):
        k, c = np.uint64(sender[i]), np.uint64(through[i])
        if rectified:
            for f in range(width):
                pulled[i, f] = pulled[i, f] if messages[i, f] > zero else zero
        for f in range(width):
            back[k, np.uint64(at) + f] += pulled[i, f]
        if beside >= 0:
            for f in range(width):
                beside_back[c, np.uint64(beside) + f] += pulled[i, f]


@compiled_sums
def _return_scores(
    scored: Any, sender: Any, through: Any, begin: int, back: Any, key: int, beside_back: Any,
    shared_key: int, known: Any,
) -> None:  # fmt: skip
    """Pass the gradients of the scores on to the cells that spoke and to the shared cells."""
    heads, _ = heads_of(known, scored.shape[1], scored.shape[1])
    for i in range(np.uint64(scored.shape[0])):
        k, c = np.uint64(sender[np.uint64(begin) + i]), np.uint64(through[np.uint64(begin) + i])
        for h in range(heads):
            back[k, np.uint64(key) + h] += scored[i, h]
        if shared_key >= 0:
            for h in range(heads):
                beside_back[c, np.uint64(shared_key) + h] += scored[i, h]
