"""Networks of the registry against their published formulas, in dense float64 loops."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention import CellComplex, lift
from cell_attention.errors import InputError
from cell_attention.models.cin import Incidences, IsomorphismLayer
from cell_attention.models.dcnn import DiffusionNetwork
from cell_attention.models.gine import GineNetwork, returning_walks
from cell_attention.models.registry import build_network, defaults


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


SHAPES = (nx.petersen_graph(), nx.lollipop_graph(4, 3), nx.empty_graph(2), nx.path_graph(5))
"""Regular and irregular, with triangles and without, and without edges."""


def with_features(graphs: tuple[nx.Graph, ...] = SHAPES) -> CellComplex:
    """Graphs with three features at every node and two at every edge."""
    complexes = lift([nx.convert_node_labels_to_integers(graph) for graph in graphs])
    drawn = torch.Generator().manual_seed(0)
    return replace(
        complexes,
        node_features=torch.randn(complexes.num_nodes, 3, generator=drawn, dtype=torch.float64),
        edge_features=torch.randn(complexes.num_edges, 2, generator=drawn, dtype=torch.float64),
    )


def ready(name: str) -> nn.Module:
    """A network for such graphs, in float64 and in evaluation."""
    torch.manual_seed(0)
    sizes = {"node_features": 3, "edge_features": 2, "outputs": 4}
    return build_network(name, defaults(name, "MUTAG")[0], sizes).double().eval()


def parts(complexes: CellComplex) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Per graph the (n, n) adjacency, the (n, 3) nodes and the (n, n, 2) features of edges."""
    found = []
    for one in complexes:
        n = one.num_nodes
        adjacency = torch.zeros(n, n, dtype=torch.float64)
        edges = torch.zeros(n, n, 2, dtype=torch.float64)
        assert one.edge_features is not None
        for (i, j), values in zip(one.edge_nodes.T.tolist(), one.edge_features, strict=True):
            adjacency[i, j] = adjacency[j, i] = 1.0
            edges[i, j] = edges[j, i] = values
        found.append((adjacency, one.node_features, edges))
    return found


def gine_layer(layer: nn.Module, nodes: Tensor, adjacency: Tensor, edges: Tensor) -> Tensor:
    """MLP(h_i + Σ_j relu(h_j + W e_ij)), term by term."""
    total = nodes.clone()
    for i, j in adjacency.nonzero().tolist():
        total[i] += functional.relu(nodes[j] + layer.lin(edges[i, j]))  # type: ignore[operator]
    return layer.nn(total)  # type: ignore[operator, no-any-return]


def attended(layer: nn.Module, nodes: Tensor, heads: int) -> Tensor:
    """softmax(QKᵀ/√d)V of every head, joined, through the last linear map."""
    weight, bias = layer.in_proj_weight, layer.in_proj_bias
    query, key, value = (nodes @ weight.T + bias).chunk(3, dim=1)  # type: ignore[union-attr]
    width = query.size(1) // heads
    said = [
        ((q @ k.T) / width**0.5).softmax(1) @ v
        for q, k, v in zip(*(x.split(width, 1) for x in (query, key, value)), strict=True)
    ]
    return layer.out_proj(torch.cat(said, dim=1))  # type: ignore[operator, no-any-return]


@pytest.mark.parametrize("name", ["gine", "gps"])
def test_gine_and_gps_are_their_formulas_graph_by_graph(name: str) -> None:
    complexes, network = with_features(), ready(name)
    assert isinstance(network, GineNetwork)
    rows = []
    for one, (adjacency, nodes, edges) in zip(complexes, parts(complexes), strict=True):
        if network.scale is not None:
            nodes = torch.cat([nodes, network.scale(returning_walks(one, 20))], dim=1)
        nodes, read = network.start(nodes), []
        for layer, norm in zip(network.layers, network.norms, strict=True):
            if name == "gine":
                nodes = functional.relu(norm(gine_layer(layer, nodes, adjacency, edges)))
            else:  # MLP(local + global), a residual in every part (Rampášek et al. 2022)
                near = layer.norm1(nodes + gine_layer(layer.conv, nodes, adjacency, edges))
                far = layer.norm2(nodes + attended(layer.attn, nodes, layer.heads))
                nodes = layer.norm3(near + far + layer.mlp(near + far))
            read.append(nodes.sum(0))
        rows.append(network.head(torch.cat(read)))
    torch.testing.assert_close(network(complexes), torch.stack(rows), rtol=1e-9, atol=1e-9)


def test_walks_that_return_are_diagonals_of_powers() -> None:
    complexes = with_features()
    expected = []
    for adjacency, _, _ in parts(complexes):
        step = (adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)).numpy()
        powers = [np.linalg.matrix_power(step, length) for length in range(1, 7)]
        expected.append(np.stack([power.diagonal() for power in powers], axis=1))
    found = returning_walks(complexes, 6)
    np.testing.assert_allclose(found.numpy(), np.concatenate(expected), atol=1e-12)


def test_gps_trains_beside_a_graph_without_nodes_and_refuses_layers_of_unequal_width() -> None:
    complexes = with_features((nx.empty_graph(0), nx.path_graph(3), nx.empty_graph(0)))
    network = ready("gps").train()
    outputs = network(complexes)
    outputs.sum().backward()
    assert outputs.isfinite().all()
    assert all(value.grad is not None for value in network.parameters())
    assert all(bool(value.grad.isfinite().all()) for value in network.parameters())  # type: ignore[union-attr]
    config = replace(defaults("gps", "")[0], hidden=(8, 4), heads=(2, 2))
    rule = "model 'gps' needs layers of equal hidden × heads, got 8 × 2, 4 × 2"
    with pytest.raises(InputError, match=rule):
        build_network("gps", config, {"node_features": 3, "edge_features": 2, "outputs": 4})


def test_dcnn_is_its_formula_graph_by_graph() -> None:
    """Atwood and Towsley 2016: W'(tanh(W ⊙ 1ᵀP*X / n)), the powers of P = D⁻¹A in P*."""
    complexes, network = with_features(), ready("dcnn")
    assert isinstance(network, DiffusionNetwork)
    rows = []
    for adjacency, nodes, _ in parts(complexes):
        step = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
        powers = [torch.linalg.matrix_power(step, hop) for hop in range(5)]
        means = torch.stack([(power @ nodes).mean(0) for power in powers])
        rows.append(network.head(torch.tanh(network.weight * means).flatten()))
    torch.testing.assert_close(network(complexes), torch.stack(rows), rtol=1e-9, atol=1e-9)
