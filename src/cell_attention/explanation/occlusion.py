"""What a prediction loses without a cell: the importance of nodes, edges and polygons alike.

The margin y of a graph is the log-odds of the explained class, the logit of a label, or the value.
The importance of a cell σ is what y loses when σ is taken away together with all that it bounds:

    r_σ = y(G) − y(G ∖ σ)

A node goes with its edges, an edge with its polygons, a polygon alone. There is no gradient and no
convention in it, equal cells of a graph have equal importance, and it is what the measures of
faithfulness ask for, one cell at a time (Zeiler and Fergus 2014 call it occlusion). It costs one
forward pass per cell, many of them in one batch.
"""

import torch
from torch import Tensor, nn

from cell_attention.explanation.importance import Importance, margin
from cell_attention.nn.network import Trace
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.selection import without

AT_ONCE = 1024
"""Number of graphs, each without one cell, in one forward pass."""


@torch.no_grad()
def occlusion(network: nn.Module, trace: Trace, outputs: Tensor, *, classes: bool) -> Importance:
    """Compute what the margins of a trace lose without each of its cells.

    outputs: (num_complexes,) the explained output of every complex.
    classes: whether outputs are classes of which one is right.
    """
    complexes = trace.complexes
    whole = margin(trace.logits.double(), outputs, classes)
    members = complexes.node_complex, complexes.edge_complex, complexes.polygon_complex
    nodes, edges, polygons = (
        whole[member]
        - _margins_without(
            network, complexes, rank=rank, member=member, outputs=outputs, classes=classes
        )
        for rank, member in enumerate(members)
    )
    return Importance(whole, edges, polygons, nodes)


def _margins_without(
    network: nn.Module,
    complexes: CellComplex,
    *,
    rank: int,
    member: Tensor,
    outputs: Tensor,
    classes: bool,
) -> Tensor:
    """(cells,) margins of the complexes, each without one cell of a rank."""
    counts = member.bincount(minlength=len(complexes))
    first = counts.cumsum(0) - counts
    place = torch.arange(member.size(0), device=member.device) - first[member]
    found = [torch.zeros(0, dtype=torch.float64, device=member.device)]
    for cells in torch.arange(member.size(0), device=member.device).split(AT_ONCE):
        copies = complexes[member[cells]]
        sizes = counts[member[cells]]
        gone = torch.zeros(int(sizes.sum()), dtype=torch.bool, device=member.device)
        gone[sizes.cumsum(0) - sizes + place[cells]] = True
        left = network(without(copies, rank, gone)).double()
        found.append(margin(left, outputs[member[cells]], classes))
    return torch.cat(found)
