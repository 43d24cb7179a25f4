"""CIN and SIN (Bodnar et al. 2021) and CIN++ (Giusti et al. 2023): isomorphism networks on cells of
every rank, without attention.

On the complex of a graph's chordless cycles this is CIN; where triangles are the only polygons,
on the clique complex up to dimension two, it is SIN. CIN++ adds messages between cells that share a
face.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.models.perceptron import perceptron
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.functional import segment_sum
from cell_attention.topology.complex import CellComplex

RANKS = 3


@dataclass(frozen=True)
class Incidences:
    """Boundaries: (2, ·) pairs (face, cell), for edges and for polygons."""

    pairs: tuple[Tensor, Tensor]
    sizes: tuple[int, int, int]
    """Number of cells of every rank."""

    @staticmethod
    def of(complexes: CellComplex) -> "Incidences":
        """Collect the incidences of all complexes."""
        edges = torch.arange(complexes.num_edges, device=complexes.device).repeat(2)
        ends = torch.stack([complexes.edge_nodes.flatten(), edges])
        sizes = complexes.num_nodes, complexes.num_edges, complexes.num_polygons
        return Incidences((ends, complexes.polygon_edges), sizes)

    def from_faces(self, rank: int, faces: Tensor) -> Tensor:
        """Sum over the boundary of every cell of this rank."""
        face, cell = self.pairs[rank - 1]
        return segment_sum(faces.index_select(0, face), cell, self.sizes[rank])

    def through_cofaces(self, rank: int, own: Tensor, above: Tensor) -> Tensor:
        """Compute Σ_{τ, δ} relu(own_τ + above_δ) at every cell σ of this rank, over all δ that σ
        bounds and all other τ that bound δ.

        All faces σ of one δ share the same terms, except for their own: the terms are summed once
        per δ and σ's own is subtracted, so that pairs of faces are never formed.
        """
        face, cell = self.pairs[rank]
        return _others(own, above, own_rows=face, shared_rows=cell)

    def through_faces(self, rank: int, own: Tensor, below: Tensor) -> Tensor:
        """Compute Σ_{τ, δ} relu(own_τ + below_δ) at every cell σ of this rank, over all δ on the
        boundary of σ and all other τ that δ bounds.
        """
        face, cell = self.pairs[rank - 1]
        return _others(own, below, own_rows=cell, shared_rows=face)


def _others(own: Tensor, shared: Tensor, *, own_rows: Tensor, shared_rows: Tensor) -> Tensor:
    """Sum relu(own + shared) over all incidences at the same shared cell, except for one's own."""
    terms = functional.relu(own.index_select(0, own_rows) + shared.index_select(0, shared_rows))
    whole = segment_sum(terms, shared_rows, shared.size(0))
    return segment_sum(whole.index_select(0, shared_rows) - terms, own_rows, own.size(0))


class IsomorphismLayer(nn.Module):
    """One rank of one layer: h ← U(B((1+ε)h + Σ faces) ‖ A((1+ε)h + Σ through cofaces)), ε = 0;
    the sum is zero for a rank without faces or cofaces.

    lower: whether U also reads C((1+ε)h + Σ through faces), as in CIN++.
    """

    def __init__(self, rank: int, fin: int, fout: int, *, lower: bool = False) -> None:
        super().__init__()
        self.rank, self.lower = rank, lower
        self.below = perceptron(fin, fout, fout)
        self.above = perceptron(fin, fout, fout)
        self.update = perceptron((3 if lower else 2) * fout, fout)
        if rank < RANKS - 1:  # W [h_τ ‖ h_δ] + b, multiplied per cell, not per pair
            self.sender = nn.Linear(fin, fin)
            self.coface = nn.Linear(fin, fin, bias=False)
        if lower:
            self.beside = perceptron(fin, fout, fout)
        if lower and rank > 0:
            self.neighbour = nn.Linear(fin, fin)
            self.face = nn.Linear(fin, fin, bias=False)

    def forward(self, cells: list[Tensor], incidences: Incidences) -> Tensor:
        """cells: features of every rank; return the new features of this rank."""
        rank, own = self.rank, cells[self.rank]
        below = above = own
        if rank > 0:
            below = own + incidences.from_faces(rank, cells[rank - 1])
        if rank < RANKS - 1:
            sent, coface = self.sender(own), self.coface(cells[rank + 1])
            above = own + incidences.through_cofaces(rank, sent, coface)
        heard = [self.below(below), self.above(above)]
        if self.lower:
            heard.append(self.beside(self._lower(cells, incidences)))
        new: Tensor = self.update(torch.cat(heard, dim=1))
        return new

    def _lower(self, cells: list[Tensor], incidences: Incidences) -> Tensor:
        """Return h + Σ relu(W[h_τ ‖ h_δ] + b) over the cells τ that share a face δ with each."""
        rank, own = self.rank, cells[self.rank]
        if rank == 0:
            return own
        sent, face = self.neighbour(own), self.face(cells[rank - 1])
        return own + incidences.through_faces(rank, sent, face)


