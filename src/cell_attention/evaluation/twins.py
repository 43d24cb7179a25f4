"""Graphs that the Weisfeiler–Leman test cannot tell apart: what a data set leaks across folds."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cell_attention.topology.compiled import as_array
from cell_attention.topology.complex import CellComplex

Words = NDArray[np.uint64]


def signatures(complexes: CellComplex) -> Words:
    """(graphs,) one number per graph; graphs that 1-WL with node features cannot tell apart have
    the same.
    """
    nodes, graph = as_array(complexes.node_features), as_array(complexes.node_complex)
    small, large = as_array(complexes.edge_nodes)
    colours = np.unique(nodes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.uint64)
    total, known = _sums(_mixed(colours), graph, complexes.num_complexes), 0
    while np.unique(colours).size > known:
        known = np.unique(colours).size
        heard = np.zeros_like(colours)
        # Sums of mixed numbers: the same for the same neighbours, in whatever order.
        np.add.at(heard, small, _mixed(colours[large]))
        np.add.at(heard, large, _mixed(colours[small]))
        colours = _mixed(_mixed(colours) + heard)
        total = _mixed(total) + _sums(_mixed(colours), graph, complexes.num_complexes)
    return total


def _sums(values: Words, group: NDArray[np.int64], count: int) -> Words:
    sums = np.zeros(count, np.uint64)
    np.add.at(sums, group, values)
    return sums


def _mixed(values: Words) -> Words:
    """Every bit of a number spread over all of it (the finaliser of SplitMix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def with_twin(marks: Words) -> int:
    """How many graphs have a twin in the set."""
    _, place, count = np.unique(marks, return_inverse=True, return_counts=True)
    return int((count[place] > 1).sum())


def with_twin_in(marks: Words, held: Sequence[int], train: Sequence[int]) -> int:
    """How many held-out graphs have a twin among those that train."""
    return int(np.isin(marks[list(held)], marks[list(train)]).sum())
