"""Targets of which only a bound is known, such as a solubility of "> 10"."""

from collections.abc import Sequence

import torch
from torch import Tensor

from cell_attention.errors import InputError


def check_bounds(targets: Tensor | None, bounds: Tensor) -> None:
    """Refuse bounds that do not belong to targets; their contents are not checked."""
    if targets is None or not targets.is_floating_point():
        raise InputError("target_bounds need targets that are values")
    if bounds.shape != targets.shape:
        raise InputError(
            f"target_bounds must have the shape of targets, {tuple(targets.shape)}, "
            f"got {tuple(bounds.shape)}"
        )
    if bounds.dtype != torch.int8:
        raise InputError(f"target_bounds must be int8, got {bounds.dtype}")


def exact_targets(targets: Tensor | None, bounds: Tensor | None) -> Tensor | None:
    """Return the targets, with NaN for those that are only bounds."""
    if targets is None or bounds is None:
        return targets
    return targets.masked_fill(bounds != 0, float("nan"))


def join_bounds(parts: Sequence[tuple[Tensor | None, Tensor | None]]) -> Tensor | None:
    """Join the bounds of several (targets, bounds); None if none of them has bounds."""
    if all(bounds is None for _, bounds in parts):
        return None
    return torch.cat(
        [
            torch.zeros_like(targets, dtype=torch.int8) if bounds is None else bounds
            for targets, bounds in parts
            if targets is not None
        ]
    )
