"""`CellComplex`: one or many complexes of nodes, edges and polygons in one structure of tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import DataError, InputError
from cell_attention.topology.algebra import adjacency, boundary, coboundary, incidence, laplacian
from cell_attention.topology.compiled import index_array
from cell_attention.topology.limits import LIMITS, Limits
from cell_attention.topology.neighbourhoods import Neighbourhood, Side, neighbourhood
from cell_attention.topology.pairs import lower_pairs, upper_pairs
from cell_attention.topology.selection import restrict, skeleton
from cell_attention.topology.target_bounds import check_bounds, exact_targets

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cell_attention.topology.batches import Offsets


@dataclass(frozen=True, eq=False, repr=False)
class CellComplex:
    """A disjoint union of regular cell complexes of dimension two (paper §2), never mutated.

    A graph is a CellComplex of one, a data set one of thousands, a batch is `complexes[indices]`.
    Cells have one canonical order that features, incidence and pairs share: edges by (complex,
    smaller node, larger node), polygons by (complex, size, node sequence). Make one with `lift`,
    `from_cells` or `load`: the constructor checks shapes, not contents.
    """

    node_features: Tensor
    """(N, Fn)."""
    edge_nodes: Tensor
    """(2, E) end nodes of every edge, the smaller first: the edge points to the larger."""
    polygon_edges: Tensor
    """(2, ·) rows (edge, polygon), sorted by polygon. The edges of a polygon follow a walk from
    its smallest node towards that node's smaller neighbour; the walk also orients the polygon.
    """
    polygon_signs: Tensor
    """(·,) int8: +1 where the walk goes along the edge's own direction, −1 where against it."""
    node_complex: Tensor
    """(N,) complex of every node, non-decreasing."""
    edge_complex: Tensor
    """(E,) complex of every edge, non-decreasing."""
    polygon_complex: Tensor
    """(P,) complex of every polygon, non-decreasing."""
    num_complexes: int
    """Number of complexes, including those without any cell."""
    edge_features: Tensor | None = None
    """(E, Fe), or None."""
    polygon_features: Tensor | None = None
    """(P, Fp), or None."""
    complex_features: Tensor | None = None
    """(num_complexes, Fc) features of whole complexes, such as descriptors of molecules, or None;
    NaN where one is not known."""
    targets: Tensor | None = None
    """(num_complexes, …) classes as integers or values as floats, or None."""
    target_bounds: Tensor | None = None
    """As `targets`, int8: 1 where the value is at least the target, −1 where it is at most the
    target, 0 where it is the target; None if no target is a bound."""

    def __post_init__(self) -> None:
        expected = {
            "node_features": (self.num_nodes, "F"),
            "edge_nodes": (2, self.num_edges),
            "polygon_edges": (2, self.polygon_signs.size(0)),
            "edge_features": (self.num_edges, "F"),
            "polygon_features": (self.num_polygons, "F"),
            "complex_features": (self.num_complexes, "F"),
        }
        for name, (rows, columns) in expected.items():
            value: Tensor | None = getattr(self, name)
            if value is None:
                continue
            shape = tuple(value.shape)
            if len(shape) != 2 or shape[0] != rows or columns not in ("F", shape[1]):
                raise InputError(f"{name} must be ({rows}, {columns}), got {shape}")
        if self.targets is not None and self.targets.shape[:1] != (self.num_complexes,):
            raise InputError(
                f"targets must be ({self.num_complexes}, …), got {tuple(self.targets.shape)}"
            )
        if self.target_bounds is not None:
            check_bounds(self.targets, self.target_bounds)

    # Sizes -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.num_complexes

    @property
    def num_nodes(self) -> int:
        """Number of nodes in all complexes together."""
        return self.node_complex.size(0)

    @property
    def num_edges(self) -> int:
        """Number of edges in all complexes together."""
        return self.edge_complex.size(0)

    @property
    def num_polygons(self) -> int:
        """Number of polygons in all complexes together."""
        return self.polygon_complex.size(0)

    @cached_property
    def polygon_sizes(self) -> Tensor:
        """(P,) number of edges (and of nodes) of every polygon."""
        return torch.bincount(self.polygon_edges[1], minlength=self.num_polygons)

    @cached_property
    def polygon_nodes(self) -> Tensor:
        """(2, ·) rows (node, polygon), parallel to `polygon_edges`: where each step begins."""
        edge, polygon = self.polygon_edges
        tail = torch.where(
            self.polygon_signs > 0, self.edge_nodes[0, edge], self.edge_nodes[1, edge]
        )
        return torch.stack([tail, polygon])

    @property
    def exact_targets(self) -> Tensor | None:
        """The targets, with NaN for those that are only bounds."""
        return exact_targets(self.targets, self.target_bounds)

    # Neighbourhoods ----------------------------------------------------------------------------

    @cached_property
    def lower_pairs(self) -> Tensor:
        """(2, ·) rows (receiver, sender): edges that share a node; PyG's `edge_index` flipped."""
        found = lower_pairs(self._edge_array, self.num_nodes)
        return torch.from_numpy(found).to(self.device)

    @cached_property
    def upper_pairs(self) -> Tensor:
        """(2, ·) rows (receiver, sender): edges that share a polygon, each pair once."""
        found = upper_pairs(self._side_array, self.num_edges, self.num_polygons)
        return torch.from_numpy(found).to(self.device)

    def neighbourhood(self, rank: int, side: Side) -> Neighbourhood:
        """Return who hears whom on a rank, and through which cell of rank − 1 or rank + 1."""
        known: dict[tuple[int, str], Neighbourhood] = self.__dict__.setdefault("_near", {})
        if (rank, side) not in known:
            known[rank, side] = neighbourhood(self, rank, side)
        return known[rank, side]

    @property
    def lower_triples(self) -> Tensor:
        """(3, ·) rows (receiver, sender, node): edges with the node that they share."""
        return self.neighbourhood(1, "lower").triples

    @property
    def upper_triples(self) -> Tensor:
        """(3, ·) rows (receiver, sender, polygon): edges with every polygon that they share."""
        return self.neighbourhood(1, "upper").triples

    # Algebra -----------------------------------------------------------------------------------

    boundary = boundary
    coboundary = coboundary
    adjacency = adjacency
    incidence = incidence
    laplacian = laplacian

    @cached_property
    def _incidences(self) -> tuple["csr_array[Any, Any]", "csr_array[Any, Any]"]:
        return self.incidence(1), self.incidence(2)

    def betti(self, each: bool = False) -> Any:
        """Compute the Betti numbers (b₀, b₁, b₂) over the rationals: components, holes, voids.

        Return a tuple for the whole union or, with `each`, an array (num_complexes, 3) with one
        row per complex.
        """
        from cell_attention.topology.homology import betti_numbers

        rows = betti_numbers(self)
        return rows if each else tuple(int(total) for total in rows.sum(axis=0))

    @property
    def _edge_array(self) -> NDArray[np.int64]:
        return index_array("edge_nodes", self.edge_nodes, (self.num_nodes,) * 2)

    @property
    def _side_array(self) -> NDArray[np.int64]:
        return index_array("polygon_edges", self.polygon_edges, (self.num_edges, self.num_polygons))

    @cached_property
    def _offsets(self) -> "Offsets":
        from cell_attention.topology.batches import Offsets

        return Offsets.of(self)

    # Selection ---------------------------------------------------------------------------------

    def __getitem__(
        self, chosen: int | slice | Sequence[int] | Tensor | NDArray[Any]
    ) -> "CellComplex":
        """Select complexes by index, slice, list of indices (repeats allowed) or mask."""
        from cell_attention.topology.batches import select

        return select(self, chosen)

    def __iter__(self) -> Iterator["CellComplex"]:
        return (self[index] for index in range(self.num_complexes))

    restrict = restrict
    skeleton = skeleton

    @classmethod
    def from_cells(
        cls,
        edges: Any,
        polygons: Any = (),
        *,
        num_nodes: int | None = None,
        node_features: Tensor | None = None,
        edge_features: Tensor | None = None,
        polygon_features: Tensor | None = None,
        node_complex: Tensor | None = None,
        targets: Tensor | None = None,
        limits: Limits = LIMITS,
    ) -> "CellComplex":
        """Build a complex from its cells, with any polygons; cycles are not searched.

        edges: pairs of nodes. polygons: node sequences, each a closed walk along edges. Both in
        any order and direction, each cell once; features follow their cells.
        """
        from cell_attention.topology.cells import canonical_cells

        return cls(
            **canonical_cells(
                edges, polygons, num_nodes, node_features=node_features,
                edge_features=edge_features, polygon_features=polygon_features,
                node_complex=node_complex, targets=targets, limits=limits,
            )
        )  # fmt: skip

    # Devices and files -------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.edge_nodes.device

    def to(self, device: torch.device | str) -> "CellComplex":
        """Return the same complex on another device, with the pairs computed so far."""
        try:
            device = torch.device(device)
        except (TypeError, RuntimeError):
            raise InputError(f"device must name a device, got {device!r}") from None
        moved_tensors: dict[str, Any] = {
            name: value.to(device) for name, value in self.tensors().items()
        }
        moved = replace(self, **moved_tensors)
        for name in ("lower_pairs", "upper_pairs"):
            if name in self.__dict__:
                moved.__dict__[name] = self.__dict__[name].to(device)
        return moved

    def tensors(self) -> dict[str, Tensor]:
        """Return the fields that are tensors, by name, without those that are None."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if isinstance(value, Tensor)}

    def save(self, path: str | Path) -> None:
        """Write a safetensors file; an old file is replaced only when the new one is complete."""
        from cell_attention.topology.storage import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, limits: Limits = LIMITS) -> "CellComplex":
        """Read a file that `save` wrote, memory-mapped: features are read when they are used."""
        from cell_attention.topology.storage import load

        if not isinstance(path, str | Path):
            raise InputError(f"path must be a text or a path, got {path!r:.60}")
        try:
            return cls(**load(Path(path), limits))
        except InputError as error:
            raise DataError(f"{path}: {error}") from None

    def __repr__(self) -> str:
        widths = f"{tuple(self.node_features.shape)[1:]}"
        return (
            f"CellComplex({self.num_complexes} complexes: {self.num_nodes} nodes {widths}, "
            f"{self.num_edges} edges, {self.num_polygons} polygons)"
        )
