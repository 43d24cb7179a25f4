"""Whether a computation runs compiled or in plain torch."""

import torch
from torch import Tensor

from cell_attention.nn.config import Kernel


def compilable(kernel: Kernel, *values: Tensor) -> bool:
    """Whether the compiled version may be used: on request or by itself, and not inside another
    compiler.
    """
    return kernel != "torch" and not any(hindrance(value) for value in values)


def hindrance(values: Tensor) -> str:
    """Why no kernel can take these values; empty if they can."""
    reasons = (
        (values.device.type != "cpu", f"values on {values.device}"),
        (values.dtype not in (torch.float32, torch.float64), f"values of {values.dtype}"),
        (torch.compiler.is_compiling(), "torch.compile"),
    )
    return next((text for applies, text in reasons if applies), "")
