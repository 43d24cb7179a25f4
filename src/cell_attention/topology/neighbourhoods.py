"""Who hears whom, and through which cell that both share (paper §2), on every rank.

Two cells of one rank hear each other through every cell that both are incident to: nodes through an
edge, edges through a node or a polygon, polygons through an edge. What a cell says depends on
itself and on the shared cell, that is on an incidence, and not on who hears it. A neighbourhood is
therefore a list of incidences and, for every receiver, which of them it hears.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from cell_attention.errors import InputError, LimitError
from cell_attention.topology.compiled import compiled, index_array

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex

Side = Literal["lower", "upper"]
BLOCK = 4096
"""Incidences in a block of small complexes: what they say stays in the cache while it is heard."""


@dataclass(frozen=True)
class Neighbourhood:
    """The triples (receiver, sender, shared cell) of one rank and side."""

    sender: Tensor
    """(I,) the cell that speaks, of every incidence."""
    shared: Tensor
    """(I,) the cell through which it speaks."""
    start: Tensor
    """(cells + 1,) where the triples of every receiver begin."""
    heard: Tensor
    """(M,) the incidence that every triple hears; triples are sorted by receiver."""
    blocks: Tensor
    """(2, B + 1) borders of blocks of receivers and of incidences: the receivers of a block hear
    only the incidences of the same block."""

    @property
    def receiver(self) -> Tensor:
        """(M,) the cell that hears, of every triple."""
        cells = torch.arange(self.start.size(0) - 1, device=self.start.device)
        return cells.repeat_interleave(self.start.diff())

    @property
    def triples(self) -> Tensor:
        """(3, M) rows (receiver, sender, shared cell)."""
        return torch.stack([self.receiver, self.sender[self.heard], self.shared[self.heard]])


def neighbourhood(complexes: "CellComplex", rank: int, side: Side) -> Neighbourhood:
    """Return the neighbourhood of a rank: lower through cells of rank − 1, upper of rank + 1.

    Two edges that share several polygons hear each other once through each.
    """
    sizes = complexes.num_nodes, complexes.num_edges, complexes.num_polygons
    through = rank + (1 if side == "upper" else -1)
    if side not in ("lower", "upper") or not (0 <= rank <= 2 and 0 <= through <= 2):
        raise InputError(
            "a neighbourhood must be (0, 'upper'), (1, 'lower'), (1, 'upper') or (2, 'lower'), "
            f"got ({rank}, {side!r})"
        )
    if {rank, through} == {0, 1}:
        faces = complexes.edge_nodes.t().reshape(-1)
        cells = torch.arange(complexes.num_edges, device=faces.device).repeat_interleave(2)
    else:
        faces, cells = complexes.polygon_edges
    sender, shared = (cells, faces) if side == "lower" else (faces, cells)
    bounds = sizes[rank], sizes[through]
    arrays = index_array("incidences", torch.stack([sender, shared]), bounds)
    heard = _heard(arrays[0], arrays[1], *bounds, BLOCK)
    return Neighbourhood(
        sender.contiguous(),
        shared.contiguous(),
        *(torch.from_numpy(array).to(sender.device) for array in heard),
    )


def incidences(complexes: "CellComplex", rank: int, other: int) -> tuple[Tensor, Tensor]:
    """(I,) cells of a rank and (I,) those of a neighbouring rank that they are incident to."""
    near = complexes.neighbourhood(min(rank, other), "upper")
    return (near.sender, near.shared) if rank < other else (near.shared, near.sender)


@compiled
def _lists(of: Any, count: int) -> Any:
    """(count + 1,) offsets and (I,) incidences of every cell, increasing."""
    start = np.zeros(count + 1, np.int64)
    for i in range(of.size):
        start[of[i] + 1] += 1
    for cell in range(count):
        start[cell + 1] += start[cell]
    end = start[:-1].copy()
    found = np.empty(of.size, np.int64)
    for i in range(of.size):
        found[end[of[i]]] = i
        end[of[i]] += 1
    return start, found


@compiled
def _blocks(start: Any, heard: Any, num_incidences: int, size: int) -> Any:
    """(2, B + 1) borders of blocks of at least `size` incidences, as far as they can be cut: before
    a receiver, if all that is heard up to there comes before all that is heard from there on.
    """
    receivers = start.size - 1
    next_heard = np.empty(receivers + 1, np.int64)  # the first incidence heard from here on
    next_heard[receivers] = num_incidences
    for r in range(receivers - 1, -1, -1):
        next_heard[r] = next_heard[r + 1]
        for j in range(start[r], start[r + 1]):
            next_heard[r] = min(next_heard[r], heard[j])
    borders = np.zeros((2, receivers + 2), np.int64)
    last = reach = 0
    for r in range(receivers):
        for j in range(start[r], start[r + 1]):
            reach = max(reach, heard[j] + 1)
        if reach <= next_heard[r + 1] and next_heard[r + 1] - borders[1, last] >= size:
            last += 1
            borders[0, last], borders[1, last] = r + 1, next_heard[r + 1]
    if borders[0, last] < receivers or borders[1, last] < num_incidences:
        last += 1
    borders[0, last], borders[1, last] = receivers, num_incidences
    return borders[:, : last + 1].copy()


@compiled
def _heard(sender: Any, shared: Any, num_cells: int, num_shared: int, size: int) -> Any:
    """(cells + 1,) where the triples of every receiver begin, (M,) the incidences they hear, which
    are all of its shared cells but its own, and the borders of blocks of at least `size`.
    """
    first, own = _lists(sender, num_cells)
    begin, members = _lists(shared, num_shared)
    start = np.zeros(num_cells + 1, np.int64)
    for r in range(num_cells):
        start[r + 1] = start[r]
        for j in range(first[r], first[r + 1]):
            c = shared[own[j]]
            start[r + 1] += begin[c + 1] - begin[c] - 1
    heard = np.empty(start[num_cells], np.int64)
    at = 0
    for r in range(num_cells):
        for j in range(first[r], first[r + 1]):
            c = shared[own[j]]
            for i in range(begin[c], begin[c + 1]):
                if members[i] != own[j]:
                    heard[at] = members[i]
                    at += 1
    return start, heard, _blocks(start, heard, sender.size, size)


def check_pairs(side: str, counts: Any, most: int) -> None:
    """Refuse a graph with more than `most` pairs of edges on one side.

    counts: (graphs,) array of the pairs, Σ d (d − 1) over the numbers d of edges at every node
    (lower) or of every polygon (upper: once per polygon that supports a pair).
    """
    if counts.size and counts.max() > most:
        graph = int(counts.argmax())
        raise LimitError(
            f"graph {graph} has {int(counts[graph]):,} {side} pairs of edges, more than {most:,}; "
            "raise Limits.pairs if they fit into memory"
        )
