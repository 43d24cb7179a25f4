"""NGN (de Haan et al. 2020), local: a message along an edge is computed by a graph convolution on
the neighbourhood of the edge, so that every edge has the kernel of its surroundings (GCN² there).
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.errors import InputError
from cell_attention.models.node_networks import both_ways
from cell_attention.models.perceptron import BatchNorm
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.functional import segment_mean, segment_sum
from cell_attention.topology.complex import CellComplex

LARGEST = 2_000_000
"""Pairs of adjacent nodes in all edge neighbourhoods of one graph, at most: dense graphs have too
many. No graph of PROTEINS has more than 140,000."""


@dataclass(frozen=True)
class Neighbourhoods:
    """The neighbourhoods of nodes and edges. That of node p is p and all nodes next to it; that of
    an edge p → q is both of these together, with all edges between them.
    """

    near: tuple[Tensor, Tensor]
    """(M,) p and a of every node a in the neighbourhood of a node p."""
    sent: Tensor
    """(R,) row (p, a) of every node a in the neighbourhood of an edge p → q; M if it is not p's."""
    heard: Tensor
    """(R,) row (q, a), or M."""
    marks: Tensor
    """(R, 2) whether a is p, and whether it is q."""
    pairs: Tensor
    """(2, L) rows (e, a) and (e, b) where a = b or a and b are adjacent."""

    @staticmethod
    def of(complexes: CellComplex) -> "Neighbourhoods":
        """Collect them for all complexes."""
        nodes, (p, q) = max(1, complexes.num_nodes), both_ways(complexes)
        alone = torch.arange(complexes.num_nodes, device=p.device)
        known = torch.cat([alone * nodes + alone, p * nodes + q]).sort().values
        centre, member = known // nodes, known % nodes
        count = centre.bincount(minlength=complexes.num_nodes)
        start = count.cumsum(0) - count
        each = [_spread(start[end], count[end]) for end in (p, q)]
        rows = torch.cat([edge * nodes + member[row] for edge, row in each]).unique()
        edge, a = rows // nodes, rows % nodes
        row, near = _spread(start[a], count[a])
        place = _find(rows, edge[row] * nodes + member[near])
        found = place < rows.size(0)
        return Neighbourhoods(
            (centre, member),
            _find(known, p[edge] * nodes + a),
            _find(known, q[edge] * nodes + a),
            torch.stack([a == p[edge], a == q[edge]], dim=1),
            torch.stack([row[found], place[found]]),
        )

    def shares(self, like: Tensor) -> Tensor:
        """Return (L, 1) the weights of a graph convolution, 1/√(d_a d_b) with d counted within the
        neighbourhood of the edge and with a itself.
        """
        degree = self.pairs[0].bincount(minlength=self.sent.size(0)).clamp(min=1).to(like.dtype)
        return (degree[self.pairs[0]] * degree[self.pairs[1]]).rsqrt()[:, None]


class NaturalLayer(nn.Module):
    """h_q ← W h_q + Σ_p m(p → q), where m(p → q) = Â relu(Â(W₁h_p + W₂[a = p, a = q] + b)) W₃ on
    the neighbourhood of p → q, read in that of q; h_p has a row for every node near p, itself too.
    """

    def __init__(self, fin: int, fout: int) -> None:
        super().__init__()
        self.own = nn.Linear(fin, fout)
        self.first = nn.Linear(fin, fout, bias=False)
        self.mark = nn.Linear(2, fout)
        self.second = nn.Linear(fout, fout, bias=False)

    def forward(self, near: Tensor, around: Neighbourhoods, shares: Tensor) -> Tensor:
        """near: (M, F_in) features of every node in the neighbourhood of every node."""
        (receiver, sender), rows = around.pairs, around.sent.size(0)
        given = functional.pad(self.first(near), (0, 0, 0, 1))  # a row of zeros: not in p's
        given = given.index_select(0, around.sent) + self.mark(around.marks.to(near.dtype))
        said = segment_sum(shares * given.index_select(0, sender), receiver, rows).relu()
        # The second convolution, summed over p at once and mapped once per row of q.
        target, count = around.heard.index_select(0, receiver), near.size(0)
        heard = segment_sum(shares * said.index_select(0, sender), target, count + 1)[:count]
        updated: Tensor = self.own(near) + self.second(heard)
        return updated


class NaturalNetwork(nn.Module):
    """Layers with norm and ReLU; before the first and after every layer, the features of a
    neighbourhood are averaged and the nodes of a graph summed, and the output is a sum of linear
    maps of these sums.

    Deviation: widths, norm, ReLU and readout are those of the other rivals.
    """

    def __init__(
        self, config: NetworkConfig, node_features: int, edge_features: int, outputs: int
    ) -> None:
        super().__init__()
        widths = [node_features + 1, *config.hidden]
        self.layers = nn.ModuleList(NaturalLayer(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(BatchNorm(width) for width in widths[1:])
        self.votes = nn.ModuleList(nn.Linear(width, outputs) for width in widths)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        require_sparse(complexes)
        around = Neighbourhoods.of(complexes)
        centre, member = around.near
        nodes = complexes.node_features
        near = torch.cat([nodes[member], (centre == member).to(nodes.dtype)[:, None]], dim=1)
        shares = around.shares(nodes)
        read = [near]
        for layer, norm in zip(self.layers, self.norms, strict=True):
            read.append(norm(layer(read[-1], around, shares)).relu())
        logits = nodes.new_zeros(())
        for vote, values in zip(self.votes, read, strict=True):
            mean = segment_mean(values, centre, complexes.num_nodes)
            total = segment_sum(mean, complexes.node_complex, complexes.num_complexes)
            logits = logits + self.dropout(vote(total))
        return logits


def require_sparse(complexes: CellComplex) -> dict[str, int]:
    """Refuse graphs whose edges have too large neighbourhoods; there are no further sizes."""
    (p, q), nodes = both_ways(complexes), complexes.num_nodes
    degree = p.bincount(minlength=nodes)
    around = segment_sum(degree[q] + 1, p, nodes) + degree + 1
    total = segment_sum(2 * degree * around, complexes.node_complex, complexes.num_complexes)
    too_many = (total > LARGEST).nonzero()[:, 0]
    if too_many.numel():
        graph = int(too_many[0])
        raise InputError(
            f"graph {graph} has up to {int(total[graph]):,} pairs of nodes in the neighbourhoods "
            f"of its edges; the model ngn takes graphs of at most {LARGEST:,}"
        )
    return {}


def _spread(start: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return (owner, row) of the rows start, …, start + count − 1 of every owner."""
    owner = torch.arange(count.size(0), device=count.device).repeat_interleave(count)
    first = (count.cumsum(0) - count)[owner]
    return owner, start[owner] + torch.arange(owner.size(0), device=count.device) - first


def _find(known: Tensor, wanted: Tensor) -> Tensor:
    """Return the rows of the wanted numbers among the known ones, which increase; else how many
    these are.
    """
    place = torch.searchsorted(known, wanted)
    padded = functional.pad(known, (0, 1), value=-1)
    return torch.where(padded[place] == wanted, place, known.size(0))
