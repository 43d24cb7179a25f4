"""The attention layer over one neighbourhood, to be used on its own."""

from torch import Tensor, nn

from cell_attention.arguments import require_choice
from cell_attention.nn.attend import Score, attend
from cell_attention.nn.attention import AttentionVectors, check_sizes, check_width, join_heads
from cell_attention.nn.config import Activation, Kernel
from cell_attention.nn.functional import Reduction
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.hearing import Heard


class NeighbourAttention(nn.Module):
    """Masked self-attention over one neighbourhood, the lower or the upper (paper App. A).

    An edge with no neighbour receives zeros: it has heard nothing.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        *,
        concat: bool = True,
        dropout: float = 0.0,
        score: Score = "gat",
        activation: Activation = "leaky_relu",
        negative_slope: float = 0.2,
        aggregate: Reduction = "sum",
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        require_choice("score", score, Score)
        check_sizes(
            in_channels, out_channels, heads, dropout=dropout, aggregate=aggregate, kernel=kernel
        )
        pointwise(activation, negative_slope)
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.dropout, self.score, self.aggregate = concat, dropout, score, aggregate
        self.activation: Activation = activation
        self.negative_slope, self.kernel = negative_slope, kernel
        self.project = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.vectors = AttentionVectors(heads, out_channels, trained=True, score=score)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights again."""
        nn.init.xavier_uniform_(self.project.weight, gain=2**0.5)
        self.vectors.reset_parameters()

    def forward(self, edges: Tensor, pairs: Tensor) -> Heard:
        """edges: (E, in_channels); pairs: (2, M), row 0 hears row 1; messages: (E, width)."""
        check_width(edges, self.project)
        heard = attend(
            self.project(edges).view(-1, self.heads, self.out_channels),
            self.vectors.receiver,
            self.vectors.sender,
            pairs,
            activation=self.activation,
            negative_slope=self.negative_slope,
            score=self.score,
            aggregate=self.aggregate,
            dropout=self.dropout if self.training else 0.0,
            kernel=self.kernel,
        )
        return Heard(join_heads(heard.messages, self.concat), heard.weights)
