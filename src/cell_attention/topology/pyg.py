"""PyTorch Geometric: lifting as a transform, and lifted data that its DataLoader batches."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from cell_attention.errors import InputError
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.degrees import with_degrees
from cell_attention.topology.graphs import EdgeMerge, RawGraphs, check_edge_merge
from cell_attention.topology.lifting import lift
from cell_attention.topology.limits import LIMITS, Limits
from cell_attention.topology.polygons import check_max_polygon
from cell_attention.topology.readers import read_pyg


class CellData(Data):  # type: ignore[misc]
    """A PyG graph that carries its cell complex; `Batch` and `DataLoader` join such graphs.

    Besides PyG's own `x`, `edge_index`, … it holds `edge_nodes`, `edge_features`, `polygon_edges`,
    `polygon_signs`, `polygon_features` as in `CellComplex`, and `num_cells` = (edges, polygons)
    per graph. Lift last: `complexes` raises an error if `edge_index` changed afterwards.
    """

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what PyG adds to the indices of later graphs in a batch."""
        if key == "edge_nodes":
            return self.num_nodes
        if key == "polygon_edges":
            return self.num_cells.T
        if key == "num_cells":
            return 0
        return super().__inc__(key, value, *args, **kwargs)

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the dimension along which PyG joins graphs."""
        if key in ("edge_nodes", "polygon_edges"):
            return 1
        if key in ("polygon_signs", "num_cells", "edge_features", "polygon_features"):
            return 0
        return super().__cat_dim__(key, value, *args, **kwargs)

    @property
    def complexes(self) -> CellComplex:
        """The complex of this graph, or the complexes of this batch, without a search; without `x`
        the features are the degrees, as for `lift`.
        """
        raw = read_pyg(self)
        counts: Tensor = self.num_cells
        if not self._is_whole(raw):
            raise InputError(
                "the graph was changed after it was lifted; apply CellularLifting last, "
                "or lift it again with cell_attention.lift"
            )
        member, numbers = raw.node_complex, torch.arange(raw.num_graphs, device=counts.device)
        if member is None:
            member = torch.zeros(raw.num_nodes, dtype=torch.int64, device=counts.device)
        features = raw.node_features
        without = features is None
        if features is None:
            features = torch.empty(raw.num_nodes, 0, device=counts.device)
        found = CellComplex(
            node_features=features,
            edge_nodes=self.edge_nodes,
            polygon_edges=self.polygon_edges,
            polygon_signs=self.polygon_signs,
            node_complex=member,
            edge_complex=numbers.repeat_interleave(counts[:, 0]),
            polygon_complex=numbers.repeat_interleave(counts[:, 1]),
            num_complexes=raw.num_graphs,
            edge_features=getattr(self, "edge_features", None),
            polygon_features=getattr(self, "polygon_features", None),
            targets=raw.targets,
            target_bounds=raw.target_bounds,
        )
        return with_degrees(found) if without else found

    def _is_whole(self, raw: RawGraphs) -> bool:
        """Whether the cells are still those of the graph."""
        ends = raw.edge_index.sort(dim=0).values
        keys = torch.unique((ends[0] * raw.num_nodes + ends[1])[ends[0] < ends[1]])
        stored = self.edge_nodes[0] * raw.num_nodes + self.edge_nodes[1]
        sizes = self.num_cells.sum(0).tolist() if self.num_cells.dim() == 2 else []
        return (
            self.num_cells.shape == (raw.num_graphs, 2)
            and sizes[0] == self.edge_nodes.size(1)
            and self.polygon_edges.size(1) == self.polygon_signs.size(0)
            and torch.equal(keys, stored)
        )


@functional_transform("cellular_lifting")
class CellularLifting(BaseTransform):  # type: ignore[misc]
    """`lift` as a PyG transform: every graph becomes a `CellData`.

    The arguments are those of `lift`. Other attributes of the graph stay as they are.
    """

    def __init__(
        self,
        max_polygon: int = 6,
        edge_merge: EdgeMerge | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        check_max_polygon(max_polygon)
        check_edge_merge(edge_merge)
        self.max_polygon, self.edge_merge, self.limits = max_polygon, edge_merge, limits

    def forward(self, data: Any) -> CellData:
        """Lift one graph; a batch is refused, because `lift(batch)` is faster."""
        if not isinstance(data, Data) or getattr(data, "batch", None) is not None:
            raise InputError(
                "CellularLifting takes one PyG Data; lift a Batch with cell_attention.lift"
            )
        complexes = lift(data, self.max_polygon, edge_merge=self.edge_merge, limits=self.limits)
        stale = ("edge_features", "polygon_features")  # of an earlier lifting
        kept = {key: data[key] for key in data.keys() if key not in stale}  # noqa: SIM118
        kept["num_nodes"] = data.num_nodes
        return _with_cells(CellData(**kept), complexes)

    def __repr__(self) -> str:
        return f"CellularLifting(max_polygon={self.max_polygon}, edge_merge={self.edge_merge!r})"


def to_pyg(complexes: CellComplex) -> list[CellData]:
    """Return one `CellData` per complex, ready for `Batch.from_data_list` or a DataLoader."""
    if not isinstance(complexes, CellComplex):
        raise InputError(f"complexes must be a CellComplex, got {type(complexes).__name__}")
    listed = []
    for complex_ in complexes:
        data = CellData(x=complex_.node_features, num_nodes=complex_.num_nodes)
        data.edge_index = torch.cat([complex_.edge_nodes, complex_.edge_nodes.flip(0)], dim=1)
        if complex_.edge_features is not None:
            data.edge_attr = complex_.edge_features.repeat(2, 1)
        if complex_.targets is not None:
            data.y = complex_.targets
        if complex_.target_bounds is not None:
            data.y_bounds = complex_.target_bounds
        listed.append(_with_cells(data, complex_))
    return listed


def _with_cells(data: CellData, complexes: CellComplex) -> CellData:
    """Fill in the edges and polygons of one complex."""
    if complexes.edge_features is not None:
        data.edge_features = complexes.edge_features
    if complexes.polygon_features is not None:
        data.polygon_features = complexes.polygon_features
    data.edge_nodes = complexes.edge_nodes
    data.polygon_edges = complexes.polygon_edges
    data.polygon_signs = complexes.polygon_signs
    counts = [[complexes.num_edges, complexes.num_polygons]]
    data.num_cells = torch.tensor(counts, device=complexes.device)
    return data
