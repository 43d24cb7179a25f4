"""A moving average of the weights of a network, which is evaluated and saved in their place."""

import copy

import torch
from torch import nn


class MovingAverage:
    """Exponential moving average of all parameters and running moments.

    After step n (from 1) the share min(decay, (1 + n) / (10 + n)) of the average is kept: the first
    steps, whose weights are far from good, are soon forgotten.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.network = copy.deepcopy(network).eval()

    @torch.no_grad()
    def update(self, network: nn.Module, step: int) -> None:
        """Move the average towards the weights after step number `step`."""
        share = 1.0 - min(self.decay, (1 + step) / (10 + step))
        own, new = self.network.state_dict(), network.state_dict()
        floating = [name for name, value in own.items() if value.is_floating_point()]
        torch._foreach_lerp_(
            [own[name] for name in floating], [new[name] for name in floating], share
        )
        for name in own.keys() - set(floating):
            own[name].copy_(new[name])
