"""Colours of nodes: equal where the surroundings of two nodes look alike (Weisfeiler–Leman).

Round 0 colours a node by its features. In every further round a node takes a new colour from its
own and from the multiset of (colour of the edge, colour of its other end) around it, so that the
colour after r rounds stands for all that can be seen within r steps: the identifiers of Morgan
(1965) and the subtree patterns of Weisfeiler and Leman (1968). A colour is a hash of 64 bits; sums
over neighbours wrap around and do not depend on any order.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cell_attention.errors import InputError
from cell_attention.topology.compiled import as_array, compiled

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex

Colours = NDArray[np.uint64]


def node_colours(complexes: "CellComplex", rounds: int) -> Colours:
    """(rounds + 1, N) colours of all nodes after every round."""
    if type(rounds) is not int or rounds < 0:
        raise InputError(f"rounds must be a whole number of at least 0, got {rounds!r}")
    colours = np.empty((rounds + 1, complexes.num_nodes), np.uint64)
    _count(*_bits(complexes), colours, np.zeros(1, np.int64))
    return colours


def row_hashes(features: Any) -> Colours:
    """(rows,) a hash of every row of features; equal rows have equal hashes."""
    found = np.empty(features.size(0), np.uint64)
    _hash_rows(_feature_bits(features), found)
    return found


def surroundings(complexes: "CellComplex", rounds: int) -> tuple[NDArray[np.int64], Colours]:
    """Return codes for what is around the nodes of every complex, complex after complex, and where
    those of each begin and the last ones end: (complexes + 1,) and (N · (rounds + 1),).

    The k-th node of a complex that has a colour gets the code of (round, colour, k): two complexes
    share as many codes as the smaller of their counts of every colour, summed (the kernel of
    Kriege, Giscard and Wilson 2016).
    """
    sizes = np.bincount(as_array(complexes.node_complex), minlength=complexes.num_complexes)
    start = np.append(0, sizes.cumsum())
    colours = np.empty((rounds + 1, complexes.num_nodes), np.uint64)
    return start * (rounds + 1), _count(*_bits(complexes), colours, start)


def rounds_in_common(complexes: "CellComplex", rounds: int, share: float) -> int:
    """Return after how many rounds, of at most this many, at least this share of the nodes still
    has a colour that a node of another complex has too; of fewer nodes, after one round.
    """
    owner, found = as_array(complexes.node_complex), 1
    if not len(owner):
        return rounds
    for number, colours in enumerate(node_colours(complexes, rounds)[2:], 2):
        order = colours.argsort(kind="stable")  # of one colour the complexes come in their order
        first = np.flatnonzero(np.diff(colours[order], prepend=~colours[order[:1]]))
        last = np.append(first[1:], len(order)) - 1
        common = owner[order[first]] != owner[order[last]]
        if (last - first + 1)[common].sum() < share * len(order):
            break
        found = number
    return min(found, rounds)


def _bits(complexes: "CellComplex") -> tuple[Any, Any, Any]:
    """Return the bits of the features of nodes and of edges, and the ends of edges."""
    edge_features = complexes.edge_features
    if edge_features is None:
        edge_features = complexes.node_features.new_empty(complexes.num_edges, 0)
    nodes, edges = map(_feature_bits, (complexes.node_features, edge_features))
    return nodes, edges, complexes._edge_array


def _feature_bits(features: Any) -> Any:
    """Return the bits of features in single precision, so that colours are the same in both
    precisions; + 0 turns a negative zero into zero.
    """
    return (as_array(features.float()) + np.float32(0)).view(np.uint32)


@compiled
def _refine(nodes: Any, edges: Any, edge_nodes: Any, colours: Any) -> None:
    """Fill the rows of `colours`, from the bits of the features of nodes and edges."""
    _hash_rows(nodes, colours[0])
    bonds = np.empty(edges.shape[0], np.uint64)
    _hash_rows(edges, bonds)
    for r in range(1, colours.shape[0]):
        heard = np.full(colours.shape[1], r, np.uint64)
        for e in range(edge_nodes.shape[1]):
            i, j = edge_nodes[0, e], edge_nodes[1, e]
            heard[i] += _mixed(colours[r - 1, j] * np.uint64(3) + bonds[e])
            heard[j] += _mixed(colours[r - 1, i] * np.uint64(3) + bonds[e])
        for v in range(colours.shape[1]):
            own = colours[r - 1, v] * np.uint64(0x9E3779B97F4A7C15)
            colours[r, v] = _mixed(own + heard[v])


@compiled
def _hash_rows(bits: Any, found: Any) -> None:
    """Hash every row; zeros are passed over, because most features are one-hot."""
    for row in range(bits.shape[0]):
        total = np.uint64(1)
        for column in range(bits.shape[1]):
            if bits[row, column] != 0:
                place = np.uint64(column + 1) << np.uint64(32)
                total += _mixed(place | np.uint64(bits[row, column]))
        found[row] = _mixed(total)


@compiled
def _mixed(value: Any) -> Any:
    """Return a hash in which every bit depends on all bits of the value (splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _count(nodes: Any, edges: Any, edge_nodes: Any, colours: Any, start: Any) -> Any:
    """Fill `colours` and return the codes of the complexes whose nodes begin at `start`."""
    _refine(nodes, edges, edge_nodes, colours)
    rounds = colours.shape[0]
    codes = np.empty(rounds * start[-1], np.uint64)
    at = 0
    for g in range(start.size - 1):
        for r in range(rounds):
            place, before = np.uint64(0), np.uint64(0)
            for colour in np.sort(colours[r, start[g] : start[g + 1]]):
                place = place + np.uint64(1) if place > 0 and colour == before else np.uint64(1)
                before = colour
                codes[at] = _mixed(colour + _mixed(place * np.uint64(31) + np.uint64(r)))
                at += 1
    return codes
