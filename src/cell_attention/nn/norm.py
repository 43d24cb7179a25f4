"""h̃ = BN(φ(h)), or φ(BN(h)), and dropout: the step between two attention layers."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.errors import InputError
from cell_attention.nn.config import Activation, Kernel, NetworkConfig, Norm
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.kernels import compilable


class ActivatedNorm(nn.Module):
    """φ, then batch or layer normalisation or none, then the dropout of the next layer.

    Deviation: the paper does not say on which side of φ it normalises; here after it, as the
    released code does.
    """

    def __init__(
        self,
        width: int,
        norm: Norm = "batch",
        activation: Activation = "identity",
        *,
        negative_slope: float = 0.1,
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        self.kind, self.slope, self.kernel = activation, negative_slope, kernel
        self.activation = pointwise(activation, negative_slope)
        self.norm = _norm(norm, width)

    def forward(self, values: Tensor, dropout: float = 0.0) -> Tensor:
        """values: (E, F); dropout: share of the result to drop in this call."""
        if values.size(0) == 0:
            return values
        if isinstance(self.norm, _BatchNorm) and self.norm.training:
            if values.size(0) == 1:
                raise InputError(
                    "norm 'batch' needs at least 2 edges in a training batch, got 1 (after "
                    "pooling, if there is any); use larger batches or norm 'layer'"
                )
            tracked = self.norm.track_running_stats
            if tracked and compilable(self.kernel, values, self.kind):
                return self._compiled(self.norm, values, dropout)
        normalised: Tensor = self.norm(self.activation(values))
        return functional.dropout(normalised, dropout) if dropout else normalised

    def _compiled(self, norm: "_BatchNorm", values: Tensor, dropout: float) -> Tensor:
        from cell_attention.nn.kernels.norm import activated_norm

        result, mean, variance = activated_norm(
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
        self.norm = _norm(norm, width)

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
        if isinstance(norm, _BatchNorm) and norm.training and values.size(0) == 1:
            # One cell has no variance: the running moments stand in for its own.
            result = self.activation(norm.by_running(values))
        elif (
            isinstance(norm, _BatchNorm)
            and norm.training
            and norm.track_running_stats
            and compilable(self.kernel, values, self.kind)
        ):
            return self._compiled(norm, values, dropout)
        else:
            result = self.activation(norm(values))
        return functional.dropout(result, dropout) if dropout else result

    def _compiled(self, norm: "_BatchNorm", values: Tensor, dropout: float) -> Tensor:
        from cell_attention.nn.kernels.norm import normed_activation

        result, mean, variance = normed_activation(
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


def _norm(kind: Norm, width: int) -> nn.Module:
    if kind == "batch":
        return _BatchNorm(width)
    return nn.LayerNorm(width) if kind == "layer" else nn.Identity()


class _BatchNorm(nn.BatchNorm1d):
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
