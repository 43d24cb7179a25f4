"""φ by name, and sums, means, maxima and softmax over groups of rows.

`group[r]` names the group of row r. Every φ takes the paper's one slope for all of them.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from cell_attention.arguments import require_choice
from cell_attention.data.file_format import Kind
from cell_attention.errors import InputError
from cell_attention.nn.config import Activation

Pointwise = Callable[[Tensor], Tensor]
Reduction = Literal["sum", "mean", "max"]


def is_monotone(name: Activation, negative_slope: float) -> bool:
    """Whether φ increases strictly: ranking its argument then avoids ties by saturation."""
    if name in ("leaky_relu", "elu"):
        return negative_slope > 0
    return name in ("tanh", "sigmoid", "identity")


def activation(name: Activation, negative_slope: float) -> Pointwise:
    """Look up φ by name; `negative_slope` is the slope of a leaky ReLU and the α of an ELU."""
    require_choice("activation", name, Activation)
    if not 0.0 <= negative_slope < math.inf:
        raise InputError(f"negative_slope must be finite and not negative, got {negative_slope}")
    if name == "leaky_relu":
        return partial(nn.functional.leaky_relu, negative_slope=negative_slope)
    if name == "elu":
        return partial(nn.functional.elu, alpha=negative_slope)
    plain: dict[str, Pointwise] = {
        "relu": torch.relu,
        "gelu": nn.functional.gelu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "identity": torch.positive,
    }
    return plain[name]


def segment_sum(values: Tensor, group: Tensor, num_groups: int) -> Tensor:
    """(num_groups, …) sum of the rows of every group; zeros for a group without rows."""
    return values.new_zeros(num_groups, *values.shape[1:]).index_add(0, group, values)


def segment_mean(values: Tensor, group: Tensor, num_groups: int) -> Tensor:
    """(num_groups, …) mean of the rows of every group; zeros for a group without rows."""
    sizes = torch.bincount(group, minlength=num_groups).clamp(min=1)
    return segment_sum(values, group, num_groups) / sizes.view(-1, *[1] * (values.dim() - 1))


def segment_max(values: Tensor, group: Tensor, num_groups: int) -> Tensor:
    """(num_groups, …) largest value of every group; zeros for a group without rows."""
    where = group.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
    start = values.new_zeros(num_groups, *values.shape[1:])
    return start.scatter_reduce(0, where, values, "amax", include_self=False)


def segment_reduce(values: Tensor, group: Tensor, num_groups: int, *, how: Reduction) -> Tensor:
    """Reduce every group by sum, mean or max."""
    return {"sum": segment_sum, "mean": segment_mean, "max": segment_max}[how](
        values, group, num_groups
    )


def segment_softmax(logits: Tensor, group: Tensor, num_groups: int) -> Tensor:
    """Softmax within each group: rows of a group lie in [0, 1] and sum to 1."""
    # The maximum is taken per group, not over the batch: one molecule with huge
    # logits must not push every other molecule's weights to zero.
    peak = segment_max(logits.detach(), group, num_groups)
    weight = (logits - peak[group]).exp()
    return weight / segment_sum(weight, group, num_groups)[group]


def predictions_of(kind: Kind, outputs: Tensor) -> Tensor:
    """Probabilities of classes or labels, or values as they are."""
    if kind == "classes":
        return outputs.softmax(1)
    return outputs.sigmoid() if kind == "labels" else outputs
