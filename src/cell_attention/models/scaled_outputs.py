"""A network around any other one that gives values in their own units."""

import torch
from torch import Tensor, nn

from cell_attention.topology.complex import CellComplex


class ScaledOutputs(nn.Module):
    """A network for standardised values, with outputs in their own units."""

    centre: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, outputs: int) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("centre", torch.zeros(outputs))
        self.register_buffer("scale", torch.ones(outputs))

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs) in the units of the targets."""
        outputs: Tensor = self.network(complexes)
        return outputs * self.scale + self.centre

    def rescale_outputs(self, scale: Tensor, centre: Tensor) -> None:
        """Use these units from here on."""
        self.scale.copy_(scale)
        self.centre.copy_(centre)
