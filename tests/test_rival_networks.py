"""Networks of the registry against their published formulas, in dense float64 loops."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

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
from cell_attention.models.ign import EquivariantLayer, InvariantNetwork
from cell_attention.models.ngn import NaturalLayer, NaturalNetwork
from cell_attention.models.pairs import pairs_of
from cell_attention.models.ppgn import PowerfulNetwork
from cell_attention.models.registry import MODELS, build_network, defaults, sizes_of
from cell_attention.tuning.space import Categorical, Dimension, applied, suggested, usual_space
from learning import refused


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


def tensors(complexes: CellComplex) -> list[Tensor]:
    """Per graph the (n, n, F) tensor of IGN and PPGN: adjacency, edges, nodes on the diagonal."""
    return [
        torch.cat([adjacency[..., None], edges, nodes.T.diag_embed().permute(1, 2, 0)], dim=2)
        for adjacency, nodes, edges in parts(complexes)
    ]


def diagonal_and_beside(values: Tensor) -> Tensor:
    """The largest value of every feature on the diagonal and beside it; (n, n, F)."""
    n, width = values.size(0), values.size(2)
    beside = [values[i, j] for i in range(n) for j in range(n) if i != j]
    off = torch.stack(beside).amax(0) if beside else torch.zeros(width, dtype=values.dtype)
    return torch.cat([torch.stack([values[i, i] for i in range(n)]).amax(0), off])


def fifteen(x: Tensor) -> list[Tensor]:
    """What the 15 maps of Maron et al. 2019 make of (n, n, F), in the order of the layer's weights:
    two of entries; per place (row, column, diagonal) three of nodes; per place two of the graph.
    """
    n = x.size(0)
    ones, eye = torch.ones(n, n, 1, dtype=x.dtype), torch.eye(n, dtype=x.dtype)[..., None]
    diagonal = torch.stack([x[i, i] for i in range(n)])
    of_nodes = [diagonal, x.mean(1), x.mean(0)]
    of_graph = [x.mean((0, 1)), diagonal.mean(0)]
    return [
        x, x.transpose(0, 1),
        *(value[:, None] * ones for value in of_nodes),
        *(value[None] * ones for value in of_nodes),
        *(value[:, None] * eye for value in of_nodes),
        *(value * ones for value in of_graph),
        *(value * eye for value in of_graph),
    ]  # fmt: skip


def equivariant(layer: EquivariantLayer, x: Tensor) -> Tensor:
    """The layer from its definition."""
    fin, fout, n = x.size(2), layer.own.out_features, x.size(0)
    weights = [
        block
        for linear, places in ((layer.own, 1), (layer.nodes, 3), (layer.graphs, 2))
        for place in linear.weight.split(fout)[:places]
        for block in place.split(fin, dim=1)
    ]
    assert len(weights) == 15
    everywhere, on_diagonal = layer.graphs.bias.split(fout)
    total = everywhere + torch.eye(n, dtype=x.dtype)[..., None] * on_diagonal
    for weight, value in zip(weights, fifteen(x), strict=True):
        total = total + value @ weight.T
    return total


def test_ign_is_its_formula_graph_by_graph() -> None:
    complexes, network = with_features(), ready("ign")
    assert isinstance(network, InvariantNetwork)
    rows = []
    for values in tensors(complexes):
        for layer in network.layers:
            assert isinstance(layer, EquivariantLayer)
            values = functional.relu(equivariant(layer, values))
        rows.append(network.head(diagonal_and_beside(values)))
    torch.testing.assert_close(network(complexes), torch.stack(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [4, 5])
def test_the_layer_of_ign_spans_all_15_equivariant_maps(n: int) -> None:
    """With one weight of one, all others zero, the layer is one map; the maps commute with all
    permutations and are linearly independent. There are 15, the partitions of four indices.
    """
    pairs = pairs_of(lift([nx.complete_graph(n)] * (n * n)))
    basis = torch.eye(n * n, dtype=torch.float64)  # every matrix unit is one graph of the batch
    layer = EquivariantLayer(1, 1).double()
    weights = [layer.own.weight, layer.nodes.weight, layer.graphs.weight]
    maps = []
    with torch.no_grad():
        for chosen in weights:
            for place in range(chosen.numel()):
                for weight in (*weights, layer.graphs.bias):
                    weight.zero_()
                chosen.view(-1)[place] = 1.0
                maps.append(layer(basis.reshape(-1, 1), pairs).view(n * n, n * n))
    assert len(maps) == 15
    assert int(torch.linalg.matrix_rank(torch.stack([one.flatten() for one in maps]))) == 15
    for order in permutations(range(n)):
        moved = torch.arange(n * n).view(n, n)[list(order)][:, list(order)].flatten()
        for one in maps:
            torch.testing.assert_close(one[moved][:, moved], one, rtol=0.0, atol=1e-12)


def test_ppgn_is_its_formula_graph_by_graph() -> None:
    """Maron et al. 2019: X ← W[X ‖ m₁(X)·m₂(X)], read after every block."""
    complexes, network = with_features(), ready("ppgn")
    assert isinstance(network, PowerfulNetwork)
    rows = []
    for values in tensors(complexes):
        logits = torch.zeros(4, dtype=torch.float64)
        for block, vote in zip(network.blocks, network.votes, strict=True):
            product = torch.einsum("ikf,kjf->ijf", block.left(values), block.right(values))
            values = block.skip(torch.cat([values, product], dim=2))
            logits = logits + vote(diagonal_and_beside(values))
        rows.append(logits)
    torch.testing.assert_close(network(complexes), torch.stack(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["ign", "ppgn"])
def test_pieces_of_a_batch_change_neither_outputs_nor_gradients(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    complexes, network = with_features((*SHAPES, nx.empty_graph(0), nx.star_graph(8))), ready(name)
    found = []
    for rows in (2**17, 30):  # all at once; pieces, some of them one graph beyond the limit
        for module in ("pairs", name):
            monkeypatch.setattr(f"cell_attention.models.{module}.ROWS", rows)
        network.zero_grad()
        outputs = network(complexes)
        outputs.square().sum().backward()
        grads = [value.grad.clone() for value in network.parameters() if value.grad is not None]
        found.append([outputs.detach(), *grads])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["ign", "ppgn"])
def test_a_graph_with_too_many_nodes_is_refused_before_and_after_training(name: str) -> None:
    complexes = lift([nx.path_graph(4), nx.path_graph(701)])
    complexes = replace(complexes, node_features=torch.ones(complexes.num_nodes, 3))
    rule = "graph 1 has 701 nodes; .* take graphs of at most 700"
    with pytest.raises(InputError, match=rule):
        sizes_of(name, complexes, 2)
    network = build_network(
        name, defaults(name, "")[0], {"node_features": 3, "edge_features": 0, "outputs": 2}
    )
    with torch.no_grad(), pytest.raises(InputError, match=rule):
        network(complexes)
    assert network(complexes[:1]).shape == (1, 2)


def convolution(adjacency: Tensor) -> Tensor:
    """D^(-1/2) (A + I) D^(-1/2), with the degrees of A + I (Kipf and Welling 2017)."""
    own = adjacency + torch.eye(adjacency.size(0), dtype=adjacency.dtype)
    scale = own.sum(1).rsqrt()
    return scale[:, None] * own * scale


def natural(layer: NaturalLayer, near: dict[int, Tensor], adjacency: Tensor) -> dict[int, Tensor]:
    """A layer of NGN edge by edge; near[p] is (n, F) with zero rows outside p's neighbourhood."""
    n = adjacency.size(0)
    inside = (adjacency + torch.eye(n)).bool()
    heard = {q: layer.own(near[q]) for q in range(n)}
    for p, q in adjacency.nonzero().tolist():
        around = (inside[p] | inside[q]).nonzero()[:, 0]
        step = convolution(adjacency[around][:, around])
        marks = torch.stack([around == p, around == q], dim=1).double()
        given = layer.first(near[p][around]) + layer.mark(marks)
        message = torch.zeros(n, layer.own.out_features, dtype=torch.float64)
        message[around] = layer.second(step @ functional.relu(step @ given))
        heard[q] = heard[q] + message
    return {q: torch.where(inside[q][:, None], heard[q], 0.0) for q in range(n)}


