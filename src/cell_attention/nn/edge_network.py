"""The paper's network, on edges alone: lift → (attention → pooling → readout) × L → head (§3.5)."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from cell_attention.errors import InputError
from cell_attention.nn.activated_norm import ActivatedNorm
from cell_attention.nn.config import Kernel, NetworkConfig
from cell_attention.nn.dropout import Dropout
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.functional import segment_sum
from cell_attention.nn.kernels.attention import Neighbours
from cell_attention.nn.lift import AttentionalLift
from cell_attention.nn.network import CellAttentionNetwork, LayerTrace
from cell_attention.nn.parts import build_part
from cell_attention.topology.complex import CellComplex


class EdgeNetwork(CellAttentionNetwork):
    """A network whose edges listen to each other (design "paper").

    A graph without edges is read out as zeros and still gets a prediction.

    Deviation: dropout acts on the input of every attention layer and inside the head. The paper has
    a rate per data set and does not say where it acts.
    Deviation: readouts are those of layers 1…L. App. A counts them from 0 to L−1, but the output of
    the lift has another width and could not be summed.
    Deviation: nothing is normalised inside the head. App. A normalises "in all layers", but for
    the head it names only two layers and φ.
    """

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
        super().__init__(config, node_features, edge_features, outputs, kernel=kernel)
        if complex_features:
            raise InputError(
                "design 'paper' reads no features of whole complexes: complex_features must be 0, "
                f"got {complex_features}"
            )
        slope = config.negative_slope
        self.lift = AttentionalLift(
            node_features, config.lift_heads, config.lift, activation=config.lift_activation,
            negative_slope=slope, dropout=config.lift_dropout, kernel=kernel,
        )  # fmt: skip
        widths = [self.lift.out_channels + edge_features, *config.widths]
        # h̃ = BN(φ(h)): φ of an attention layer is computed together with the norm after it.
        self.norms = nn.ModuleList(
            ActivatedNorm(
                width,
                config.norm,
                config.activation if place else "identity",
                negative_slope=slope,
                kernel=kernel,
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
            if self.pools[layer]
            else nn.Identity()
            for layer, width in enumerate(widths[1:])
        )
        self.dropout = Dropout(config.dropout, kernel)
        self.node_sum: nn.Module | None = None
        if config.node_readout:
            self.node_sum = nn.Linear(node_features, config.node_readout, bias=False)
        self.activation = pointwise(config.activation, slope)
        self._set_head(widths[-1])

    def _layers(self, complexes: CellComplex) -> Iterator[LayerTrace]:
        nodes = complexes.node_features.to(next(self.head.parameters()).dtype)
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
            last, pools = layer == len(self.attention) - 1, self.pools[layer]
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

    def logits(self, readout: Tensor) -> Tensor:
        """(num_complexes, outputs) of the head, from h_C."""
        hidden = self.dropout(self.activation(self.head[0](readout)))
        found: Tensor = self.head[1](hidden)
        return found
