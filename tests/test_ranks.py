"""Attention on every rank against dense loops over its formula, the paper's layer and symmetry."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

import families
from cell_attention import CellAttentionNetwork, CellComplex, NetworkConfig, lift, load_dataset
from cell_attention.nn.attention import CellAttention
from cell_attention.nn.hearing import hear
from cell_attention.nn.norm import NormedActivation
from cell_attention.nn.rank_attention import NEIGHBOURHOODS, RankAttention
from cell_attention.nn.rank_network import RankNetwork
from cell_attention.testing import (
    assert_batching_is_harmless,
    assert_permutation_equivariant,
    assert_permutation_invariant,
)
from cell_attention.topology import neighbourhoods

ALL = ("nodes", "lower", "upper", "polygons", "faces", "cofaces")
SIZES = ("num_nodes", "num_edges", "num_polygons")


def random_graphs(count: int = 6, seed: int = 0) -> list[nx.Graph]:
    random = np.random.default_rng(seed)
    kinds = list(families.FAMILIES.values())
    return [kinds[int(random.integers(len(kinds)))](random) for _ in range(count)]


def with_features(complexes: CellComplex, width: int = 5, seed: int = 0) -> CellComplex:
    generator = torch.Generator().manual_seed(seed)
    nodes = torch.randn(complexes.num_nodes, width, dtype=torch.float64, generator=generator)
    edges = torch.randn(complexes.num_edges, 2, dtype=torch.float64, generator=generator)
    return replace(complexes, node_features=nodes, edge_features=edges)


def every_rank(**changes: object) -> NetworkConfig:
    usual = {
        "design": "ranks", "hidden": (3, 4), "heads": (2, 2), "activation": "relu",
        "pooling": "none", "layer_readout": "cat", "neighbourhoods": ALL,
    }  # fmt: skip
    return NetworkConfig(**{**usual, **changes})  # type: ignore[arg-type]


def faces_of(complexes: CellComplex) -> dict[tuple[int, int], set[int]]:
    """(rank, cell) → its faces, from the public incidence alone."""
    faces: dict[tuple[int, int], set[int]] = {}
    for edge, ends in enumerate(complexes.edge_nodes.T.tolist()):
        faces[1, edge] = set(ends)
    for edge, polygon in complexes.polygon_edges.T.tolist():
        faces.setdefault((2, polygon), set()).add(edge)
    return faces


def triples_of(complexes: CellComplex, rank: int, side: str) -> set[tuple[int, int, int]]:
    """All (receiver, sender, shared cell) by brute force over pairs of cells."""
    faces, count = faces_of(complexes), getattr(complexes, SIZES[rank])
    found = set()
    for one, other in product(range(count), repeat=2):
        if one == other:
            continue
        if side == "lower":
            shared = faces[rank, one] & faces[rank, other]
        else:
            above = range(getattr(complexes, SIZES[rank + 1]))
            shared = {cell for cell in above if {one, other} <= faces[rank + 1, cell]}
        found |= {(one, other, cell) for cell in shared}
    return found


@pytest.mark.parametrize("name", NEIGHBOURHOODS)
def test_a_block_hears_only_itself_and_many_blocks_compute_the_same_bits_as_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    config = every_rank(neighbourhoods=(name, "faces"))
    network = CellAttentionNetwork(config, 5, 2, 2, kernel="fused").double().eval()
    found = []
    for size in (1, 10**9):
        monkeypatch.setattr(neighbourhoods, "BLOCK", size)
        complexes = with_features(lift(random_graphs(12)))
        near = complexes.neighbourhood(*NEIGHBOURHOODS[name])
        receivers, incidences = near.blocks
        assert receivers[[0, -1]].tolist() == [0, near.start.size(0) - 1]
        assert incidences[[0, -1]].tolist() == [0, near.sender.size(0)]
        assert (len(receivers) > 3) == (size == 1)
        for first, last, begin, end in zip(
            receivers, receivers[1:], incidences, incidences[1:], strict=False
        ):
            heard = near.heard[near.start[first] : near.start[last]]
            assert ((heard >= begin) & (heard < end)).all()
        network.zero_grad()
        logits = network(complexes)
        logits.square().sum().backward()
        grads = [p.grad for p in network.parameters() if p.grad is not None]
        found.append([logits, *grads])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", NEIGHBOURHOODS)
@pytest.mark.parametrize("family", families.FAMILIES)
def test_triples_are_all_pairs_with_all_cells_that_they_share(name: str, family: str) -> None:
    complexes = lift(families.FAMILIES[family](np.random.default_rng(5)), 6)
    rank, side = NEIGHBOURHOODS[name]
    listed = list(map(tuple, complexes.neighbourhood(rank, side).triples.T.tolist()))
    assert len(listed) == len(set(listed))
    assert set(listed) == triples_of(complexes, rank, side)
    assert listed == sorted(listed, key=lambda triple: triple[0])


def test_triples_have_the_pairs_of_the_paper() -> None:
    complexes = load_dataset("MUTAG")
    for triples, pairs in (
        (complexes.lower_triples, complexes.lower_pairs),
        (complexes.upper_triples, complexes.upper_pairs),
    ):
        assert torch.equal(triples[:2].unique(dim=1), pairs)


def test_edges_that_share_two_polygons_hear_each_other_through_both() -> None:
    # Norbornane's bridge: opposite pairs of edges lie on two of its rings together.
    complexes = lift("C1CC2CCC1C2")
    assert complexes.upper_triples.size(1) > complexes.upper_pairs.size(1)


# The layer against its formula -------------------------------------------------------------------


def dense_round(
    layer: RankAttention, cells: list[Tensor], complexes: CellComplex
) -> list[list[Tensor]]:
    """z of every cell, one triple at a time, from the columns that `plan` names."""
    plan, size = layer.plan, layer.plan.width // layer.plan.heads
    joints = [p(values) for p, values in zip(layer.project, cells, strict=True)]
    totals = [[row[: plan.width].clone() for row in joint] for joint in joints]
    for step in plan.hearings:
        rank, side = NEIGHBOURHOODS[step.name]
        triples = triples_of(complexes, rank, side)
        for e in range(len(totals[rank])):
            mine = sorted((k, c) for one, k, c in triples if one == e)
            for h in range(plan.heads):
                logits = []
                for k, c in mine:
                    score = joints[rank][e, step.query + h] + joints[rank][k, step.key + h]
                    if step.shared_key >= 0:
                        score = score + joints[step.through][c, step.shared_key + h]
                    logits.append(score if score > 0 else plan.slope * score)
                norm = sum(math.e**logit for logit in logits)
                for (k, c), logit in zip(mine, logits, strict=True):
                    at = step.value + h * size
                    said = joints[rank][k, at : at + size]
                    if step.shared_value >= 0:
                        at = step.shared_value + h * size
                        said = said + joints[step.through][c, at : at + size]
                    weight = math.e**logit / norm
                    if plan.weights == "gate":
                        weight = 1 / (1 + math.e**-logit)
                    both = slice(h * size, (h + 1) * size)
                    totals[rank][e][both] = totals[rank][e][both] + weight * said.clamp(min=0)
    faces = faces_of(complexes)
    for rank, other, column in plan.sums:
        for cell in range(len(totals[rank])):
            if other < rank:
                near = faces[rank, cell]
            else:
                above = getattr(complexes, SIZES[other])
                near = {one for one in range(above) if cell in faces[other, one]}
            for one in near:
                block = joints[other][one, column : column + plan.width]
                totals[rank][cell] = totals[rank][cell] + block
    return totals


@pytest.mark.parametrize("kernel", ["torch", "fused"])
@pytest.mark.parametrize("weights", ["softmax", "gate"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("voices", ["one", "each"])
def test_a_round_is_its_formula_in_values_and_gradients(
    kernel: str, weights: str, shared: bool, voices: str
) -> None:
    torch.manual_seed(1)
    complexes = lift("C1CC2CCC1C2O")
    layer = RankAttention(
        (3, 4, 5), 2, 2, neighbourhoods=ALL, shared=shared, weights=weights, voices=voices,
        kernel=kernel,
    ).double()  # type: ignore[arg-type]  # fmt: skip
    cells = [
        torch.randn(getattr(complexes, size), width, dtype=torch.float64, requires_grad=True)
        for size, width in zip(SIZES, (3, 4, 5), strict=True)
    ]
    found = layer(cells, complexes).cells
    expected = [torch.stack(rows) for rows in dense_round(layer, cells, complexes)]
    pull = [torch.randn_like(values) for values in found]
    grads = []
    for side in (found, expected):
        total = sum((values * g).sum() for values, g in zip(side, pull, strict=True))
        grads.append(torch.autograd.grad(total, [*cells, *layer.parameters()]))  # type: ignore[arg-type]
    for one, other in zip((*found, *grads[0]), (*expected, *grads[1]), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weights", ["softmax", "gate", "sum"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
@pytest.mark.parametrize(
    ("voices", "size", "heads"), [("one", 5, 3), ("one", 16, 4), ("each", 5, 3)]
)
def test_kernels_equal_plain_torch(
    weights: str, dtype: torch.dtype, tolerance: float, voices: str, size: int, heads: int
) -> None:
    torch.manual_seed(2)
    complexes = load_dataset("MUTAG")[range(20)]
    layer = RankAttention(
        (7, 7, 7), size, heads, neighbourhoods=ALL, weights=weights, voices=voices
    ).to(dtype)  # type: ignore[arg-type]  # fmt: skip
    cells = [
        torch.randn(getattr(complexes, name), 7, dtype=dtype, requires_grad=True) for name in SIZES
    ]
    pull = [torch.randn(values.size(0), size * heads, dtype=dtype) for values in cells]
    results = []
    for kernel in ("torch", "fused"):
        layer.kernel = kernel  # type: ignore[assignment]
        found = layer(cells, complexes)
        total = sum((values * g).sum() for values, g in zip(found.cells, pull, strict=True))
        grads = torch.autograd.grad(total, [*cells, *layer.parameters()])  # type: ignore[arg-type]
        results.append([*found.cells, *found.weights.values(), *grads])
    for one, other in zip(*results, strict=True):
        assert torch.allclose(
            one, other, rtol=tolerance, atol=tolerance * float(one.detach().abs().max())
        )


def test_edges_alone_without_the_shared_cell_are_the_layer_of_the_paper() -> None:
    torch.manual_seed(3)
    complexes = load_dataset("MUTAG")[range(10)]
    paper = CellAttention(6, 4, 3, activation="identity", negative_slope=0.2).double()
    edges = torch.randn(complexes.num_edges, 6, dtype=torch.float64)
    expected = paper(edges, complexes.lower_pairs, complexes.upper_pairs)
    itself, lower, upper = paper.project.weight.split(paper.parts)
    total = (1.0 + paper.epsilon) * edges @ itself.T
    for weight, vectors, side in (
        (lower, paper.lower, "lower"), (upper, paper.upper, "upper"),
    ):  # fmt: skip
        values = (edges @ weight.T).view(-1, 3, 4)
        heard = hear(
            complexes.neighbourhood(1, side),  # type: ignore[arg-type]
            values,
            query=(values * vectors.receiver).sum(-1),
            key=(values * vectors.sender).sum(-1),
            rectified=False,
        )
        total = total + heard.messages.flatten(1)
    # MUTAG's rings share at most one polygon per pair of edges, so triples are pairs.
    assert torch.allclose(total, expected.edges, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NEIGHBOURHOODS)
def test_weights_of_a_receiver_sum_to_one(name: str) -> None:
    torch.manual_seed(4)
    complexes = lift(random_graphs(8), 6)
    layer = RankAttention((3, 3, 3), 2, 2, neighbourhoods=ALL)
    cells = [torch.randn(getattr(complexes, size), 3) for size in SIZES]
    weights = layer(cells, complexes).weights[name]
    receiver = complexes.neighbourhood(*NEIGHBOURHOODS[name]).receiver
    sums = torch.zeros(int(receiver.max()) + 1, 2).index_add(0, receiver, weights)
    assert torch.allclose(sums[receiver.unique()], torch.ones(1))


# The network -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["softmax", "gate", "sum"])
@pytest.mark.parametrize("pooling", ["none", "hierarchical", "global"])
@pytest.mark.parametrize(("voices", "update"), [("one", "linear"), ("each", "mlp")])
def test_the_network_does_not_depend_on_the_numbering(
    weights: str, pooling: str, voices: str, update: str
) -> None:
    torch.manual_seed(5)
    config = every_rank(weights=weights, pooling=pooling, voices=voices, update=update)
    graphs = [*random_graphs(), nx.cycle_graph(6), nx.petersen_graph(), nx.cubical_graph()]
    complexes = with_features(lift(graphs, 6))
    network = CellAttentionNetwork(config, 5, 2, 3)
    assert isinstance(network, RankNetwork)
    assert_permutation_invariant(network, complexes)
    symmetric = with_features(lift([nx.cycle_graph(6), nx.petersen_graph(), nx.cubical_graph()], 6))
    same = replace(
        symmetric,
        node_features=torch.ones_like(symmetric.node_features),
        edge_features=torch.ones_like(symmetric.edge_features),  # type: ignore[arg-type]
    )
    assert_permutation_invariant(network, same)
    if pooling == "none":
        assert_permutation_equivariant(network, complexes)


@pytest.mark.parametrize("pooling", ["none", "hierarchical", "global"])
@pytest.mark.parametrize("update", ["linear", "mlp"])
def test_a_batch_is_its_members_one_by_one(pooling: str, update: str) -> None:
    torch.manual_seed(6)
    graphs = [*random_graphs(), nx.empty_graph(1), nx.empty_graph(3), nx.path_graph(2)]
    complexes = with_features(lift(graphs, 6))
    network = CellAttentionNetwork(every_rank(pooling=pooling, update=update), 5, 2, 3).double()
    assert_batching_is_harmless(network, complexes, tolerance=1e-9)


@pytest.mark.parametrize("ranks", [(0, 1, 2), (0, 1), (1, 2), (1,)])
@pytest.mark.parametrize("kernel", ["torch", "fused"])
def test_the_smallest_graphs_are_predicted_and_trained(ranks: tuple[int, ...], kernel: str) -> None:
    torch.manual_seed(7)
    for graphs in (
        [nx.empty_graph(1)],
        [nx.empty_graph(3)],
        [nx.path_graph(2)],
        [nx.path_graph(5)],
    ):
        complexes = with_features(lift(graphs, 6))
        network = CellAttentionNetwork(every_rank(ranks=ranks), 5, 2, 2, kernel=kernel).double()  # type: ignore[arg-type]
        outputs = network(complexes)
        outputs.sum().backward()
        assert outputs.shape == (1, 2)
        assert bool(outputs.isfinite().all())
        grads = [p.grad for p in network.parameters() if p.grad is not None]
        assert all(bool(grad.isfinite().all()) for grad in grads)


def test_isolated_nodes_count() -> None:
    torch.manual_seed(8)
    network = CellAttentionNetwork(every_rank(), 1, 0, 2).double().eval()
    found = []
    for count in (1, 2):
        complexes = lift(nx.disjoint_union(nx.cycle_graph(3), nx.empty_graph(count)), 6)
        ones = torch.ones(complexes.num_nodes, 1, dtype=torch.float64)
        found.append(network(replace(complexes, node_features=ones)).detach())
    assert float((found[0] - found[1]).abs().max()) > 1e-6


def test_an_edge_hears_at_which_end_its_neighbours_are() -> None:
    # C–N with an F at one end: the same edges, and each hears the same pairs; only the node that
    # is shared says which end it is.
    torch.manual_seed(9)
    features = {"C": [1.0, 0, 0], "N": [0, 1.0, 0], "F": [0, 0, 1.0]}

    def complex_of(elements: str, edges: list[tuple[int, int]]) -> CellComplex:
        nodes = torch.tensor([features[e] for e in elements], dtype=torch.float64)
        return CellComplex.from_cells(edges, node_features=nodes)

    at_c = complex_of("CNF", [(0, 1), (0, 2)])
    at_n = complex_of("CNF", [(0, 1), (1, 2)])
    edge_features = torch.ones(2, 1, dtype=torch.float64)
    config = every_rank(hidden=(3,), heads=(2,), neighbourhoods=("lower",), ranks=(0, 1))
    for shared, differ in ((True, True), (False, False)):
        network = CellAttentionNetwork(replace(config, shared_cell=shared), 3, 1, 2)
        layer = network.double().layers[0].attention  # type: ignore[union-attr, index]
        same = torch.ones(2, 6, dtype=torch.float64)
        heard = [
            layer([values.node_features.repeat(1, 2), same, same[:0]], replace(values, edge_features=edge_features)).cells[1][0]  # noqa: E501
            for values in (at_c, at_n)
        ]  # fmt: skip
        assert bool((heard[0] - heard[1]).abs().max() > 1e-6) == differ


def test_weights_of_a_trace_belong_to_the_pairs() -> None:
    torch.manual_seed(10)
    complexes = load_dataset("MUTAG")[range(5)]
    width = complexes.edge_features.size(1) if complexes.edge_features is not None else 0
    config = every_rank(pooling="hierarchical", ratio=0.5)
    network = CellAttentionNetwork(config, complexes.node_features.size(1), width, 2).eval()
    trace = network.trace(complexes)
    assert torch.equal(trace.logits, network(complexes))
    for layer in trace.layers:
        for weights, pairs in (
            (layer.lower, layer.complexes.lower_pairs),
            (layer.upper, layer.complexes.upper_pairs),
        ):
            assert weights.size(0) == pairs.size(1)
            sums = weights.new_zeros(layer.complexes.num_edges, 2).index_add(0, pairs[0], weights)
            assert torch.allclose(sums[pairs[0]], torch.ones(1), atol=1e-5)
        assert layer.polygons is not None
        assert layer.polygon_rows is not None
        assert layer.polygons.size(0) == layer.polygon_rows.numel()
        kept = set(layer.edges.tolist())
        edge, polygon = trace.complexes.polygon_edges
        for row in layer.polygon_rows.tolist():
            assert set(edge[polygon == row].tolist()) <= kept


@pytest.mark.parametrize("activation", ["relu", "elu", "tanh"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_the_compiled_norm_equals_torch(
    activation: str, dtype: torch.dtype, tolerance: float
) -> None:
    values = torch.randn(100, 7, dtype=dtype, requires_grad=True)
    pull = torch.randn(100, 7, dtype=dtype)
    results = []
    for kernel in ("torch", "fused"):
        torch.manual_seed(1)
        norm = NormedActivation(7, "batch", activation, kernel=kernel).to(dtype)  # type: ignore[arg-type]
        torch.nn.init.uniform_(norm.norm.weight)  # type: ignore[arg-type]
        found = norm(values)
        grads = torch.autograd.grad((found * pull).sum(), [values, *norm.parameters()])
        results.append([found, *grads, *norm.buffers()])
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one.double(), other.double(), rtol=0, atol=tolerance * 10)


# What it tells apart -----------------------------------------------------------------------------


def untrained(graphs: list[nx.Graph], max_polygon: int) -> Tensor:
    torch.manual_seed(0)
    config = every_rank(max_polygon=max_polygon, hidden=(8, 8, 8), heads=(2, 2, 2), norm="none")
    network = CellAttentionNetwork(config, 1, 0, 4).double().eval()
    outputs = []
    for first in range(0, len(graphs), 16):
        complexes = lift(graphs[first : first + 16], max_polygon)
        ones = torch.ones(complexes.num_nodes, 1, dtype=torch.float64)
        with torch.no_grad():
            outputs.append(network(replace(complexes, node_features=ones)))
    return torch.cat(outputs)


def told_apart(outputs: Tensor) -> int:
    least = 1e-6 * outputs.abs().max()
    return sum(
        int(((outputs[i + 1 :] - row).abs().amax(1) > least).sum())
        for i, row in enumerate(outputs[:-1])
    )


def test_decalin_is_told_from_bicyclopentyl() -> None:
    graphs = [
        nx.from_edgelist(lift(smiles).edge_nodes.T.tolist())
        for smiles in ("C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1")
    ]
    assert told_apart(untrained(graphs, 6)) == 1


@pytest.mark.parametrize("family", ["sr16622", "sr251256", "sr261034", "sr281264"])
def test_strongly_regular_graphs_are_told_apart(data_dir: Path, family: str) -> None:
    graphs = nx.read_graph6(data_dir / "SR_graphs" / f"{family}.g6")
    assert told_apart(untrained(graphs, 5)) == len(graphs) * (len(graphs) - 1) // 2
