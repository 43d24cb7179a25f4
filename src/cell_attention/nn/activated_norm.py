"""h̃ = BN(φ(h)) and dropout: the paper's order of the step between two attention layers."""

from torch import Tensor
from torch.nn import functional

from cell_attention.errors import InputError
from cell_attention.nn.kernels import compilable
from cell_attention.nn.norm import BatchNorm, NormedActivation


class ActivatedNorm(NormedActivation):
    """φ, then batch or layer normalisation or none, then the dropout of the next layer.

    Deviation: the paper does not say on which side of φ it normalises; here after it, as the
    released code does.
    """

    def forward(self, values: Tensor, dropout: float = 0.0) -> Tensor:
        """values: (E, F); dropout: share of the result to drop in this call."""
        if values.size(0) == 0:
            return values
        if isinstance(self.norm, BatchNorm) and self.norm.training:
            if values.size(0) == 1:
                raise InputError(
                    "norm 'batch' needs at least 2 edges in a training batch, got 1 (after "
                    "pooling, if there is any); use larger batches or norm 'layer'"
                )
            tracked = self.norm.track_running_stats
            if tracked and compilable(self.kernel, values, self.kind):
                from cell_attention.nn.kernels.norm import activated_norm

                return self.compiled(activated_norm, self.norm, values, dropout=dropout)
        normalised: Tensor = self.norm(self.activation(values))
        return functional.dropout(normalised, dropout) if dropout else normalised
