"""`NetworkConfig`: the architecture as frozen values, without torch so that --help is quick."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cell_attention.errors import InputError
from cell_attention.nn.parts import require_part

Activation = Literal["relu", "leaky_relu", "elu", "gelu", "tanh", "sigmoid", "identity"]
Kernel = Literal["auto", "torch", "fused"]
Norm = Literal["batch", "layer", "none"]


@dataclass(frozen=True)
class NetworkConfig:
    """The architecture (paper §3, App. A). The defaults make a permutation-invariant network."""

    max_polygon: int = 6
    """Longest chordless cycle that becomes a 2-cell (R in the paper)."""

    lift: Literal["symmetric", "paper", "none"] = "symmetric"
    """How nodes become edges: Def. 6 symmetrised, App. A's one-way form, or ⟨x_i, x_j⟩ alone.
    Only the symmetric one makes Theorem 1 true."""
    lift_heads: int = 32
    """F⁰: attention heads of the lift, one edge feature each."""
    lift_activation: Activation = "elu"
    """φ_n."""
    lift_dropout: float = 0.0
    """Share of lifted features dropped in training, before the input edge features join them."""

    hidden: tuple[int, ...] = (32, 32)
    """Features per head of every attention layer; its length is the number of layers L."""
    heads: tuple[int, ...] = (2, 2)
    """Attention heads of every layer."""
    join: Literal["cat", "mean"] = "cat"
    """How the heads of a layer are joined."""
    score: Literal["gat", "gatv2"] = "gat"
    """φ_a(aᵀ[Wh_e‖Wh_k]) as in the paper, or aᵀφ_a(Wh_e + Wh_k): senders ranked per receiver."""
    attention_layer: str = "cell"
    """The layer in which edges hear each other; one of your own can be registered."""
    # Deviation: "uniform" is not an ablation of the paper. Ones still weigh by content.
    attention: Literal["both", "lower", "upper", "none", "uniform"] = "both"
    """Which attention vectors are trained; the others are ones (the paper's ablations). `uniform`
    gives every neighbour the same weight."""
    attention_activation: Activation = "leaky_relu"
    """φ_a."""
    attention_dropout: float = 0.0
    """Share of attention weights dropped in training; the paper does not mention it."""
    # Deviation: the paper does not say what its one slope is for. As α of the ELU it is used as in
    # the released code.
    negative_slope: float = 0.1
    """Slope of every leaky ReLU below zero, and α of every ELU ("Neg. Slope" in the paper)."""
    aggregate: Literal["sum", "mean", "max"] = "sum"
    """⊕ over the weighted messages of a neighbourhood."""
    # Deviation: the paper gives ε no value and does not say whether it is learned. This is the
    # released code's number, and fixed.
    epsilon: float = 0.001
    """ε of the self term (1 + ε)·W_s h."""
    learn_epsilon: bool = False
    """Whether ε is a parameter, one per layer."""
    activation: Activation = "elu"
    """φ, after every attention layer and between the two layers of the head."""
    norm: Norm = "batch"
    """After the lift and after every φ; the paper uses batch normalisation "in all layers"."""
    dropout: float = 0.0
    """On the input of every attention layer and between the two layers of the head."""

    pooling: Literal["hierarchical", "global", "none"] = "hierarchical"
    """Readouts of every pooled layer together, of the last layer only, or of the last layer with
    every edge kept and no score."""
    # Deviation: §3.3 pools after every round; the presets with global pooling take "last". Four
    # rounds with ratio 0.5 would leave NCI1 a sixteenth of its edges.
    pool_at: Literal["every", "last"] = "every"
    """Whether global pooling drops edges after every layer (§3.3) or once at the end."""
    pooling_layer: str = "top_k"
    """The layer that chooses the edges that stay; one of your own can be registered."""
    ratio: float = 0.75
    """k: share of edges that a pooling layer keeps, per complex."""
    # Deviation: the paper does not name φ_p. Lee et al. 2019, whom it follows, take tanh; the
    # released code takes φ.
    pool_activation: Activation = "tanh"
    """φ_p of the score; unnamed in the paper, tanh in the pooling it builds on."""
    readout: str = "sum"
    """⊕ over the edges of a complex: sum, mean, max, or one of your own."""
    # Deviation: "cat" is not in App. A, whose sum is not defined for layers of unequal width.
    layer_readout: Literal["sum", "cat"] = "sum"
    """How hierarchical readouts are joined; a sum needs layers of equal width."""
    # Deviation: not in the paper, whose readout over edges cannot see a node without any.
    node_readout: int = 0
    """Width of Σ_i W_n x_i, concatenated to h_C so that isolated nodes count; 0 leaves it out."""
    head_hidden: int = 32
    """Neurons between the two layers of the head."""

    def __post_init__(self) -> None:
        check_kinds(self)
        require_part("attention_layer", self.attention_layer)
        require_part("pooling_layer", self.pooling_layer)
        require_part("readout", self.readout)
        if not self.hidden or len(self.hidden) != len(self.heads):
            raise InputError(
                "hidden and heads must have one entry per layer, "
                f"got {len(self.hidden)} and {len(self.heads)}"
            )
        require("max_polygon", self.max_polygon >= 3, "be at least 3", self.max_polygon)
        for name in ("lift_heads", "head_hidden"):
            require_size(name, getattr(self, name))
        for name in ("hidden", "heads"):
            for size in getattr(self, name):
                require_size(name, size)
        for name in ("lift_dropout", "attention_dropout", "dropout"):
            value = getattr(self, name)
            require(name, 0.0 <= value < 1.0, "lie in [0, 1)", value)
        slope = self.negative_slope
        require("negative_slope", slope >= 0.0, "not be negative", slope)
        require("ratio", 0.0 < self.ratio <= 1.0, "lie in (0, 1]", self.ratio)
        require("node_readout", self.node_readout >= 0, "be at least 0", self.node_readout)
        widths = self.widths
        if self.pooling == "hierarchical" and self.pool_at == "last":
            raise InputError("pooling 'hierarchical' pools at every layer, got pool_at 'last'")
        if self.pooling == "hierarchical" and self.layer_readout == "sum" and len(set(widths)) > 1:
            raise InputError(
                "layer_readout 'sum' needs layers of equal width, got "
                f"{', '.join(map(str, widths))}; use layer_readout 'cat'"
            )

    @property
    def widths(self) -> tuple[int, ...]:
        """Features of an edge after every attention layer."""
        joined = self.heads if self.join == "cat" else (1,) * len(self.heads)
        return tuple(size * count for size, count in zip(self.hidden, joined, strict=True))

    @property
    def readout_width(self) -> int:
        """Length of h_C."""
        gathered = self.pooling == "hierarchical" and self.layer_readout == "cat"
        return (sum(self.widths) if gathered else self.widths[-1]) + self.node_readout

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "NetworkConfig":
        """Restore a configuration from JSON, which has lists instead of tuples."""
        return cls(**tuples(record))

    @staticmethod
    def paper(name: str) -> "NetworkConfig":
        """Return the network of the paper's table for MUTAG, PTC_MM, PROTEINS, NCI1 or NCI109."""
        return _preset(name)

    @staticmethod
    def molecules() -> "NetworkConfig":
        """Return the network for files of molecules: rings of up to 8, single atoms counted."""
        return NetworkConfig(
            max_polygon=8, lift_heads=64, hidden=(32, 32, 32), heads=(4, 4, 4), dropout=0.2,
            layer_readout="cat", node_readout=64, head_hidden=64,
        )  # fmt: skip


def tuples(record: dict[str, Any]) -> dict[str, Any]:
    """Replace lists by tuples, which the fields of a configuration are."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}


@cache
def _kinds(config: type) -> dict[str, Any]:
    return get_type_hints(config)


def require_choice(name: str, value: object, kind: Any) -> None:
    """Refuse a value that is not one of a Literal's."""
    choices = get_args(kind)
    require(name, value in choices, f"be one of {', '.join(map(repr, choices))}", repr(value))


def check_kinds(config: Any) -> None:
    """Check every field against its type: a misspelt choice is an error."""
    for name, kind in _kinds(config.__class__).items():
        value = getattr(config, name)
        if get_origin(kind) is Literal:
            require_choice(name, value, kind)
        elif get_origin(kind) is tuple:
            whole = isinstance(value, tuple) and all(type(entry) is int for entry in value)
            require(name, whole, "be a tuple of whole numbers", repr(value))
        elif kind is float:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            require(name, number, "be a number", repr(value))
            require(name, math.isfinite(value), "be finite", value)
        else:
            words = {int: "be a whole number", bool: "be true or false", str: "be a name"}
            require(name, type(value) is kind, words[kind], repr(value))


def require_size(name: str, value: int, most: int = 10**6) -> None:
    """Refuse a size below one, or larger than any machine could hold."""
    require(name, value >= 1, "be at least 1", value)
    require(name, value <= most, f"be at most {most:,}", value)


def require(name: str, rule: bool, text: str, value: object) -> None:
    """Raise InputError with the name and the value if a rule is broken."""
    if not rule:
        raise InputError(f"{name} must {text}, got {value}")


def _preset(name: str) -> NetworkConfig:
    """Look up one column of the paper's table.

    Deviation: its "PTC" is called PTC_MM, because only that set has its 336 graphs.
    """
    presets = {
        "MUTAG": NetworkConfig(
            lift="paper", lift_heads=1, lift_activation="relu", hidden=(32, 32), heads=(1, 1),
            attention_activation="leaky_relu", activation="elu", head_hidden=8,
            negative_slope=0.1, ratio=1.0, pooling="hierarchical", dropout=0.1,
        ),
        "PTC_MM": NetworkConfig(
            lift="paper", lift_heads=32, lift_activation="elu", hidden=(32, 8), heads=(2, 1),
            attention_activation="leaky_relu", activation="elu", head_hidden=4,
            negative_slope=0.1, ratio=0.75, pooling="global", pool_at="last", dropout=0.6,
        ),
        "PROTEINS": NetworkConfig(
            lift="paper", lift_heads=256, lift_activation="elu", lift_dropout=0.05,
            hidden=(128, 128), heads=(1, 1), attention_activation="tanh", activation="tanh",
            head_hidden=128, negative_slope=0.3, ratio=0.6, pooling="hierarchical", dropout=0.3,
        ),
        "NCI1": NetworkConfig(
            lift="paper", lift_heads=107, lift_activation="elu", lift_dropout=0.2,
            hidden=(32, 16, 64, 8), heads=(3, 5, 4, 5), attention_activation="tanh",
            activation="elu", head_hidden=256, negative_slope=0.08, ratio=0.5,
            pooling="global", pool_at="last", dropout=0.15,
        ),
        "NCI109": NetworkConfig(
            lift="paper", lift_heads=116, lift_activation="sigmoid", lift_dropout=0.2,
            hidden=(64, 8, 8, 32, 8), heads=(5, 7, 4, 7, 7), attention_activation="tanh",
            activation="gelu", head_hidden=32, negative_slope=0.07, ratio=0.75,
            pooling="global", pool_at="last", dropout=0.05,
        ),
    }  # fmt: skip
    if name not in presets:
        raise InputError(f"the paper has no preset {name!r}; it has {', '.join(presets)}")
    return presets[name]
