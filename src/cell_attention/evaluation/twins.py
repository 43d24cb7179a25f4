"""Graphs that the Weisfeiler–Leman test cannot tell apart, which leak across folds."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cell_attention.topology.compiled import as_array
from cell_attention.topology.complex import CellComplex

Words = NDArray[np.uint64]


def signatures(complexes: CellComplex) -> Words:
    """Return (graphs,) one number per graph, the same for graphs that 1-WL with node features
    cannot tell apart.
    """
    nodes, graph = as_array(complexes.node_features), as_array(complexes.node_complex)
    small, large = as_array(complexes.edge_nodes)
    colours = np.unique(nodes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.uint64)
    total, known = _sums(_mixed(colours), graph, complexes.num_complexes), 0
    while np.unique(colours).size > known:
        known = np.unique(colours).size
        heard = np.zeros_like(colours)
        # A sum of hashes does not depend on the order of the neighbours.
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
    """Hash every number (the finaliser of SplitMix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def with_twin(marks: Words) -> int:
    """Count the graphs that have a twin in the data set."""
    _, place, count = np.unique(marks, return_inverse=True, return_counts=True)
    return int((count[place] > 1).sum())


def with_twin_in(marks: Words, held: Sequence[int], train: Sequence[int]) -> int:
    """Count the held-out graphs that have a twin among the training graphs."""
    return int(np.isin(marks[list(held)], marks[list(train)]).sum())
