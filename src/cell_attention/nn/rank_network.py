"""The network on every rank: features of all cells → (attention, update) × L → sums → head."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from cell_attention.nn.config import Kernel, NetworkConfig
from cell_attention.nn.descriptor_branch import DescriptorBranch
from cell_attention.nn.network import CellAttentionNetwork, LayerTrace, Trace, rescale
from cell_attention.nn.norm import NormedActivation
from cell_attention.nn.parts import build_part
from cell_attention.nn.rank_attention import RankAttention, Round
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.neighbourhoods import Side
from cell_attention.topology.selection import whole_polygons

if TYPE_CHECKING:
    from cell_attention.nn.surrounding_counts import SurroundingCounts
    from cell_attention.topology.graphs import EdgeMerge

RANKS = 3


class CellFeatures(nn.Module):
    """The first features of every cell, none of which depends on the numbering of nodes:

    nodes     W₀ x_v + b
    edges     MLP(W(x_i + x_j) + (U x_i) ⊙ (U x_j) + E f_e)
    polygons  a vector for each size; one for all that are longer than `max_polygon`
    """

    def __init__(
        self, config: NetworkConfig, node_features: int, edge_features: int, *, width: int,
        kernel: Kernel,
    ) -> None:  # fmt: skip
        super().__init__()
        self.width, self.longest = width, config.max_polygon + 1
        self.nodes = nn.Linear(node_features, 3 * width)
        """W₀, W and U, one below the other."""
        self.given = nn.Linear(edge_features, width, bias=False) if edge_features else None
        self.update = NormedActivation.from_config(config, width, kernel)
        self.edges = nn.Linear(width, width)
        self.sizes = nn.Embedding(self.longest - 2, width)

    def forward(self, complexes: CellComplex) -> list[Tensor]:
        """(cells, width) of every rank."""
        dtype = self.edges.weight.dtype
        nodes, plain, factor = self.nodes(complexes.node_features.to(dtype)).split(self.width, 1)
        # index_select, because the gradient of [] is several times slower on the CPU.
        (plain_i, factor_i), (plain_j, factor_j) = (
            (plain.index_select(0, ends), factor.index_select(0, ends))
            for ends in complexes.edge_nodes
        )
        edges = plain_i + plain_j + factor_i * factor_j
        if self.given is not None and complexes.edge_features is not None:
            edges = edges + self.given(complexes.edge_features.to(dtype))
        sizes = complexes.polygon_sizes.clamp(3, self.longest) - 3
        return [nodes.contiguous(), self.edges(self.update(edges)), self.sizes(sizes)]


class RankLayer(nn.Module):
    """One round of attention on all ranks; then, on each, a norm and φ, and with update "mlp" a
    linear map with another norm and φ.
    """

    def __init__(
        self, config: NetworkConfig, layer: int, in_channels: int, *, kernel: Kernel
    ) -> None:
        super().__init__()
        width = config.widths[layer]
        self.ranks = config.ranks
        self.attention = RankAttention(
            (in_channels,) * RANKS,
            config.hidden[layer],
            config.heads[layer],
            ranks=config.ranks,
            neighbourhoods=config.neighbourhoods,
            shared=config.shared_cell,
            weights=config.weights,
            activation=config.attention_activation,
            negative_slope=config.negative_slope,
            voices=config.voices,
            kernel=kernel,
        )
        parts: tuple[Callable[[], nn.Module], ...] = (
            lambda: NormedActivation.from_config(config, width, kernel),
            lambda: nn.Linear(width, width),
            lambda: NormedActivation.from_config(config, width, kernel),
        )
        self.deep = config.update == "mlp"
        self.first, self.linear, self.second = (
            nn.ModuleList(make() if rank in self.ranks else nn.Identity() for rank in range(RANKS))
            if place == 0 or self.deep
            else nn.ModuleList()
            for place, make in enumerate(parts)
        )

    def forward(self, cells: Sequence[Tensor], complexes: CellComplex, dropout: float) -> Round:
        """cells: (cells, in_channels) of every rank; dropout: share of the result to drop."""
        heard = self.attention(cells, complexes)
        updated = list(heard.cells)
        for rank in self.ranks:
            if self.deep:
                hidden = self.linear[rank](self.first[rank](updated[rank]))
                updated[rank] = self.second[rank](hidden, dropout)
            else:
                updated[rank] = self.first[rank](updated[rank], dropout)
        return Round(updated, heard.weights)


class RankNetwork(CellAttentionNetwork):
    """A network whose nodes, edges and polygons listen to each other (design "ranks").

    Before the first layer and after every one, the features of the cells of each rank are summed
    per complex; h_C is all of these sums side by side. The head normalises its hidden units,
    because sums grow with a graph. Pooling drops edges and then the polygons that lost one; nodes
    stay.
    """

    counts: "SurroundingCounts | None"

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
        super().__init__(
            config, node_features, edge_features, outputs, complex_features=complex_features,
            kernel=kernel,
        )  # fmt: skip
        widths = [config.widths[0], *config.widths]
        self.start = CellFeatures(
            config, node_features, edge_features, width=widths[0], kernel=kernel
        )
        self.layers = nn.ModuleList(
            RankLayer(config, layer, width, kernel=kernel)
            for layer, width in enumerate(widths[:-1])
        )
        self.pool = nn.ModuleList(
            build_part("pooling_layer", config.pooling_layer, width, config, width, kernel)
            if self.pools[layer]
            else nn.Identity()
            for layer, width in enumerate(widths[1:])
        )
        self._set_head(widths[-1])
        self.head_norm = NormedActivation.from_config(config, config.head_hidden, kernel)
        self.counts = None
        if config.counts:
            from cell_attention.nn.surrounding_counts import SurroundingCounts

            self.counts = SurroundingCounts(config, outputs, kernel)
        sizes = node_features, edge_features, complex_features
        self.descriptors = (
            DescriptorBranch(config, sizes, outputs, kernel=kernel)
            if complex_features or config.composition
            else None
        )

    def trace(self, graphs: Any, edge_merge: "EdgeMerge | None" = None) -> Trace:
        """Return the logits with all attention weights, pooling scores and kept edges.

        The weight of an upper pair is the sum over the polygons that both edges lie on.
        """
        trace = super().trace(graphs, edge_merge)
        logits = torch.stack(self.branches(trace)).mean(0)
        return replace(trace, logits=logits, layers=tuple(map(self._by_pairs, trace.layers)))

    def forward(self, graphs: Any, edge_merge: "EdgeMerge | None" = None) -> Tensor:
        """graphs: a CellComplex, or what `lift` takes; returns (num_complexes, outputs).

        edge_merge: as for `lift`, if the graphs are lifted here.
        """
        return torch.stack(self.branches(graphs, edge_merge)).mean(0)

    def branches(self, graphs: Any, edge_merge: "EdgeMerge | None" = None) -> tuple[Tensor, ...]:
        """Return the outputs of the head; with `counts`, those of the counts; and those of what
        complexes are as wholes, with `composition` or where they have features of their own.

        graphs: as for `forward`, or a trace whose logits are those of the head.

        The outputs of the network are their mean. In training each is held against the targets by
        itself: else the counts, which learn fastest, would leave the attention nothing to learn.
        """
        trace = graphs if isinstance(graphs, Trace) else super().trace(graphs, edge_merge)
        found = [trace.logits]
        if self.counts is not None:
            found.append(self.counts(trace.complexes))
        if self.descriptors is not None:
            found.append(self.descriptors(trace.complexes))
        return tuple(found)

    @property
    def num_branches(self) -> int:
        """Number of branches, whose mean is the output."""
        return 1 + (self.counts is not None) + (self.descriptors is not None)

    def learn_ranges(self, complexes: CellComplex) -> None:
        """Learn how the features of whole complexes are distributed; call it before training."""
        ranks = None if self.descriptors is None else self.descriptors.ranks
        if ranks is not None and complexes.complex_features is not None:
            ranks.learn(complexes.complex_features)

    def rescale_outputs(self, scale: Tensor, centre: Tensor) -> None:
        """Change the last layers so that the network returns outputs · scale + centre."""
        super().rescale_outputs(scale, centre)
        for branch in (self.counts, self.descriptors):
            if branch is not None:
                rescale(branch.last, scale, centre)

    def _by_pairs(self, layer: LayerTrace) -> LayerTrace:
        """Return the weights of triples as those of pairs; zeros where a side is not heard."""
        seen = layer.complexes

        def summed(side: Side, pairs: Tensor, weights: Tensor) -> Tensor:
            total = weights.new_zeros(pairs.size(1), weights.size(1))
            if not weights.size(0):
                return total
            receiver, sender, _ = seen.neighbourhood(1, side).triples
            keys = pairs[0] * seen.num_edges + pairs[1]
            row = torch.searchsorted(keys, receiver * seen.num_edges + sender)
            return total.index_add(0, row, weights)

        return replace(
            layer,
            lower=summed("lower", seen.lower_pairs, layer.lower),
            upper=summed("upper", seen.upper_pairs, layer.upper),
        )

    def logits(self, readout: Tensor) -> Tensor:
        """(num_complexes, outputs) of the head, from h_C."""
        rate = self.config.head_dropout if self.training else 0.0
        found: Tensor = self.head[1](self.head_norm(self.head[0](readout), rate))
        return found

    def _layers(self, complexes: CellComplex) -> Iterator[LayerTrace]:
        cells = self.start(complexes)
        before = tuple(cells)
        rate = self.config.dropout if self.training else 0.0
        device = complexes.edge_nodes.device
        alive = torch.arange(complexes.num_edges, device=device)
        polygons = torch.arange(complexes.num_polygons, device=device)
        for number, layer in enumerate(self.layers):
            last, seen, score = number == len(self.layers) - 1, complexes, None
            kept = torch.arange(complexes.num_edges, device=device)
            heard = layer(cells, complexes, rate)
            cells = heard.cells
            if self.pools[number]:
                pooled = self.pool[number](cells[1], complexes.edge_complex, len(complexes))
                cells[1], kept, score = pooled.edges, pooled.kept, pooled.score
                alive = alive[kept]
                if kept.size(0) < complexes.num_edges:
                    whole = whole_polygons(complexes, kept)
                    cells[2], polygons = cells[2][whole], polygons[whole]
                    complexes = complexes if last else complexes.restrict(kept)
            nothing = cells[1].new_zeros(0, self.config.heads[number])
            yield LayerTrace(
                seen, heard.weights.get("lower", nothing), heard.weights.get("upper", nothing),
                score, kept, alive, cells[1], cells[0], cells[2], polygons, before,
            )  # fmt: skip
            before = ()

    def read_out(self, complexes: CellComplex, layers: tuple[LayerTrace, ...]) -> Tensor:
        """(num_complexes, ·) h_C: the sums of the cells of every rank, before the first layer and
        after every one, side by side.
        """
        count, ranks = complexes.num_complexes, self.config.ranks
        members = complexes.node_complex, complexes.edge_complex, complexes.polygon_complex
        parts = []
        if self.config.pooling != "global":
            parts += [self.readout(layers[0].before[rank], members[rank], count) for rank in ranks]
        for layer in layers if self.config.pooling != "global" else layers[-1:]:
            cells = layer.nodes, layer.features, layer.polygons
            groups = members[0], members[1][layer.edges], members[2][layer.polygon_rows]
            parts += [self.readout(cells[rank], groups[rank], count) for rank in ranks]
        return torch.cat(parts, 1)
