"""Where a training starts: at weights of another network, some of which may stay fixed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase


@dataclass(frozen=True)
class Start:
    """Weights to start from, by their names in the state of the network; all others are new."""

    weights: Mapping[str, Tensor] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    """Those of them that are not trained."""

    @torch.no_grad()
    def apply(self, network: nn.Module) -> None:
        """Give a new network these weights, and switch the gradients of fixed ones off."""
        state = network.state_dict()
        for name, value in self.weights.items():
            state[name].copy_(value)
        for name, parameter in network.named_parameters():
            if name in self.fixed:
                parameter.requires_grad_(False)

    def trained(self, network: nn.Module) -> list[nn.Parameter]:
        """Return the parameters that the optimiser may change."""
        return [value for name, value in network.named_parameters() if name not in self.fixed]

    def hold(self, network: nn.Module) -> None:
        """Let fixed batch norms use their running moments, also in training: else these drift."""
        for name, module in network.named_modules() if self.fixed else ():
            if isinstance(module, _NormBase) and f"{name}.running_mean" in self.fixed:
                module.eval()

    def release(self, network: nn.Module) -> None:
        """Switch the gradients of fixed weights on again, after training."""
        for name, parameter in network.named_parameters():
            if name in self.fixed:
                parameter.requires_grad_(True)
