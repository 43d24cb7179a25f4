"""The attention layers: over one neighbourhood, and over the lower and the upper one together."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from cell_attention.errors import InputError
from cell_attention.nn.attend import Heard, Score, attend, use_fused
from cell_attention.nn.config import (
    Activation,
    Kernel,
    NetworkConfig,
    require,
    require_choice,
)
from cell_attention.nn.functional import Reduction
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.kernels.attention import Neighbours

Attention = Literal["both", "lower", "upper", "none", "uniform"]


class _Vectors(nn.Module):
    """The attention vector a of every head, in two halves (H, F); ones if not trained."""

    receiver: Tensor
    sender: Tensor

    def __init__(self, heads: int, channels: int, trained: bool) -> None:
        super().__init__()
        self.trained = trained
        for name in ("receiver", "sender"):
            if trained:
                self.register_parameter(name, nn.Parameter(torch.empty(heads, channels)))
            else:
                self.register_buffer(name, torch.ones(heads, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.trained:
            # Xavier with gain √2, of the map R^{2F} → R.
            bound = (2.0 * 6.0 / (2 * self.receiver.size(1) + 1)) ** 0.5
            for vector in (self.receiver, self.sender):
                nn.init.uniform_(vector, -bound, bound)


class NeighbourAttention(nn.Module):
    """Masked self-attention over one neighbourhood, the lower or the upper (paper App. A).

    An edge with no neighbour receives zeros: it has heard nothing.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
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
        _check(in_channels, out_channels, heads, dropout, aggregate, kernel)
        pointwise(activation, negative_slope)
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.dropout, self.score, self.aggregate = concat, dropout, score, aggregate
        self.activation: Activation = activation
        self.negative_slope, self.kernel = negative_slope, kernel
        self.project = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.vectors = _Vectors(heads, out_channels, trained=True)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights again."""
        nn.init.xavier_uniform_(self.project.weight, gain=2**0.5)
        self.vectors.reset_parameters()

    def forward(self, edges: Tensor, pairs: Tensor) -> Heard:
        """edges: (E, in_channels); pairs: (2, M), row 0 hears row 1; messages: (E, width)."""
        _width(edges, self.project)
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
        return Heard(_joined(heard.messages, self.concat), heard.weights)


@dataclass(frozen=True)
class Attended:
    """Edges after one round of attention."""

    edges: Tensor
    """(E, joined width)."""
    lower: Tensor
    """(lower pairs, H) weights."""
    upper: Tensor
    """(upper pairs, H) weights."""


class CellAttention(nn.Module):
    """φ((1+ε)·W_s h_e + ⊕ α_d W_d h_k + ⊕ α_u W_u h_k): one round of messages (App. A).

    Deviation: an attention vector has 2·F^{l+1} entries per head, one half for the receiver and one
    for the sender. App. A says F^l, which does not fit its own product.
    Deviation: no map has a bias, as in the equations but unlike the GAT layers of libraries.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        dropout: float = 0.0,
        score: Literal["gat", "gatv2"] = "gat",
        attention: Attention = "both",
        attention_activation: Activation = "leaky_relu",
        negative_slope: float = 0.1,
        aggregate: Reduction = "sum",
        epsilon: float = 0.001,
        learn_epsilon: bool = False,
        activation: Activation = "elu",
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        require_choice("score", score, Literal["gat", "gatv2"])
        require_choice("attention", attention, Attention)
        _check(in_channels, out_channels, heads, dropout, aggregate, kernel)
        pointwise(attention_activation, negative_slope)
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.dropout, self.aggregate = concat, dropout, aggregate
        self.attention = attention
        self.score: Score = "uniform" if attention == "uniform" else score
        self.attention_activation: Activation = attention_activation
        self.negative_slope, self.kernel = negative_slope, kernel
        self.activation = pointwise(activation, negative_slope)
        self.width = heads * out_channels if concat else out_channels
        """Features of an edge after this layer."""
        self.project = nn.Linear(in_channels, self.width + 2 * heads * out_channels, bias=False)
        """W_s, W_d and W_u, one below the other."""
        self.lower = _Vectors(heads, out_channels, trained=attention in ("both", "lower"))
        self.upper = _Vectors(heads, out_channels, trained=attention in ("both", "upper"))
        self.epsilon = nn.Parameter(torch.tensor(epsilon), requires_grad=learn_epsilon)
        self._first_epsilon = epsilon
        self.reset_parameters()

    @classmethod
    def from_config(
        cls, config: NetworkConfig, layer: int, in_channels: int, kernel: Kernel
    ) -> "CellAttention":
        """Build layer number `layer` of a network, which computes φ together with its norm."""
        return cls(
            in_channels, config.hidden[layer], config.heads[layer], config.join == "cat",
            config.attention_dropout, config.score, config.attention, config.attention_activation,
            config.negative_slope, config.aggregate, config.epsilon, config.learn_epsilon,
            "identity", kernel,
        )  # fmt: skip

    def reset_parameters(self) -> None:
        """Draw the weights again."""
        for part in self._split(self.project.weight, dim=0):
            nn.init.xavier_uniform_(part, gain=2**0.5)
        self.lower.reset_parameters()
        self.upper.reset_parameters()
        nn.init.constant_(self.epsilon, self._first_epsilon)

    def _split(self, joint: Tensor, dim: int) -> tuple[Tensor, ...]:
        """Split a joint tensor into self, lower and upper along `dim`."""
        message = self.heads * self.out_channels
        return torch.split(joint, [self.width, message, message], dim)

    def forward(
        self,
        edges: Tensor,
        lower_pairs: Tensor,
        upper_pairs: Tensor,
        neighbours: Neighbours | None = None,
    ) -> Attended:
        """edges: (E, in_channels); pairs: (2, ·), row 0 hears row 1; neighbours: the same pairs,
        prepared for the fused kernel once for several layers.
        """
        _width(edges, self.project)
        dropout = self.dropout if self.training else 0.0
        near = neighbours or Neighbours(edges.size(0), lower_pairs, upper_pairs)
        options = edges, self.attention_activation, self.score, self.aggregate, dropout, near
        if self.width == self.heads * self.out_channels and use_fused(self.kernel, *options):
            return self._fused(edges, near)
        itself, *said = self._split(self.project(edges), dim=1)
        total = (1.0 + self.epsilon) * itself
        weights = []
        # The lower neighbourhood and then the upper one: the score is in `attend`.
        for values, vectors, pairs in zip(
            said, (self.lower, self.upper), (lower_pairs, upper_pairs), strict=True
        ):
            heard = attend(
                values.reshape(-1, self.heads, self.out_channels),
                vectors.receiver,
                vectors.sender,
                pairs,
                activation=self.attention_activation,
                negative_slope=self.negative_slope,
                score=self.score,
                aggregate=self.aggregate,
                dropout=dropout,
                kernel=self.kernel,
            )
            total = total + _joined(heard.messages, self.concat)
            weights.append(heard.weights)
        return Attended(self.activation(total), *weights)

    def _fused(self, edges: Tensor, near: Neighbours) -> Attended:
        """Compute projection, both neighbourhoods and self term, one block of edges at a time."""
        from cell_attention.nn.kernels.attention import FusedMessages

        total, *weights = FusedMessages.apply(  # type: ignore[no-untyped-call]
            edges, self.project.weight, self.epsilon, self.attention_activation,
            self.negative_slope, near,
            self.lower.receiver, self.lower.sender, self.upper.receiver, self.upper.sender,
        )  # fmt: skip
        return Attended(self.activation(total), *weights)

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return (
            f"{self.in_channels}, {self.out_channels}, heads={self.heads}, concat={self.concat}, "
            f"score={self.score!r}, attention={self.attention!r}, aggregate={self.aggregate!r}"
        )


def _check(
    in_channels: int, out_channels: int, heads: int, dropout: float, aggregate: str, kernel: str
) -> None:
    sizes = (("in_channels", in_channels), ("out_channels", out_channels), ("heads", heads))
    for name, value in sizes:
        require(name, value >= 1, "be at least 1", value)
    require("dropout", 0.0 <= dropout < 1.0, "lie in [0, 1)", dropout)
    require_choice("aggregate", aggregate, Reduction)
    require_choice("kernel", kernel, Kernel)


def _width(edges: Tensor, project: nn.Linear) -> None:
    if edges.dim() != 2 or edges.size(1) != project.in_features:
        shape = tuple(edges.shape)
        raise InputError(f"edges must be (E, {project.in_features}), got {shape}")


def _joined(messages: Tensor, concat: bool) -> Tensor:
    """Join heads (E, H, F) to (E, H·F), or to their mean (E, F)."""
    return messages.flatten(1) if concat else messages.mean(1)