def test_ngn_is_its_formula_edge_by_edge() -> None:
    complexes, network = with_features(), ready("ngn")
    assert isinstance(network, NaturalNetwork)
    rows = []
    for adjacency, nodes, _ in parts(complexes):
        n = adjacency.size(0)
        inside = (adjacency + torch.eye(n)).bool()
        marked = [torch.cat([nodes, torch.eye(n)[p][:, None].double()], dim=1) for p in range(n)]
        near = {p: torch.where(inside[p][:, None], marked[p], 0.0) for p in range(n)}
        read = [near]
        for layer, norm in zip(network.layers, network.norms, strict=True):
            assert isinstance(layer, NaturalLayer)
            new = natural(layer, read[-1], adjacency)
            read.append(
                {p: torch.where(inside[p][:, None], norm(new[p]).relu(), 0.0) for p in range(n)}
            )
        logits = torch.zeros(4, dtype=torch.float64)
        for vote, values in zip(network.votes, read, strict=True):
            means = [values[p].sum(0) / inside[p].sum() for p in range(n)]
            logits = logits + vote(torch.stack(means).sum(0))
        rows.append(logits)
    torch.testing.assert_close(network(complexes), torch.stack(rows), rtol=1e-9, atol=1e-9)


def test_ngn_refuses_a_graph_whose_neighbourhoods_are_too_large() -> None:
    complexes = with_features((nx.path_graph(4), nx.complete_graph(102)))
    rule = "graph 1 has up to 214,364,016 pairs .* at most 2,000,000"
    with pytest.raises(InputError, match=rule):
        sizes_of("ngn", complexes, 2)
    with pytest.raises(InputError, match=rule):
        ready("ngn")(complexes)


