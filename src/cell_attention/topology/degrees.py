"""Features of nodes that have none: their degrees."""

from dataclasses import replace

import torch

from cell_attention.topology.complex import CellComplex

MOST_DEGREES = 64
"""Largest number of columns; all larger degrees share the last one."""


def with_degrees(complexes: CellComplex, columns: int | None = None) -> CellComplex:
    """Replace the node features by (N, columns) one-hot degrees; larger degrees share the last
    column.

    columns: by default the largest degree and one more, at most 64.
    """
    degree = torch.bincount(complexes.edge_nodes.flatten(), minlength=complexes.num_nodes)
    if columns is None:
        columns = min(MOST_DEGREES, int(degree.max()) + 1) if degree.numel() else 1
    hot = torch.nn.functional.one_hot(degree.clamp(max=columns - 1), columns)
    return replace(complexes, node_features=hot.to(torch.get_default_dtype()))
