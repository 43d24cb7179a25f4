"""Masked cells: a network that predicts what was taken away from some cells from all the others.

    ŷ_c = W₂ relu(W₁ h_c + b₁) + b₂        h_c: the state of a masked cell c in the last layer

As in the masked-atom pretraining of Hu et al. 2020, on every rank. What a masked node or edge has
of its own becomes zeros, and so does the first state of a masked polygon, which is made from its
size; the edges at a masked node do not see its features either.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.nn.rank_network import RankNetwork
from cell_attention.topology.complex import CellComplex


@dataclass(frozen=True)
class Guess:
    """What the network makes of the masked cells of one rank."""

    logits: Tensor
    """(masked cells, values)"""
    cells: Tensor
    """(masked cells,) rows of these cells; pooling may have dropped some."""


class MaskedNetwork(nn.Module):
    """A network with a head on every rank whose values are to be predicted.

    values: how many values the cells of a rank have; 0 for a rank that is not predicted.
    """

    def __init__(self, network: CellAttentionNetwork, values: Sequence[int]) -> None:
        super().__init__()
        self.network = network
        width = network.config.widths[-1]
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, count))
            if count
            else nn.Identity()
            for count in values
        )

    def forward(self, complexes: CellComplex, masked: Sequence[Tensor | None]) -> list[Guess]:
        """masked: (cells,) mask of every rank, None for a rank that is not predicted; return the
        guesses of the other ranks, in their order.
        """
        given = complexes.edge_features
        hidden = replace(
            complexes,
            node_features=_zeroed(complexes.node_features, masked[0]),
            edge_features=None if given is None else _zeroed(given, masked[1]),
        )
        with self._without_sizes(masked[2]):
            *_, last = self.network._layers(hidden)
        nodes = torch.arange(complexes.num_nodes, device=complexes.device)
        states = (
            (last.nodes, nodes), (last.features, last.edges), (last.polygons, last.polygon_rows),
        )  # fmt: skip
        guesses = []
        for head, mask, (features, rows) in zip(self.heads, masked, states, strict=True):
            if mask is not None and features is not None and rows is not None:
                here = mask[rows]
                guesses.append(Guess(head(features[here]), rows[here]))
        return guesses

    @contextmanager
    def _without_sizes(self, masked: Tensor | None) -> Iterator[None]:
        """Let polygons begin at zeros, instead of at the vector of their size."""
        if masked is None or not isinstance(self.network, RankNetwork):
            yield
            return

        def forget(module: nn.Module, inputs: Any, cells: list[Tensor]) -> list[Tensor]:
            return [*cells[:2], _zeroed(cells[2], masked)]

        hook = self.network.start.register_forward_hook(forget)
        try:
            yield
        finally:
            hook.remove()


def predicted_ranks(network: CellAttentionNetwork) -> tuple[int, ...]:
    """Return the ranks whose cells have states in the last layer."""
    return network.config.ranks if isinstance(network, RankNetwork) else (1,)


def _zeroed(values: Tensor, masked: Tensor | None) -> Tensor:
    return values if masked is None else values.masked_fill(masked[:, None], 0.0)
