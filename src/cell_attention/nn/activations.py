"""The pointwise functions of a network by name, with the paper's one slope for all of them."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from cell_attention.errors import InputError
from cell_attention.nn.config import Activation, require_choice

Pointwise = Callable[[Tensor], Tensor]


def is_monotone(name: Activation, negative_slope: float) -> bool:
    """Whether φ increases strictly: its argument ranks as it does, without ties by saturation."""
    if name in ("leaky_relu", "elu"):
        return negative_slope > 0
    return name in ("tanh", "sigmoid", "identity")


def activation(name: Activation, negative_slope: float) -> Pointwise:
    """φ by name; `negative_slope` is the slope of a leaky ReLU and the α of an ELU."""
    require_choice("activation", name, Activation)
    if not 0.0 <= negative_slope < math.inf:
        raise InputError(f"negative_slope must be finite and not negative, got {negative_slope}")
    if name == "leaky_relu":
        return partial(functional.leaky_relu, negative_slope=negative_slope)
    if name == "elu":
        return partial(functional.elu, alpha=negative_slope)
    plain: dict[str, Pointwise] = {
        "relu": torch.relu,
        "gelu": functional.gelu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "identity": _identity,
    }
    return plain[name]


def _identity(values: Tensor) -> Tensor:
    return values
