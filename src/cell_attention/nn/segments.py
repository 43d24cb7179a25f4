"""Sums, softmax and the like over groups of rows, where `group[r]` names the group of row r."""

from typing import Literal

import torch
from torch import Tensor

Reduction = Literal["sum", "mean", "max"]


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


def segment_reduce(values: Tensor, group: Tensor, num_groups: int, how: Reduction) -> Tensor:
    """One of the three by name."""
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
