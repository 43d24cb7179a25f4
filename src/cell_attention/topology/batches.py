"""Selection of complexes: `complexes[indices]` is a batch, gathered without a loop over them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cell_attention.errors import SelectionError
from cell_attention.topology.selection import rows_of, whole_numbers

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
    """`complexes[chosen]`, by gathering rows."""
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
        edge_features=rows_of(complexes.edge_features, edges.rows),
        polygon_features=rows_of(complexes.polygon_features, polygons.rows),
        complex_features=rows_of(complexes.complex_features, indices),
        targets=rows_of(complexes.targets, indices),
        target_bounds=rows_of(complexes.target_bounds, indices),
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


def _indices(chosen: Any, size: int) -> Tensor:
    if isinstance(chosen, slice):
        return (
            torch.arange(size)[chosen]
            if (chosen.step or 1) > 0
            else torch.tensor(range(size)[chosen], dtype=torch.int64)
        )
    indices = whole_numbers("an index of complexes", chosen, size)
    wrong = (indices < -size) | (indices >= size)
    if bool(wrong.any()):
        raise SelectionError(
            f"complex {int(indices[wrong][0])} does not exist: there are {size} complexes"
        )
    return torch.where(indices < 0, indices + size, indices)
