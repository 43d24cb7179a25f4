"""Whether a computation runs compiled or in plain torch.

The equations are in `nn/` in plain torch; the compiled twin of each is here, in the module of the
same name, and is imported only if it is used.
"""

import torch
from torch import Tensor

from cell_attention.nn.config import Activation, Kernel
from cell_attention.nn.kernels.pointwise import KINDS


def compilable(kernel: Kernel, values: Tensor, activation: Activation = "identity") -> bool:
    """Whether the compiled version may be used: kernel "fused" or "auto", a φ that kernels know,
    and not inside another compiler.
    """
    return kernel != "torch" and activation in KINDS and not hindrance(values)


def hindrance(values: Tensor) -> str:
    """Return why the kernels cannot take these values; empty if they can."""
    reasons = (
        (values.device.type != "cpu", f"values on {values.device}"),
        (values.dtype not in (torch.float32, torch.float64), f"values of {values.dtype}"),
        (torch.compiler.is_compiling(), "torch.compile"),
    )
    return next((text for applies, text in reasons if applies), "")
