"""A wrapper that lets any network predict values in their own units."""

import torch
from torch import Tensor, nn

from cell_attention.topology.complex import CellComplex


class ScaledOutputs(nn.Module):
    """A network trained on standardised values, with outputs in the original units."""

    centre: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, outputs: int) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("centre", torch.zeros(outputs))
        self.register_buffer("scale", torch.ones(outputs))

    def forward(self, complexes: CellComplex) -> Tensor:
        """Return (num_complexes, outputs) in the units of the targets."""
        outputs: Tensor = self.network(complexes)
        return outputs * self.scale + self.centre

    def rescale_outputs(self, scale: Tensor, centre: Tensor) -> None:
        """Set the units of the outputs."""
        self.scale.copy_(scale)
        self.centre.copy_(centre)
