"""The pointwise functions of a network by name, with the paper's one slope for all of them."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from cell_attention.errors import InputError
from cell_attention.nn.config import ACTIVATIONS, Activation

Pointwise = Callable[[Tensor], Tensor]

MONOTONE = frozenset({"leaky_relu", "elu", "tanh", "sigmoid", "identity"})
"""Strictly increasing: their argument ranks as they do, without ties by saturation."""


def activation(name: Activation, negative_slope: float) -> Pointwise:
    """φ by name; `negative_slope` is the slope of a leaky ReLU and the α of an ELU."""
    if name not in ACTIVATIONS:
        raise InputError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {name!r}")
    if name == "leaky_relu":
        return partial(functional.leaky_relu, negative_slope=negative_slope)
    if name == "elu":
        return partial(functional.elu, alpha=negative_slope)
    plain: dict[str, Pointwise] = {
        "relu": torch.relu,
        "gelu": functional.gelu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "identity": lambda values: values,
    }
    return plain[name]