class CellLayer(nn.Module):
    """One layer: all ranks, each computed from the features before the layer."""

    def __init__(self, fin: int, fout: int, *, lower: bool = False) -> None:
        super().__init__()
        self.ranks = nn.ModuleList(
            IsomorphismLayer(rank, fin, fout, lower=lower) for rank in range(RANKS)
        )

    def forward(self, cells: list[Tensor], incidences: Incidences) -> list[Tensor]:
        """cells: features of every rank."""
        return [rank(cells, incidences) for rank in self.ranks]


class CellIsomorphismNetwork(nn.Module):
    """Layers over all ranks; after every layer, the cells of each rank are summed for the readout.

    Deviation: Bodnar et al. start from sums of node features alone. Here edge features are appended
    to those of an edge, as in cell attention, and every rank has a linear map to the first width.
    """

    lower = False
    """Whether cells hear those that share a face with them, as in CIN++."""

    def __init__(
        self, config: NetworkConfig, node_features: int, edge_features: int, outputs: int
    ) -> None:
        super().__init__()
        wide = node_features + edge_features
        widths = [config.hidden[0], *config.hidden]
        self.embed = nn.ModuleList(
            nn.Linear(width, widths[0]) for width in (node_features, wide, wide)
        )
        self.layers = nn.ModuleList(CellLayer(*pair, lower=self.lower) for pair in pairwise(widths))
        read = sum(widths[1:])
        self.readout = nn.ModuleList(nn.Linear(read, 2 * widths[-1]) for _ in range(RANKS))
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(2 * widths[-1], outputs)

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        incidences = Incidences.of(complexes)
        cells = [
            embed(values)
            for embed, values in zip(self.embed, _given(complexes, incidences), strict=True)
        ]
        members = complexes.node_complex, complexes.edge_complex, complexes.polygon_complex
        read: list[list[Tensor]] = [[] for _ in range(RANKS)]
        for layer in self.layers:
            cells = layer(cells, incidences)
            for total, values, member in zip(read, cells, members, strict=True):
                total.append(segment_sum(values, member, complexes.num_complexes))
        whole = sum(
            functional.relu(readout(torch.cat(totals, dim=1)))
            for readout, totals in zip(self.readout, read, strict=True)
        )
        logits: Tensor = self.head(self.dropout(whole))
        return logits


class EnhancedCellIsomorphismNetwork(CellIsomorphismNetwork):
    """CIN++: edges also hear edges that share a node, polygons those that share an edge (Giusti et
    al. 2023).
    """

    lower = True


def _given(complexes: CellComplex, incidences: Incidences) -> list[Tensor]:
    """Return the input features of every rank: an edge has the sum over its nodes and its own
    features, a polygon the sum over its edges.
    """
    nodes = complexes.node_features
    edges = incidences.from_faces(1, nodes)
    if complexes.edge_features is not None:
        edges = torch.cat([edges, complexes.edge_features.to(edges.dtype)], dim=1)
    return [nodes, edges, incidences.from_faces(2, edges)]
