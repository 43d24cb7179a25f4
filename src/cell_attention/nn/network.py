"""The network: lift → (cell attention → edge pooling → readout) × L → head (paper §3.5)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from cell_attention.errors import InputError
from cell_attention.nn.config import Kernel, NetworkConfig, require
from cell_attention.nn.describe import described
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.functional import segment_sum
from cell_attention.nn.kernels.attention import Neighbours
from cell_attention.nn.lift import AttentionalLift
from cell_attention.nn.norm import ActivatedNorm, Dropout
from cell_attention.nn.part_checks import build_part
from cell_attention.topology.complex import CellComplex

if TYPE_CHECKING:
    from cell_attention.nn.embedding import Embedding


@dataclass(frozen=True)
class LayerTrace:
    """What one attention layer did."""

    complexes: CellComplex
    """The complexes that it saw."""
    lower: Tensor
    """(lower pairs, H) weights, in the order of `complexes.lower_pairs`."""
    upper: Tensor
    """(upper pairs, H) weights, in the order of `complexes.upper_pairs`."""
    score: Tensor | None
    """(E,) pooling score of every edge that it saw; None if this layer does not pool."""
    kept: Tensor
    """(K,) rows of the edges that it kept."""
    edges: Tensor
    """(K,) the same edges as rows of the input complex."""
    features: Tensor
    """(K, F) their features."""
    nodes: Tensor | None = None
    """(N, F) features of the nodes, where they carry any."""
    polygons: Tensor | None = None
    """(Q, F) features of the polygons that are left, where they carry any."""
    polygon_rows: Tensor | None = None
    """(Q,) these polygons as rows of the input complex."""


@dataclass(frozen=True)
class Trace:
    """A forward pass with everything that it decided on the way."""

    logits: Tensor
    """(num_complexes, outputs), bit for bit those of `forward`."""
    complexes: CellComplex
    """The input, lifted."""
    layers: tuple[LayerTrace, ...]
    readout: Tensor
    """(num_complexes, ·) h_C."""


class CellAttentionNetwork(nn.Module):
    """A Cell Attention Network for whole graphs.

    Called with a CellComplex, or with anything that `lift` takes, which it then lifts on the fly.
    Returns logits (num_complexes, outputs): two or more for classes, one per label or value
    otherwise. A graph without edges is read out as zeros and still gets a prediction.

    kernel: "auto" takes the compiled kernels wherever they apply (CPU, float32 or float64), "torch"
    uses plain torch only, "fused" refuses to run an attention layer without its kernel.

    Deviation: dropout acts on the input of every attention layer and inside the head. The paper has
    a rate per data set and does not say where it acts.
    Deviation: readouts are those of layers 1…L. App. A counts them from 0 to L−1, but the output of
    the lift has another width and could not be summed.
    Deviation: nothing is normalised inside the head. App. A normalises "in all layers", but for
    the head it names only two layers and φ.
    """

    def __new__(cls, config: NetworkConfig | None = None, *_: Any, **__: Any) -> Any:
        """Return the network of the configuration's design, which may be a subclass."""
        if cls is CellAttentionNetwork and config is not None and config.design == "ranks":
            from cell_attention.nn.rank_network import RankNetwork

            return super().__new__(RankNetwork)
        return super().__new__(cls)

    def __init__(
        self,
        config: NetworkConfig,
        node_features: int,
        edge_features: int,
        outputs: int,
        kernel: Kernel = "auto",
    ) -> None:
        self._set_up(config, node_features, edge_features, outputs)
        slope = config.negative_slope
        self.lift = AttentionalLift(
            node_features, config.lift_heads, config.lift, config.lift_activation, slope,
            config.lift_dropout, kernel,
        )  # fmt: skip
        widths = [self.lift.out_channels + edge_features, *config.widths]
        # h̃ = BN(φ(h)): φ of an attention layer is computed together with the norm after it.
        self.norms = nn.ModuleList(
            ActivatedNorm(
                width, config.norm, config.activation if place else "identity", slope, kernel
            )
            for place, width in enumerate(widths)
        )
        attention, pooling = config.attention_layer, config.pooling_layer
        self.attention = nn.ModuleList(
            build_part(
                "attention_layer", attention, widths[layer + 1], config, layer, width, kernel
            )
            for layer, width in enumerate(widths[:-1])
        )
        self.pool = nn.ModuleList(
            build_part("pooling_layer", pooling, width, config, width, kernel)
            if self._pools_after(layer)
            else nn.Identity()
            for layer, width in enumerate(widths[1:])
        )
        self._set_readout(widths[-1])
        self.dropout = Dropout(config.dropout, kernel)
        self.node_sum: nn.Module | None = None
        if config.node_readout:
            self.node_sum = nn.Linear(node_features, config.node_readout, bias=False)
        self.activation = pointwise(config.activation, slope)
        self.head = nn.ModuleList(
            [
                nn.Linear(config.readout_width, config.head_hidden),
                nn.Linear(config.head_hidden, outputs),
            ]
        )

    def _set_up(
        self, config: NetworkConfig, node_features: int, edge_features: int, outputs: int
    ) -> None:
        nn.Module.__init__(self)
        for name, value in (("node_features", node_features), ("outputs", outputs)):
            require(name, value >= 1, "be at least 1", value)
        require("edge_features", edge_features >= 0, "not be negative", edge_features)
        self.config = config
        self.node_features, self.edge_features = node_features, edge_features
        self.outputs = outputs

    def _set_readout(self, width: int) -> None:
        self.readout = build_part("readout", self.config.readout, width, self.config, width)

    @property
    def _weight(self) -> Tensor:
        """A parameter that every network has, to look up its type and device."""
        return next(self.head.parameters())

    def _pools_after(self, layer: int) -> bool:
        last = layer == len(self.config.hidden) - 1
        return self.config.pooling != "none" and (self.config.pool_at == "every" or last)

    def forward(self, graphs: Any) -> Tensor:
        """graphs: a CellComplex, or what `lift` takes; returns (num_complexes, outputs)."""
        return self.trace(graphs).logits

    def embed(self, graphs: Any) -> "Embedding":
        """Return the edge embeddings of the last layer, and h_C."""
        from cell_attention.nn.embedding import Embedding

        trace = self.trace(graphs)
        last = trace.layers[-1]
        return Embedding(last.features, trace.complexes.edge_complex[last.edges], trace.readout)

    def trace(self, graphs: Any) -> Trace:
        """Return the logits with all attention weights, pooling scores and kept edges."""
        complexes = self._checked(self.complexes_of(graphs))
        layers = tuple(self._layers(complexes))
        readout = self.read_out(complexes, layers)
        return Trace(self.logits(readout), complexes, layers, readout)

    def logits(self, readout: Tensor) -> Tensor:
        """(num_complexes, outputs) of the head, from h_C."""
        hidden = self.dropout(self.activation(self.head[0](readout)))
        found: Tensor = self.head[1](hidden)
        return found

    def rescale_outputs(self, scale: Tensor, centre: Tensor) -> None:
        """Change the last layer of the head so that it returns outputs · scale + centre."""
        last = cast(nn.Linear, self.head[1])
        with torch.no_grad():
            last.weight.mul_(scale[:, None])
            last.bias.mul_(scale).add_(centre)

    def complexes_of(self, graphs: Any) -> CellComplex:
        """Return the input as complexes: as given, as carried by a loader's batch, or lifted."""
        if isinstance(graphs, CellComplex):
            return graphs
        carried = getattr(graphs, "complexes", None)
        if isinstance(carried, CellComplex):
            return carried
        from cell_attention.data.lifting import lift

        return lift(graphs, self.config.max_polygon)

    def _layers(self, complexes: CellComplex) -> Iterator[LayerTrace]:
        nodes = complexes.node_features.to(self._weight.dtype)
        given = complexes.edge_features
        edges = self.lift(
            nodes, complexes.edge_nodes, None if given is None else given.to(nodes.dtype)
        )
        rate = self.config.dropout if self.training else 0.0
        edges = self.norms[0](edges, rate)
        neighbours: Neighbours | None = None
        alive = torch.arange(complexes.num_edges, device=complexes.device)
        for layer, attention in enumerate(self.attention):
            pairs = complexes.lower_pairs, complexes.upper_pairs
            if neighbours is None:
                neighbours = Neighbours(complexes.num_edges, *pairs)
            attended = attention(edges, *pairs, neighbours)
            last, pools = layer == len(self.attention) - 1, self._pools_after(layer)
            edges = self.norms[layer + 1](attended.edges, 0.0 if last or pools else rate)
            seen, score = complexes, None
            kept = torch.arange(complexes.num_edges, device=complexes.device)
            if pools:
                pooled = self.pool[layer](edges, complexes.edge_complex, complexes.num_complexes)
                edges, kept, score = pooled.edges, pooled.kept, pooled.score
                alive = alive[kept]
                if not last and kept.size(0) < complexes.num_edges:
                    complexes, neighbours = complexes.restrict(kept), None
            yield LayerTrace(seen, attended.lower, attended.upper, score, kept, alive, edges)
            if pools and not last:
                edges = self.dropout(edges)

    def read_out(self, complexes: CellComplex, layers: tuple[LayerTrace, ...]) -> Tensor:
        """(num_complexes, ·) h_C from the layers that are read out."""
        count = complexes.num_complexes
        chosen = layers if self.config.pooling == "hierarchical" else layers[-1:]
        parts = [
            self.readout(layer.features, complexes.edge_complex[layer.edges], count)
            for layer in chosen
        ]
        whole = (
            torch.cat(parts, 1) if self.config.layer_readout == "cat" else sum(parts[1:], parts[0])
        )
        if self.node_sum is not None:
            nodes = self.node_sum(complexes.node_features.to(whole.dtype))
            whole = torch.cat([whole, segment_sum(nodes, complexes.node_complex, count)], dim=1)
        return whole

    def _checked(self, complexes: CellComplex) -> CellComplex:
        """Refuse features that this network was not made for."""
        if complexes.num_complexes == 0:  # of any width: there is nothing to check
            return self._nothing(complexes)
        given = complexes.edge_features
        expected = (
            ("node_features", complexes.node_features, self.node_features),
            ("edge_features", given, self.edge_features),
        )
        device = self._weight.device
        if complexes.device != device:
            raise InputError(f"the complexes are on {complexes.device}, the network on {device}")
        for name, values, width in expected:
            got = 0 if values is None else values.size(-1)
            if got != width:
                raise InputError(f"{name} must have {width} columns, got {got}")
            if values is not None and not values.is_floating_point():
                raise InputError(
                    f"{name} must be floating point, got {values.dtype}; encode categories first"
                )
            if values is not None:
                values = values.to(self._weight.dtype)
            # A finite sum has finite terms: single values are checked only if it is not finite.
            if values is not None and not (values.sum().isfinite() or values.isfinite().all()):
                row = int((~values.isfinite()).any(1).nonzero()[0])
                raise InputError(f"{name} must be finite, row {row} is not")
        return complexes

    def _nothing(self, complexes: CellComplex) -> CellComplex:
        """Return zero complexes, with features as wide as this network needs them."""
        weight = self._weight
        edges = weight.new_zeros(0, self.edge_features) if self.edge_features else None
        return replace(
            complexes,
            node_features=weight.new_zeros(0, self.node_features),
            edge_features=edges,
        )

    def num_parameters(self) -> dict[str, int]:
        """Count the trainable parameters of every part."""
        return {name: sum(counts) for name, counts in self._parameters_per_layer().items()}

    def _parameters_per_layer(self) -> dict[str, list[int]]:
        return {
            name: [
                sum(p.numel() for p in layer.parameters() if p.requires_grad)
                for layer in (part if isinstance(part, nn.ModuleList) else [part])
            ]
            for name, part in self.named_children()
        }

    def __repr__(self) -> str:
        sizes = self.node_features, self.edge_features, self.outputs
        return described(self.config, sizes, self._parameters_per_layer())
