"""Masked self-attention over pairs of edges (paper App. A): score, softmax per receiver, sum."""

from typing import Literal

from torch import Tensor
from torch.nn import functional

from cell_attention.arguments import require_choice
from cell_attention.errors import InputError
from cell_attention.nn.config import Activation, Kernel
from cell_attention.nn.functional import Reduction, segment_reduce, segment_softmax
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.hearing import Heard
from cell_attention.nn.kernels.attention import FusedMessages, Neighbours, use_fused

Score = Literal["gat", "gatv2", "uniform"]


def attend(
    values: Tensor,
    receiver: Tensor,
    sender: Tensor | None,
    pairs: Tensor,
    *,
    activation: Activation = "leaky_relu",
    negative_slope: float = 0.2,
    score: Score = "gat",
    aggregate: Reduction = "sum",
    dropout: float = 0.0,
    kernel: Kernel = "auto",
) -> Heard:
    """Weight the values of every edge's neighbours and aggregate them.

    values: (E, H, F) projected edges Wh. receiver, sender: (H, F), the two halves of the attention
    vector a; GATv2 uses only the first. pairs: (2, M), row 0 hears row 1. dropout: share of the
    weights to drop in this call. kernel: "fused" (compiled, CPU, pairs sorted by receiver),
    "torch" (any device, any option), or "auto", which uses the first if it can.

    Deviation: GATv2 has one W for receiver and sender, where Brody et al. 2022 have two, because
    the paper's ψ shares its weights with the attention.
    """
    require_choice("score", score, Score)
    require_choice("aggregate", aggregate, Reduction)
    if sender is None and score == "gat":
        raise InputError("score 'gat' needs a sender, got None")
    for name, vector in (("receiver", receiver), ("sender", sender)):
        if vector is None:
            continue
        if vector.shape != values.shape[1:] or vector.dtype != values.dtype:
            raise InputError(
                f"{name} must be {tuple(values.shape[1:])} of {values.dtype}, got "
                f"{tuple(vector.shape)} of {vector.dtype}"
            )
    near = Neighbours(values.size(0), pairs)
    if use_fused(
        kernel, values, near, activation=activation, score=score, aggregate=aggregate,
        dropout=dropout,
    ):  # fmt: skip
        messages, weights = FusedMessages.apply(  # type: ignore[no-untyped-call]
            values.flatten(1), None, None, activation, negative_slope, near, receiver, sender
        )
        return Heard(messages.view_as(values), weights)
    e, k = pairs
    count = values.size(0)
    phi = pointwise(activation, negative_slope)
    if score == "uniform":
        logits = values.new_zeros(e.size(0), values.size(1))
    elif score == "gatv2" or sender is None:
        logits = (phi(values[e] + values[k]) * receiver).sum(-1)
    elif (
        sender is not None
    ):  # the paper's score; on the CPU its compiled twin is `kernels/messages.py: _scores`
        logits = phi((values * receiver).sum(-1)[e] + (values * sender).sum(-1)[k])
    weights = segment_softmax(logits, e, count)
    used = functional.dropout(weights, dropout) if dropout else weights
    messages = segment_reduce(used.unsqueeze(-1) * values[k], e, count, how=aggregate)
    return Heard(messages, weights)
