"""A network with one row of outputs for every node, edge or polygon, instead of one per complex.

    ŷ_c = W₂ φ(norm(W₁ [h_c⁰ ‖ … ‖ h_c^L] + b₁)) + b₂        h_c^l: the state of cell c in layer l

The layers and the head are those of the network for whole complexes, without its readout: on every
rank the head normalises its hidden units, in the paper's design it does not and reads h¹ … h^L.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from cell_attention.arguments import require, require_choice
from cell_attention.errors import InputError
from cell_attention.nn.config import Kernel, NetworkConfig
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.topology.complex import CellComplex

if TYPE_CHECKING:
    from cell_attention.topology.graphs import EdgeMerge

Cells = Literal["nodes", "edges", "polygons"]
RANK_OF: dict[str, int] = {"nodes": 0, "edges": 1, "polygons": 2}


class CellPredictor(nn.Module):
    """A network for the cells of one rank: outputs per node, edge or polygon.

    Called with what `CellAttentionNetwork` takes; returns (cells, outputs), in the order of the
    complex (edges as in `edge_nodes`), whose rows belong to the complexes one after the other.
    The branches that read complexes as wholes (`counts`, `composition`, `node_readout`) are
    switched off, and features of whole complexes are not read.
    """

    def __init__(
        self,
        config: NetworkConfig,
        node_features: int,
        edge_features: int,
        outputs: int,
        *,
        cells: Cells = "edges",
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        require_choice("cells", cells, Cells)
        self.cells, rank, paper = cells, RANK_OF[cells], config.design == "paper"
        if rank not in ((1,) if paper else config.ranks):
            have = "edges alone" if paper else f"ranks {config.ranks}"
            raise InputError(f"cells {cells!r} need features of their own, the network has {have}")
        rule = "be 'none': cells that are pooled away would get no outputs"
        require("pooling", config.pooling == "none", rule, repr(config.pooling))
        whole = {"node_readout": 0} if paper else {"counts": 0, "composition": False}
        self.config = config = replace(config, **whole)  # type: ignore[arg-type]
        self.network = CellAttentionNetwork(
            config, node_features, edge_features, outputs, kernel=kernel
        )
        width = sum(config.widths) + (0 if paper else config.widths[0])
        self.network.readout = nn.Identity()
        self.network.head[0] = nn.Linear(width, config.head_hidden)

    def forward(self, graphs: Any, edge_merge: "EdgeMerge | None" = None) -> Tensor:
        """graphs: a CellComplex, or what `lift` takes; returns (cells, outputs).

        edge_merge: as for `lift`, if the graphs are lifted here.
        """
        return self.network.logits(self.states(self.complexes_of(graphs, edge_merge)))

    def complexes_of(self, graphs: Any, edge_merge: "EdgeMerge | None" = None) -> CellComplex:
        """Return the input as complexes, whose cells are the rows of the outputs."""
        found = self.network.complexes_of(graphs, edge_merge)
        return replace(found, complex_features=None)

    def states(self, complexes: CellComplex) -> Tensor:
        """(cells, ·) the states of every cell in all layers, side by side."""
        rank, network = RANK_OF[self.cells], self.network
        layers = list(network._layers(network._checked(complexes)))
        every: list[Tensor | None] = [layer.before[rank] for layer in layers if layer.before]
        every += [(layer.nodes, layer.features, layer.polygons)[rank] for layer in layers]
        return torch.cat([states for states in every if states is not None], 1)


def num_cells(complexes: CellComplex, cells: str) -> int:
    """Count the cells of a rank."""
    return (complexes.num_nodes, complexes.num_edges, complexes.num_polygons)[RANK_OF[cells]]


def complex_of_cells(complexes: CellComplex, cells: str) -> Tensor:
    """(cells,) the complex of every cell of a rank, increasing."""
    members = complexes.node_complex, complexes.edge_complex, complexes.polygon_complex
    return members[RANK_OF[cells]]
