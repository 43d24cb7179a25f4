"""Pairs of edges in the form that the attention kernels read: by receiver, by sender, in blocks."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import InputError
from cell_attention.topology.compiled import compiled, index_array

Integers = NDArray[np.int64]


class Neighbours:
    """The pairs (2, ·) of one or more neighbourhoods of the same edges, each sorted by receiver.

    Everything is computed at first use, once for all layers that see the same complex.
    """

    def __init__(self, num_edges: int, *pairs: Tensor) -> None:
        self.num_edges, self.pairs = num_edges, pairs

    @cached_property
    def sorted(self) -> bool:
        """Whether every neighbourhood's pairs are sorted by receiver."""
        return all(bool((pairs[0, 1:] >= pairs[0, :-1]).all()) for pairs in self.pairs)

    @cached_property
    def heard(self) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
        """Of every neighbourhood (E + 1,) where the pairs of each receiver begin, and (M,) the
        senders.
        """
        starts, senders = [], []
        for pairs in self.pairs:
            receivers, others = index_array("pairs", pairs, (self.num_edges,) * 2)
            start = _starts(receivers, self.num_edges)
            if start[0] < 0:
                raise InputError("pairs must be sorted by receiver for the fused kernel")
            starts.append(start)
            senders.append(others)
        return tuple(starts), tuple(senders)

    @cached_property
    def hearers(self) -> tuple[tuple[Integers, ...], ...]:
        """The same by sender: (E + 1,) beginnings, (M,) receivers, (M,) which pair each one is."""
        begins, receivers, orders = zip(*map(_reversed, *self.heard), strict=True)
        return begins, receivers, orders

    @cached_property
    def _cuts(self) -> Integers:
        """Edges before which the list can be cut without separating two that hear each other."""
        cuts: Integers = _cuts(*self.heard)
        return cuts

    def blocks(self, rows: int) -> Integers:
        """Return the borders of blocks of at least `rows` edges that hear only each other."""
        blocks: Integers = _blocks(self._cuts, rows)
        return blocks


@compiled
def _starts(receivers: Any, num_edges: int) -> Any:
    """(E + 1,) where the pairs of every receiver begin; the first is -1 if they are not sorted."""
    start = np.zeros(num_edges + 1, np.int64)
    for j in range(receivers.size):
        if j > 0 and receivers[j] < receivers[j - 1]:
            start[0] = -1
            return start
        start[receivers[j] + 1] += 1
    for e in range(num_edges):
        start[e + 1] += start[e]
    return start


@compiled
def _reversed(start: Any, senders: Any) -> Any:
    num_edges = start.size - 1
    begin = np.zeros(num_edges + 1, np.int64)
    for j in range(senders.size):
        begin[senders[j] + 1] += 1
    for e in range(num_edges):
        begin[e + 1] += begin[e]
    free = begin[:-1].copy()
    receivers, order = np.empty_like(senders), np.empty_like(senders)
    for e in range(num_edges):
        for j in range(start[e], start[e + 1]):
            place = free[senders[j]]
            receivers[place], order[place] = e, j
            free[senders[j]] += 1
    return begin, receivers, order


@compiled
def _cuts(starts: Any, senders: Any) -> Any:
    num_edges = starts[0].size - 1
    farthest = np.arange(num_edges)
    for s in range(len(starts)):
        start, others = starts[s], senders[s]
        for e in range(num_edges):
            for j in range(start[e], start[e + 1]):
                low, high = min(e, others[j]), max(e, others[j])
                farthest[low] = max(farthest[low], high)
    cuts = np.empty(num_edges + 1, np.int64)
    cuts[0] = found = reach = 0
    for e in range(num_edges):
        reach = max(reach, farthest[e])
        if reach == e:
            found += 1
            cuts[found] = e + 1
    return cuts[: found + 1]


@compiled
def _blocks(cuts: Any, rows: int) -> Any:
    blocks = np.empty_like(cuts)
    blocks[0] = last = 0
    for c in range(1, cuts.size):
        if cuts[c] - blocks[last] >= rows or c == cuts.size - 1:
            last += 1
            blocks[last] = cuts[c]
    return blocks[: last + 1]
