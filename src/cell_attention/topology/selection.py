"""Selection from a CellComplex: by complexes, by edges or by dimension."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import InputError, SelectionError

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex


@dataclass(frozen=True)
class Offsets:
    """(num_complexes + 1,) where the cells of each complex begin; computed once per complex."""

    nodes: Tensor
    edges: Tensor
    polygons: Tensor
    sides: Tensor
    """For the columns of `polygon_edges`: all edges of a polygon are in its complex."""

    @staticmethod
    def of(complexes: "CellComplex") -> "Offsets":
        """Compute them from the membership columns, which are sorted."""
        side_complex = complexes.polygon_complex[complexes.polygon_edges[1]]
        members = (complexes.node_complex, complexes.edge_complex, complexes.polygon_complex)
        borders = torch.arange(complexes.num_complexes + 1, device=complexes.device)
        return Offsets(
            *(torch.searchsorted(member, borders) for member in (*members, side_complex))
        )


def select(complexes: "CellComplex", chosen: Any) -> "CellComplex":
    """`complexes[chosen]`, by gathering rows, without a loop over complexes."""
    indices = _indices(chosen, complexes.num_complexes).to(complexes.device)
    start = complexes._offsets
    nodes, edges = _Rows(start.nodes, indices), _Rows(start.edges, indices)
    polygons, sides = _Rows(start.polygons, indices), _Rows(start.sides, indices)
    edge, polygon = complexes.polygon_edges[:, sides.rows]
    return replace(
        complexes,
        node_features=complexes.node_features[nodes.rows],
        edge_nodes=complexes.edge_nodes[:, edges.rows] + nodes.shift[edges.place],
        polygon_edges=torch.stack(
            [edge + edges.shift[sides.place], polygon + polygons.shift[sides.place]]
        ),
        polygon_signs=complexes.polygon_signs[sides.rows],
        node_complex=nodes.place,
        edge_complex=edges.place,
        polygon_complex=polygons.place,
        num_complexes=indices.size(0),
        edge_features=_rows(complexes.edge_features, edges.rows),
        polygon_features=_rows(complexes.polygon_features, polygons.rows),
        targets=_rows(complexes.targets, indices),
    )


class _Rows:
    """Rows of one kind of cell that belong to the chosen complexes, in the order of the choice."""

    def __init__(self, start: Tensor, chosen: Tensor) -> None:
        begin = start[chosen]
        lengths = start[chosen + 1] - begin
        fresh = lengths.cumsum(0) - lengths
        self.shift = fresh - begin
        """(K,) what to add to a cell's old number to get its new one."""
        self.place = torch.arange(chosen.size(0), device=start.device).repeat_interleave(lengths)
        """(·,) position in the choice, that is, the new complex of every row."""
        self.rows = torch.arange(self.place.size(0), device=start.device) - self.shift[self.place]
        """(·,) old number of every row."""


def _rows(values: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if values is None else values[rows]


def _indices(chosen: Any, size: int) -> Tensor:
    if isinstance(chosen, slice):
        return (
            torch.arange(size)[chosen]
            if (chosen.step or 1) > 0
            else torch.tensor(range(size)[chosen], dtype=torch.int64)
        )
    indices = _whole_numbers("an index of complexes", chosen, size)
    wrong = (indices < -size) | (indices >= size)
    if bool(wrong.any()):
        raise SelectionError(
            f"complex {int(indices[wrong][0])} does not exist: there are {size} complexes"
        )
    return torch.where(indices < 0, indices + size, indices)


def _whole_numbers(name: str, chosen: Any, size: int) -> Tensor:
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
    """`complexes.restrict(kept_edges)`."""
    kept = _whole_numbers("kept_edges", kept_edges, complexes.num_edges).to(complexes.device)
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
    intact = torch.ones_like(complexes.polygon_complex, dtype=torch.bool)
    intact[polygon[new_edge[edge] < 0]] = False
    new_polygon = intact.cumsum(0) - 1
    sides = intact[polygon]
    return replace(
        complexes,
        edge_nodes=complexes.edge_nodes[:, kept],
        polygon_edges=torch.stack([new_edge[edge[sides]], new_polygon[polygon[sides]]]),
        polygon_signs=complexes.polygon_signs[sides],
        edge_complex=complexes.edge_complex[kept],
        polygon_complex=complexes.polygon_complex[intact],
        edge_features=_rows(complexes.edge_features, kept),
        polygon_features=_rows(complexes.polygon_features, intact),
    )


def skeleton(complexes: "CellComplex", rank: int) -> "CellComplex":
    """`complexes.skeleton(rank)`."""
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
        polygon_features=_rows(complexes.polygon_features, complexes.polygon_complex[:0]),
    )
