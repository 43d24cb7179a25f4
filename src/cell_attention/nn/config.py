"""The architecture of a network; does not import torch, so that --help is quick."""

from dataclasses import dataclass
from typing import Any, Literal

from cell_attention.arguments import check_kinds, completed, later, require, require_size
from cell_attention.errors import InputError
from cell_attention.nn.parts import require_part

Activation = Literal["relu", "leaky_relu", "elu", "gelu", "tanh", "sigmoid", "identity"]
Kernel = Literal["auto", "torch", "fused"]
Norm = Literal["batch", "layer", "none"]
NEIGHBOURHOODS = ("nodes", "lower", "upper", "polygons", "faces", "cofaces")
"""Who hears whom on the ranks of a complex; `nn/hearing.py` has the formula."""
FIELDS_OF = {
    "paper": (
        "lift", "lift_heads", "lift_activation", "lift_dropout", "join", "score", "attention_layer",
        "attention", "attention_dropout", "aggregate", "epsilon", "learn_epsilon", "layer_readout",
        "node_readout",
    ),
    "ranks": (
        "ranks", "neighbourhoods", "shared_cell", "weights", "voices", "update", "head_dropout",
        "counts", "composition",
    ),
}  # fmt: skip
"""The fields of NetworkConfig that only one design reads."""


