"""Dropout as a layer, with its compiled twin in `kernels/dropout.py`."""

from torch import Tensor, nn
from torch.nn import functional

from cell_attention.nn.config import Kernel
from cell_attention.nn.kernels import compilable


class Dropout(nn.Module):
    """`torch.nn.Dropout`, compiled on the CPU; seeded by torch, so the same seed gives the same
    mask.
    """

    def __init__(self, p: float = 0.0, kernel: Kernel = "auto") -> None:
        super().__init__()
        self.p, self.kernel = p, kernel

    def forward(self, values: Tensor) -> Tensor:
        """Drop a share p of the values in training and scale the others by 1 / (1 − p)."""
        if not self.training or self.p == 0.0:
            return values
        if compilable(self.kernel, values):
            from cell_attention.nn.kernels.dropout import drop

            return drop(values, self.p)
        return functional.dropout(values, self.p)

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return f"p={self.p}"
