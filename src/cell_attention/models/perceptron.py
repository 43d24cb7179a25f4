"""The perceptron of the rivals: linear maps with batch normalisation and ReLU."""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that uses the running statistics for a batch of at most one row: a batch
    may have one polygon, or none.
    """

    def forward(self, values: Tensor) -> Tensor:
        """values: (rows, F)."""
        if self.training and values.size(0) > 1:
            return super().forward(values)
        return functional.batch_norm(
            values,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            False,
            0.0,
            self.eps,
        )


def perceptron(*widths: int) -> nn.Sequential:
    """Linear → norm → ReLU, for every step from one width to the next."""
    return nn.Sequential(
        *(
            part
            for fin, fout in pairwise(widths)
            for part in (nn.Linear(fin, fout), BatchNorm(fout), nn.ReLU())
        )
    )
