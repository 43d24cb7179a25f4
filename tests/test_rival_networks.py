"""Networks of the registry against their published formulas, in dense float64 loops."""

import networkx as nx
import pytest
import torch
from torch.nn import functional

from cell_attention import lift
from cell_attention.models.cin import Incidences, IsomorphismLayer


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_layer_of_cinpp_adds_the_lower_messages_of_its_formula(rank: int) -> None:
    """Giusti et al. 2023: U(B(…) ‖ A(…) ‖ C(h + Σ relu(W[h_τ ‖ h_δ] + b))), δ a shared face."""
    torch.manual_seed(rank)
    complexes = lift([nx.petersen_graph(), nx.complete_graph(4), nx.cubical_graph()])
    layer = IsomorphismLayer(rank, 3, 5, lower=True).double().eval()
    incidences = Incidences.of(complexes)
    cells = [torch.randn(size, 3, dtype=torch.float64) for size in incidences.sizes]
    parts = [cells[rank].clone() for _ in range(3)]
    below, above, beside = parts
    for cell in range(incidences.sizes[rank]):
        for face in complexes.boundary(rank, cell) if rank > 0 else ():
            below[cell] += cells[rank - 1][face]
            weight = torch.cat([layer.neighbour.weight, layer.face.weight], dim=1)
            for other in complexes.coboundary(rank - 1, int(face)):
                if other != cell:
                    pair = torch.cat([cells[rank][other], cells[rank - 1][face]])
                    beside[cell] += functional.relu(weight @ pair + layer.neighbour.bias)
        for coface in complexes.coboundary(rank, cell) if rank < 2 else ():
            weight = torch.cat([layer.sender.weight, layer.coface.weight], dim=1)
            for other in complexes.boundary(rank + 1, int(coface)):
                if other != cell:
                    pair = torch.cat([cells[rank][other], cells[rank + 1][coface]])
                    above[cell] += functional.relu(weight @ pair + layer.sender.bias)
    heard = [layer.below(below), layer.above(above), layer.beside(beside)]
    expected = layer.update(torch.cat(heard, dim=1))
    torch.testing.assert_close(layer(cells, incidences), expected, rtol=1e-10, atol=1e-10)
