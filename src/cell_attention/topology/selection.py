"""Selection from a CellComplex by edges or by dimension; `batches.py` selects complexes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import InputError, SelectionError

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex


def rows_of(values: Tensor | None, rows: Tensor) -> Tensor | None:
    """Take these rows of features, if there are any."""
    return None if values is None else values[rows]


def whole_numbers(name: str, chosen: Any, size: int) -> Tensor:
    """(K,) integers from an integer, a sequence of them, or a mask of `size` entries."""
    try:
        # A copy, because torch takes neither negative strides nor read-only arrays.
        values = (
            torch.tensor(chosen.copy())
            if isinstance(chosen, np.ndarray)
            else torch.as_tensor(chosen)
        )
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} must be integers or a mask, got {chosen!r:.60}") from None
    if values.dim() == 0 and values.dtype != torch.bool:
        values = values.unsqueeze(0)
    if values.dim() != 1:
        raise InputError(f"{name} must have one dimension, got shape {tuple(values.shape)}")
    if values.dtype == torch.uint8:
        raise InputError(f"{name} of type uint8 could be a mask or indices; use bool or int64")
    if values.dtype == torch.bool:
        if values.size(0) != size:
            raise InputError(
                f"{name} given as a mask must have {size} entries, got {values.size(0)}"
            )
        return values.nonzero().squeeze(1)
    if values.numel() == 0:
        return values.to(torch.int64)
    if values.is_floating_point() or values.is_complex():
        raise InputError(f"{name} must be integers or a mask, got {values.dtype}")
    return values.to(torch.int64)


def restrict(
    complexes: "CellComplex", kept_edges: Tensor | Sequence[int] | NDArray[Any]
) -> "CellComplex":
    """Keep these edges, all nodes, and the polygons that lost no edge (paper §3.4).

    kept_edges: (K,) indices, strictly increasing, or an (E,) mask.
    """
    kept = whole_numbers("kept_edges", kept_edges, complexes.num_edges).to(complexes.device)
    if kept.numel() and (int(kept[0]) < 0 or int(kept[-1]) >= complexes.num_edges):
        raise SelectionError(
            f"kept_edges must lie in 0…{complexes.num_edges - 1}, "
            f"got {int(kept[0])}…{int(kept[-1])}"
        )
    if not bool((kept[1:] > kept[:-1]).all()):
        raise InputError("kept_edges must increase strictly: rows keep their order, each once")
    edge, polygon = complexes.polygon_edges
    new_edge = torch.full_like(complexes.edge_complex, -1)
    new_edge[kept] = torch.arange(kept.size(0), device=kept.device)
    intact = whole_polygons(complexes, kept)
    new_polygon = intact.cumsum(0) - 1
    sides = intact[polygon]
    return replace(
        complexes,
        edge_nodes=complexes.edge_nodes[:, kept],
        polygon_edges=torch.stack([new_edge[edge[sides]], new_polygon[polygon[sides]]]),
        polygon_signs=complexes.polygon_signs[sides],
        edge_complex=complexes.edge_complex[kept],
        polygon_complex=complexes.polygon_complex[intact],
        edge_features=rows_of(complexes.edge_features, kept),
        polygon_features=rows_of(complexes.polygon_features, intact),
    )


def whole_polygons(complexes: "CellComplex", kept_edges: Tensor) -> Tensor:
    """(P,) mask of the polygons that lose no edge if only these edges are kept."""
    edge, polygon = complexes.polygon_edges
    lost = torch.ones_like(complexes.edge_complex, dtype=torch.bool)
    lost[kept_edges] = False
    whole = torch.ones_like(complexes.polygon_complex, dtype=torch.bool)
    whole[polygon[lost[edge]]] = False
    return whole


def without(complexes: "CellComplex", rank: int, gone: Tensor) -> "CellComplex":
    """Take cells of a rank away, with everything that they bound; gone: (cells,) mask."""
    if rank == 1:
        return restrict(complexes, ~gone)
    if rank == 2:
        stays = ~gone
        sides = stays[complexes.polygon_edges[1]]
        number = stays.cumsum(0) - 1
        edge, polygon = complexes.polygon_edges[:, sides]
        return replace(
            complexes,
            polygon_edges=torch.stack([edge, number[polygon]]),
            polygon_signs=complexes.polygon_signs[sides],
            polygon_complex=complexes.polygon_complex[stays],
            polygon_features=rows_of(complexes.polygon_features, stays),
        )
    if rank != 0:
        raise SelectionError(f"rank must be 0, 1 or 2, got {rank}")
    left = restrict(complexes, ~gone[complexes.edge_nodes].any(0))
    number = (~gone).cumsum(0) - 1
    return replace(
        left,
        node_features=left.node_features[~gone],
        node_complex=left.node_complex[~gone],
        edge_nodes=number[left.edge_nodes],
    )


def skeleton(complexes: "CellComplex", rank: int) -> "CellComplex":
    """Return the cells of dimension at most `rank` (paper Def. 2)."""
    if rank not in (0, 1, 2):
        raise SelectionError(f"rank must be 0, 1 or 2, got {rank}")
    if rank == 0:
        return restrict(complexes, np.empty(0, np.int64))
    if rank == 2:
        return complexes
    return replace(
        complexes,
        polygon_edges=complexes.polygon_edges[:, :0],
        polygon_signs=complexes.polygon_signs[:0],
        polygon_complex=complexes.polygon_complex[:0],
        polygon_features=rows_of(complexes.polygon_features, complexes.polygon_complex[:0]),
    )
