"""A moving average of the weights of a network, which is evaluated and saved in their place."""

import copy

import torch
from torch import nn


class MovingAverage:
    """Exponential moving average of all trained parameters and running moments of a network.

    After step n (from 1) the share min(decay, (1 + n) / (10 + n)) of the average is kept: the first
    steps, whose weights are far from good, are soon forgotten.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.network = copy.deepcopy(network).eval()
        # Looked up once: this takes longer than the average itself, and tensors are changed in
        # place, never replaced.
        own, new = self.network.state_dict(), network.state_dict()
        fixed = {name for name, value in network.named_parameters() if not value.requires_grad}
        moving = {name: value for name, value in own.items() if name not in fixed}
        real = [name for name, value in moving.items() if value.is_floating_point()]
        self._own, self._new = [own[name] for name in real], [new[name] for name in real]
        self._counts = [(own[name], new[name]) for name in moving.keys() - set(real)]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move the average towards the weights after step number `step`."""
        share = 1.0 - min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._own, self._new, share)
        for own, new in self._counts:
            own.copy_(new)
