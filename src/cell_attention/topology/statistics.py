"""Counts that describe a set of complexes: the paper's Table 1, pairs and isolated cells."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cell_attention.topology.complex import CellComplex


@dataclass(frozen=True)
class Statistics:
    """Totals over all complexes; pairs are directed, each unordered pair counts twice."""

    num_complexes: int
    num_nodes: int
    num_edges: int
    num_polygons: int
    node_features: int
    """Width of the node features."""
    edge_features: int
    """Width of the edge features, 0 if there are none."""
    polygon_sizes: dict[int, int]
    """How many polygons have 3, 4, … edges."""
    lower_pairs: int
    upper_pairs: int
    edges_without_lower_pair: int
    edges_without_upper_pair: int
    isolated_nodes: int
    complexes_without_edge: int
    complexes_without_polygon: int


def statistics(complexes: CellComplex, max_polygon: int) -> Statistics:
    """Count everything; polygon sizes are listed up to the largest that occurs, at least to 6."""
    sizes = torch.bincount(complexes.polygon_sizes, minlength=min(max_polygon, 6) + 1).tolist()
    lower, upper = complexes.lower_pairs, complexes.upper_pairs
    features = complexes.edge_features
    return Statistics(
        num_complexes=complexes.num_complexes,
        num_nodes=complexes.num_nodes,
        num_edges=complexes.num_edges,
        num_polygons=complexes.num_polygons,
        node_features=complexes.node_features.size(1),
        edge_features=0 if features is None else features.size(1),
        polygon_sizes={size: sizes[size] for size in range(3, len(sizes))},
        lower_pairs=lower.size(1),
        upper_pairs=upper.size(1),
        edges_without_lower_pair=complexes.num_edges - _distinct(lower[0]),
        edges_without_upper_pair=complexes.num_edges - _distinct(upper[0]),
        isolated_nodes=complexes.num_nodes - _distinct(complexes.edge_nodes),
        complexes_without_edge=complexes.num_complexes - _distinct(complexes.edge_complex),
        complexes_without_polygon=complexes.num_complexes - _distinct(complexes.polygon_complex),
    )


def _distinct(values: Tensor) -> int:
    return int(torch.unique(values).numel())
