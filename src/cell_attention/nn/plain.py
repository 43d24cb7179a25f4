"""Whether a computation runs compiled or in plain torch."""

import torch
from torch import Tensor

from cell_attention.nn.config import Kernel


def compilable(kernel: Kernel, *values: Tensor) -> bool:
    """Whether the compiled version may be used: CPU, float32 or float64, and not told otherwise."""
    return kernel != "torch" and all(
        value.device.type == "cpu" and value.dtype in (torch.float32, torch.float64)
        for value in values
    )
