"""φ(BN(h)) and dropout: the step between two attention layers."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.nn.config import Activation, Kernel, NetworkConfig, Norm
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.kernels import compilable

ComputeNorm = Callable[..., tuple[Tensor, Tensor, Tensor]]
"""Returns the result, and the mean and variance of every column."""


class NormedActivation(nn.Module):
    """φ(norm(h)), then dropout: the order of most libraries, where φ leaves sums that can count."""

    def __init__(
        self,
        width: int,
        norm: Norm = "batch",
        activation: Activation = "relu",
        *,
        negative_slope: float = 0.1,
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        self.kind, self.slope, self.kernel = activation, negative_slope, kernel
        self.activation = pointwise(activation, negative_slope)
        self.norm = NORMS[norm](width)

    @classmethod
    def from_config(cls, config: NetworkConfig, width: int, kernel: Kernel) -> "NormedActivation":
        """Build it with the norm and the φ of a network."""
        slope = config.negative_slope
        return cls(width, config.norm, config.activation, negative_slope=slope, kernel=kernel)

    def forward(self, values: Tensor, dropout: float = 0.0) -> Tensor:
        """values: (cells, F); dropout: share of the result to drop in this call."""
        if values.size(0) == 0:
            return values
        norm = self.norm
        if isinstance(norm, BatchNorm) and norm.training and values.size(0) == 1:
            # One cell has no variance: the running moments stand in for its own.
            result = self.activation(norm.by_running(values))
        elif (
            isinstance(norm, BatchNorm)
            and norm.training
            and norm.track_running_stats
            and compilable(self.kernel, values, self.kind)
        ):
            from cell_attention.nn.kernels.norm import normed_activation

            return self.compiled(normed_activation, norm, values, dropout=dropout)
        else:
            result = self.activation(norm(values))
        return functional.dropout(result, dropout) if dropout else result

    def compiled(
        self, compute: "ComputeNorm", norm: "BatchNorm", values: Tensor, *, dropout: float
    ) -> Tensor:
        """Compute it by a function of `kernels/norm.py`, and track the moments of the batch."""
        result, mean, variance = compute(
            values,
            norm.weight,
            norm.bias,
            eps=norm.eps,
            activation=self.kind,
            negative_slope=self.slope,
            dropout=dropout,
        )
        norm.track(mean, variance, values.size(0))
        return result

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return f"activation={self.kind!r}"


class BatchNorm(nn.BatchNorm1d):
    """PyTorch's batch normalisation, always with running statistics."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    momentum: float

    @torch.no_grad()
    def track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Update the running moments by those of a batch of `count` rows."""
        self.num_batches_tracked.add_(1)
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance * (count / (count - 1)), self.momentum)

    def by_running(self, values: Tensor) -> Tensor:
        """Normalise by the running moments, as in evaluation."""
        return functional.batch_norm(
            values, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


NORMS: dict[Norm, Callable[[int], nn.Module]] = {
    "batch": BatchNorm,
    "layer": nn.LayerNorm,
    "none": nn.Identity,
}
