"""What both networks share: the input, the trace of a forward pass, and the head."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from cell_attention.arguments import require
from cell_attention.errors import InputError
from cell_attention.nn.config import Kernel, NetworkConfig
from cell_attention.nn.describe import described
from cell_attention.nn.parts import build_part
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.degrees import with_degrees

if TYPE_CHECKING:
    from cell_attention.nn.embedding import Embedding
    from cell_attention.topology.graphs import EdgeMerge


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
    before: tuple[Tensor, ...] = ()
    """Features of every rank before the first layer, where all ranks carry any."""


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
    """A Cell Attention Network for whole graphs: a `RankNetwork` or, with design "paper", an
    `EdgeNetwork`, which are the classes to derive your own from.

    Called with a CellComplex, or with anything that `lift` takes, which it then lifts on the fly.
    Returns logits (num_complexes, outputs): two or more for classes, one per label or value
    otherwise.

    kernel: "auto" takes the compiled kernels wherever they apply (CPU, float32 or float64), "torch"
    uses plain torch only, "fused" refuses to run an attention layer without its kernel.
    """

    def __new__(cls, config: NetworkConfig | None = None, *_: Any, **__: Any) -> Any:
        """Return a network of the configuration's design."""
        if cls is not CellAttentionNetwork or config is None:
            return super().__new__(cls)
        require("config", isinstance(config, NetworkConfig), "be a NetworkConfig", config)
        if config.design == "paper":
            from cell_attention.nn.edge_network import EdgeNetwork

            return super().__new__(EdgeNetwork)
        from cell_attention.nn.rank_network import RankNetwork

        return super().__new__(RankNetwork)

    def __init__(
        self,
        config: NetworkConfig,
        node_features: int,
        edge_features: int,
        outputs: int,
        *,
        complex_features: int = 0,
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        if type(self)._layers is CellAttentionNetwork._layers:
            name = type(self).__name__
            raise InputError(f"{name} must be derived from RankNetwork or EdgeNetwork")
        sizes = {
            "node_features": node_features, "outputs": outputs, "edge_features": edge_features,
            "complex_features": complex_features,
        }  # fmt: skip
        for name, value in sizes.items():
            require(name, isinstance(value, Integral), "be a whole number", repr(value))
            least = 1 if name in ("node_features", "outputs") else 0
            require(name, value >= least, f"be at least {least}", value)
        self.config, self.complex_features = config, complex_features
        self.node_features, self.edge_features = node_features, edge_features
        self.outputs, self.kernel = outputs, kernel
        every = config.pooling != "none" and config.pool_at == "every"
        last = config.pooling != "none"
        self.pools = (*(every,) * (len(config.hidden) - 1), last)

    def _set_head(self, width: int) -> None:
        """Build the readout of rows of this width, and the head."""
        config = self.config
        self.readout = build_part("readout", config.readout, width, config, width)
        self.head = nn.ModuleList(
            [
                nn.Linear(config.readout_width, config.head_hidden),
                nn.Linear(config.head_hidden, self.outputs),
            ]
        )

    def forward(self, graphs: Any, edge_merge: "EdgeMerge | None" = None) -> Tensor:
        """graphs: a CellComplex, or what `lift` takes; returns (num_complexes, outputs).

        edge_merge: as for `lift`, if the graphs are lifted here.
        """
        return self.trace(graphs, edge_merge).logits

    def embed(self, graphs: Any, edge_merge: "EdgeMerge | None" = None) -> "Embedding":
        """Return the edge embeddings of the last layer, and h_C."""
        from cell_attention.nn.embedding import Embedding

        trace = self.trace(graphs, edge_merge)
        last = trace.layers[-1]
        return Embedding(last.features, trace.complexes.edge_complex[last.edges], trace.readout)

    def trace(self, graphs: Any, edge_merge: "EdgeMerge | None" = None) -> Trace:
        """Return the logits with all attention weights, pooling scores and kept edges."""
        complexes = self._checked(self.complexes_of(graphs, edge_merge))
        layers = tuple(self._layers(complexes))
        readout = self.read_out(complexes, layers)
        return Trace(self.logits(readout), complexes, layers, readout)

    def logits(self, readout: Tensor) -> Tensor:
        """(num_complexes, outputs) of the head, from h_C."""
        raise NotImplementedError

    def read_out(self, complexes: CellComplex, layers: tuple[LayerTrace, ...]) -> Tensor:
        """(num_complexes, ·) h_C from the layers that are read out."""
        raise NotImplementedError

    def _layers(self, complexes: CellComplex) -> Iterator[LayerTrace]:
        """Yield what every layer does, one after the other."""
        raise NotImplementedError

    def rescale_outputs(self, scale: Tensor, centre: Tensor) -> None:
        """Change the last layer of the head so that it returns outputs · scale + centre."""
        rescale(cast(nn.Linear, self.head[1]), scale, centre)

    def complexes_of(self, graphs: Any, edge_merge: "EdgeMerge | None" = None) -> CellComplex:
        """Return the input as complexes: as given, as carried by a loader's batch, or lifted.

        Graphs without features have their degrees in as many columns as this network reads.
        """
        found = graphs if isinstance(graphs, CellComplex) else getattr(graphs, "complexes", None)
        if isinstance(found, CellComplex):
            if edge_merge is not None:
                raise InputError("edge_merge is for graphs that are not lifted yet; these are")
            plain = found is not graphs and getattr(graphs, "x", None) is None
            return with_degrees(found, self.node_features) if plain else found
        from cell_attention.data.lifting import lift

        longest, degrees = self.config.max_polygon, self.node_features
        return lift(graphs, longest, edge_merge=edge_merge, degrees=degrees)

    def _checked(self, complexes: CellComplex) -> CellComplex:
        """Refuse features that this network was not made for."""
        if complexes.num_complexes == 0:  # of any width: there is nothing to check
            return self._nothing(complexes)
        given = complexes.edge_features
        expected = (
            ("node_features", complexes.node_features, self.node_features),
            ("edge_features", given, self.edge_features),
            ("complex_features", complexes.complex_features, self.complex_features),
        )
        weight, here = next(self.head.parameters()), complexes.edge_nodes.device
        if here != weight.device:
            raise InputError(f"the complexes are on {here}, the network on {weight.device}")
        for name, values, width in expected:
            got = 0 if values is None else values.size(-1)
            if got != width:
                raise InputError(f"{name} must have {width} columns, got {got}")
            if values is not None and not values.is_floating_point():
                raise InputError(
                    f"{name} must be floating point, got {values.dtype}; encode categories first"
                )
            if name == "complex_features":  # those that are not known are NaN
                continue
            if values is not None:
                values = values.to(weight.dtype)
            # A finite sum has finite terms: single values are checked only if it is not finite.
            if values is not None and not (values.sum().isfinite() or values.isfinite().all()):
                row = int((~values.isfinite()).any(1).nonzero()[0])
                raise InputError(f"{name} must be finite, row {row} is not")
        return complexes

    def _nothing(self, complexes: CellComplex) -> CellComplex:
        """Return zero complexes, with features as wide as this network needs them."""
        weight = next(self.head.parameters())
        edges, whole = (
            weight.new_zeros(0, width) if width else None
            for width in (self.edge_features, self.complex_features)
        )
        return replace(
            complexes,
            node_features=weight.new_zeros(0, self.node_features),
            edge_features=edges,
            complex_features=whole,
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


@torch.no_grad()
def rescale(last: nn.Linear, scale: Tensor, centre: Tensor) -> None:
    """Change a last layer so that it returns what it did · scale + centre."""
    last.weight.mul_(scale[:, None])
    last.bias.mul_(scale).add_(centre)