@dataclass(frozen=True)
class NetworkConfig:
    """The architecture. The defaults are the network on every rank; `paper` returns the networks of
    the paper (§3, App. A), which work on edges alone.
    """

    design: Literal["ranks", "paper"] = later("paper", default="ranks")
    """Which network: attention on every rank, through the cells that are shared, or the paper's,
    on edges alone. Some of the fields below belong to one of the two."""
    max_polygon: int = 6
    """Longest chordless cycle that becomes a 2-cell (R in the paper)."""

    ranks: tuple[int, ...] = later((0, 1, 2))
    """Design "ranks": the ranks that carry features (0 nodes, 1 edges, 2 polygons)."""
    neighbourhoods: tuple[str, ...] = later(NEIGHBOURHOODS[:3] + NEIGHBOURHOODS[4:])
    """Design "ranks": who hears whom. Nodes hear nodes through edges ("nodes"), edges hear edges
    through nodes ("lower") and polygons ("upper"), polygons hear polygons through edges
    ("polygons"); every cell adds up its faces ("faces") and its cofaces ("cofaces")."""
    shared_cell: bool = later(True)
    """Design "ranks": whether a message and its weight depend on the cell that is shared."""
    weights: Literal["softmax", "gate", "sum"] = later("softmax")
    """Design "ranks": what a cell hears is weighed by a softmax, by gates (sigmoids), which can
    count, or not at all."""
    voices: Literal["one", "each"] = later("each", default="one", design="ranks")
    """Design "ranks": whether a cell says the same V h to all who hear it and beside those that
    speak through it, or has another V for each neighbourhood."""
    update: Literal["linear", "mlp"] = later("mlp", default="linear", design="ranks")
    """Design "ranks": what follows a round of attention: a norm and φ, or these, a linear map and
    another norm and φ."""

    counts: int = later(0, default=4, design="ranks")
    """Design "ranks": steps around each node within which the surroundings are counted exactly, for
    the second branch of the network (`nn/surrounding_counts.py`); 0 leaves it out. In training,
    fewer where less than a fifth of the nodes have surroundings that occur in two graphs."""
    composition: bool = later(False, default=True, design="ranks")
    """Design "ranks": whether a third branch of the network reads what a complex is made of, the
    sums of its features and the numbers of its cells (`nn/descriptor_branch.py`)."""

    lift: Literal["symmetric", "paper", "none"] = "symmetric"
    """How node features become edge features: Def. 6 symmetrised, the one-way form of App. A, or
    ⟨x_i, x_j⟩ alone. Theorem 1 holds only with "symmetric"."""
    lift_heads: int = 32
    """F⁰: number of attention heads of the lift; each gives one edge feature."""
    lift_activation: Activation = "elu"
    """φ_n, the activation of the lift."""
    lift_dropout: float = 0.0
    """Dropout rate of lifted features, before the input edge features are appended."""

    hidden: tuple[int, ...] = (16, 16, 16, 16, 16, 16)
    """Features per head of every attention layer; as many numbers as there are layers (L)."""
    heads: tuple[int, ...] = (4, 4, 4, 4, 4, 4)
    """Attention heads of every layer; as many numbers as in `hidden`."""
    join: Literal["cat", "mean"] = "cat"
    """How the heads of a layer are combined: concatenated or averaged."""
    score: Literal["gat", "gatv2"] = "gat"
    """Attention logits: φ_a(aᵀ[Wh_e‖Wh_k]) as in the paper, or aᵀφ_a(Wh_e + Wh_k), where each
    receiver can rank its senders differently."""
    attention_layer: str = "cell"
    """Name of the attention layer; register your own with `register_attention`."""
    # Deviation: "uniform" is not an ablation of the paper, whose vectors of ones still weigh
    # neighbours by their content.
    attention: Literal["both", "lower", "upper", "none", "uniform"] = "both"
    """Which attention vectors are trained; the others are ones (the paper's ablations). "uniform"
    gives every neighbour the same weight."""
    attention_activation: Activation = "leaky_relu"
    """φ_a, the activation of the attention logits."""
    attention_dropout: float = 0.0
    """Dropout rate of attention weights; not in the paper."""
    # Deviation: the paper does not say what its one slope is for. It is also α of the ELU here, as
    # in the released code.
    negative_slope: float = 0.1
    """Slope of every leaky ReLU below zero, and α of every ELU ("Neg. Slope" in the paper)."""
    aggregate: Literal["sum", "mean", "max"] = "sum"
    """⊕, how the weighted messages of a neighbourhood are combined."""
    # Deviation: the paper gives ε no value and does not say whether it is learned. This is the
    # value of the released code, and it is fixed.
    epsilon: float = 0.001
    """ε of the self term (1 + ε)·W_s h."""
    learn_epsilon: bool = False
    """Whether ε is a trained parameter, one per layer."""
    activation: Activation = "relu"
    """φ, the activation after every attention layer and between the two layers of the head."""
    norm: Norm = "batch"
    """Normalisation after the lift and after every φ; the paper uses batch normalisation "in all
    layers"."""
    dropout: float = 0.1
    """Dropout rate of the features between two layers; in the paper's design also between the two
    layers of the head."""
    head_dropout: float = later(0.5)
    """Design "ranks": dropout rate between the two layers of the head."""

    pooling: Literal["hierarchical", "global", "none"] = "none"
    """Which layers are read out: all of them, pooled ("hierarchical"); the last one, pooled
    ("global"); or, with all edges and no scores, the last one (every one in design "ranks")
    ("none")."""
    # Deviation: §3.3 pools after every layer; the presets with global pooling use "last". Pooling
    # four times with ratio 0.5 would leave NCI1 a sixteenth of its edges.
    pool_at: Literal["every", "last"] = "every"
    """Whether global pooling drops edges after every layer (§3.3) or once at the end."""
    pooling_layer: str = "top_k"
    """Name of the layer that chooses which edges are kept; register your own with
    `register_pooling`."""
    ratio: float = 0.75
    """k, the share of its edges that a complex keeps at a pooling layer."""
    # Deviation: the paper does not name φ_p. Lee et al. 2019, whom it follows, use tanh; the
    # released code uses φ.
    pool_activation: Activation = "tanh"
    """φ_p, the activation of the pooling scores; the paper does not name it."""
    readout: str = "sum"
    """How the edges of a complex are combined: sum, mean, max, or a name of your own, registered
    with `register_readout`."""
    # Deviation: "cat" is not in App. A, whose sum is not defined for layers of unequal width.
    layer_readout: Literal["sum", "cat"] = "sum"
    """How the readouts of the layers are combined in hierarchical pooling; "sum" needs layers of
    equal width."""
    # Deviation: not in the paper, whose readout over edges cannot see a node without edges.
    node_readout: int = 0
    """Width of Σ_i W_n x_i, a sum over nodes that is appended to h_C so that isolated nodes count;
    0 leaves it out."""
    head_hidden: int = 64
    """Hidden units between the two layers of the head."""

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
        require_size("max_polygon", self.max_polygon, most=10_000)  # a vector for each size
        for name in ("lift_heads", "head_hidden"):
            require_size(name, getattr(self, name))
        for name in ("hidden", "heads"):
            for size in getattr(self, name):
                require_size(name, size)
        for name in ("lift_dropout", "attention_dropout", "dropout", "head_dropout"):
            value = getattr(self, name)
            require(name, 0.0 <= value < 1.0, "lie in [0, 1)", value)
        slope = self.negative_slope
        require("negative_slope", slope >= 0.0, "not be negative", slope)
        require("ratio", 0.0 < self.ratio <= 1.0, "lie in (0, 1]", self.ratio)
        require("counts", 0 <= self.counts <= 20, "lie in 0…20", self.counts)
        require("node_readout", self.node_readout >= 0, "be at least 0", self.node_readout)
        if self.pooling == "hierarchical" and self.pool_at == "last":
            raise InputError("pooling 'hierarchical' needs pool_at 'every', got pool_at 'last'")
        ranks, heard = self.ranks, self.neighbourhoods
        if self.design == "ranks":
            require(
                "ranks", 1 in ranks and list(ranks) == sorted({*ranks} & {0, 1, 2}),
                "be (1,), (0, 1), (1, 2) or (0, 1, 2): edges always carry features", ranks,
            )  # fmt: skip
            known = ", ".join(NEIGHBOURHOODS)
            sound = len({*heard}) == len(heard) and {*heard} <= {*NEIGHBOURHOODS}
            require("neighbourhoods", sound, f"be names out of {known}, each once", heard)
        elif self.pooling == "hierarchical" and self.layer_readout == "sum":
            widths = self.widths
            if len(set(widths)) > 1:
                raise InputError(
                    "layer_readout 'sum' needs layers of equal width, got "
                    f"{', '.join(map(str, widths))}; use layer_readout 'cat'"
                )

    @property
    def widths(self) -> tuple[int, ...]:
        """Features of an edge after every attention layer."""
        joined = self.design == "ranks" or self.join == "cat"
        heads = self.heads if joined else (1,) * len(self.heads)
        return tuple(size * count for size, count in zip(self.hidden, heads, strict=True))

    @property
    def readout_width(self) -> int:
        """Length of h_C."""
        if self.design == "ranks":
            every = self.widths[0], *self.widths
            read = every if self.pooling != "global" else every[-1:]
            return len(self.ranks) * sum(read)
        gathered = self.pooling == "hierarchical" and self.layer_readout == "cat"
        return (sum(self.widths) if gathered else self.widths[-1]) + self.node_readout

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "NetworkConfig":
        """Make a configuration from its JSON record, which has lists instead of tuples."""
        return cls(**completed(cls, record))

    @staticmethod
    def paper(name: str) -> "NetworkConfig":
        """Return the network from the paper's table for MUTAG, PTC_MM, PROTEINS, NCI1 or NCI109."""
        from cell_attention.nn.presets import preset

        return preset(name)

    @staticmethod
    def edges(**changes: Any) -> "NetworkConfig":
        """Return a network of the paper's design for any graphs, with the symmetric lift."""
        usual: dict[str, Any] = {
            "design": "paper", "hidden": (32, 32), "heads": (2, 2), "activation": "elu",
            "dropout": 0.0, "pooling": "hierarchical", "head_hidden": 32,
        }  # fmt: skip
        return NetworkConfig(**{**usual, **changes})

    @staticmethod
    def molecules() -> "NetworkConfig":
        """Return the network for files of molecules, where rings of up to eight atoms are polygons.

        It has no counts of surroundings, which learn the molecules by heart: on scaffolds that
        they have not seen they are worse than the other branches, and pull the mean down.
        """
        return NetworkConfig(max_polygon=8, counts=0, head_dropout=0.0)
