"""The attention layer of a network, over the lower and the upper neighbourhood (paper App. A)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from cell_attention.arguments import require, require_choice
from cell_attention.errors import InputError
from cell_attention.nn.config import Activation, Kernel, NetworkConfig
from cell_attention.nn.functional import Reduction
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.kernels.attention import FusedMessages, Neighbours, use_fused

if TYPE_CHECKING:
    from cell_attention.nn.attend import Score

Attention = Literal["both", "lower", "upper", "none", "uniform"]


class AttentionVectors(nn.Module):
    """The attention vector a of every head, in two halves (H, F); ones if not trained.

    The score "gatv2" has one vector of F entries and thus no sender.
    """

    receiver: Tensor
    sender: Tensor | None

    def __init__(self, heads: int, channels: int, *, trained: bool, score: "Score" = "gat") -> None:
        super().__init__()
        self.trained = trained
        self.former = ("sender",) if score == "gatv2" else ()
        """Names of weights that models of earlier versions have; they are not read."""
        for name in ("receiver", "sender"):
            if name in self.former:
                self.register_parameter(name, None)
            elif trained:
                self.register_parameter(name, nn.Parameter(torch.empty(heads, channels)))
            else:
                self.register_buffer(name, torch.ones(heads, channels))
        hook: Any = self.register_load_state_dict_pre_hook
        hook(_forget_former)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the vectors again, if they are trained."""
        if self.trained:
            # Xavier with gain √2, of the map R^{2F} → R.
            bound = (2.0 * 6.0 / (2 * self.receiver.size(1) + 1)) ** 0.5
            # A missing sender is drawn too, so that all later numbers stay what they always were.
            absent = torch.empty_like(self.receiver)
            for vector in (self.receiver, absent if self.sender is None else self.sender):
                nn.init.uniform_(vector, -bound, bound)


def _forget_former(vectors: AttentionVectors, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for name in vectors.former:
        state.pop(prefix + name, None)


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
        *,
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
        check_sizes(
            in_channels, out_channels, heads, dropout=dropout, aggregate=aggregate, kernel=kernel
        )
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
        self.parts = [self.width, heads * out_channels, heads * out_channels]
        """Columns of the joint projection that are self, lower and upper."""
        self.project = nn.Linear(in_channels, sum(self.parts), bias=False)
        """W_s, W_d and W_u, one below the other."""
        self.lower, self.upper = (
            AttentionVectors(heads, out_channels, trained=attention in ("both", side), score=score)
            for side in ("lower", "upper")
        )
        self.epsilon = nn.Parameter(torch.tensor(epsilon), requires_grad=learn_epsilon)
        self._first_epsilon = epsilon
        self.reset_parameters()

    @classmethod
    def from_config(
        cls, config: NetworkConfig, layer: int, in_channels: int, kernel: Kernel
    ) -> "CellAttention":
        """Build layer number `layer` of a network, which computes φ together with its norm."""
        return cls(
            in_channels, config.hidden[layer], config.heads[layer], concat=config.join == "cat",
            dropout=config.attention_dropout, score=config.score, attention=config.attention,
            attention_activation=config.attention_activation,
            negative_slope=config.negative_slope, aggregate=config.aggregate,
            epsilon=config.epsilon, learn_epsilon=config.learn_epsilon, activation="identity",
            kernel=kernel,
        )  # fmt: skip

    def reset_parameters(self) -> None:
        """Draw the weights again."""
        for part in self.project.weight.split(self.parts):
            nn.init.xavier_uniform_(part, gain=2**0.5)
        self.lower.reset_parameters()
        self.upper.reset_parameters()
        nn.init.constant_(self.epsilon, self._first_epsilon)

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
        check_width(edges, self.project)
        dropout = self.dropout if self.training else 0.0
        near = neighbours or Neighbours(edges.size(0), lower_pairs, upper_pairs)
        if self.width == self.heads * self.out_channels and use_fused(
            self.kernel, edges, near, activation=self.attention_activation, score=self.score,
            aggregate=self.aggregate, dropout=dropout,
        ):  # fmt: skip
            # Projection, both neighbourhoods and the self term, one block of edges at a time.
            total, *weights = FusedMessages.apply(  # type: ignore[no-untyped-call]
                edges, self.project.weight, self.epsilon, self.attention_activation,
                self.negative_slope, near,
                self.lower.receiver, self.lower.sender, self.upper.receiver, self.upper.sender,
            )  # fmt: skip
            return Attended(self.activation(total), *weights)
        from cell_attention.nn.attend import attend  # the same in plain torch

        itself, *said = self.project(edges).split(self.parts, dim=1)
        total, weights = (1.0 + self.epsilon) * itself, []
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
            total = total + join_heads(heard.messages, self.concat)
            weights.append(heard.weights)
        return Attended(self.activation(total), *weights)

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return (
            f"{self.in_channels}, {self.out_channels}, heads={self.heads}, concat={self.concat}, "
            f"score={self.score!r}, attention={self.attention!r}, aggregate={self.aggregate!r}"
        )


def check_sizes(
    in_channels: int, out_channels: int, heads: int, *, dropout: float, aggregate: str, kernel: str
) -> None:
    """Refuse arguments that no attention layer can have."""
    sizes = (("in_channels", in_channels), ("out_channels", out_channels), ("heads", heads))
    for name, value in sizes:
        require(name, value >= 1, "be at least 1", value)
    require("dropout", 0.0 <= dropout < 1.0, "lie in [0, 1)", dropout)
    require_choice("aggregate", aggregate, Reduction)
    require_choice("kernel", kernel, Kernel)


def check_width(edges: Tensor, project: nn.Linear) -> None:
    """Refuse edges that are not as wide as the projection needs them."""
    if edges.dim() != 2 or edges.size(1) != project.in_features:
        shape = tuple(edges.shape)
        raise InputError(f"edges must be (E, {project.in_features}), got {shape}")


def join_heads(messages: Tensor, concat: bool) -> Tensor:
    """Join heads (E, H, F) to (E, H·F), or to their mean (E, F)."""
    return messages.flatten(1) if concat else messages.mean(1)