NAMES = ["cinpp", "gine", "gps", "dcnn", "ngn", "ign", "ppgn"]


@pytest.mark.parametrize("name", NAMES)
def test_a_search_of_every_network_draws_what_can_be_built_and_run(name: str) -> None:
    complexes, random = with_features(), np.random.default_rng(0)
    space, usual = usual_space(name, "paper"), defaults(name, "MUTAG")
    seen = {table: set(entries) for table, entries in space.items()}
    assert seen["training"] == {"learning_rate", "weight_decay", "batch_size"}
    assert ("width" in seen["shape"]) == ("hidden" in MODELS[name].reads)
    assert seen["network"] <= {*MODELS[name].reads}

    def suggest(label: str, where: Dimension) -> Any:
        if isinstance(where, Categorical):
            return where.values[int(random.integers(len(where.values)))]
        drawn = random.uniform(where.low, where.high)
        return round(drawn) if where.whole else drawn

    for _ in range(3):
        config, _ = applied(name, suggested(space, suggest), usual)
        network = build_network(name, config, sizes_of(name, complexes, 4)).double().eval()
        assert network(complexes).shape == (len(complexes), 4)


def test_a_command_refuses_a_graph_that_is_too_large_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "LONG"
    folder.mkdir()
    sizes = [3, 4, 5, 701, 3, 4, 5, 6]
    edges, first = [], 1
    for size in sizes:
        edges += [f"{first + i}, {first + i + 1}" for i in range(size - 1)]
        first += size
    members = [str(number) for number, size in enumerate(sizes, start=1) for _ in range(size)]
    classes = [str(number % 2) for number in range(len(sizes))]
    texts = {"A": edges, "graph_indicator": members, "graph_labels": classes}
    texts["node_labels"] = ["0"] * len(members)
    for name, lines in texts.items():
        (folder / f"LONG_{name}.txt").write_text("\n".join(lines) + "\n")
    for name in ("ign", "ppgn"):
        words = ["crossval", str(folder), "--model", name, "--folds", "2", "--jobs", "1"]
        line = refused([*words, "--out", str(tmp_path / name)], capsys)
        assert "graph 3 has 701 nodes" in line
        assert not list((tmp_path / name).glob("fold-*"))
