"""The network against dense loops over the paper's formulas, PyG's layers and Theorem 1."""

import copy
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GATConv, GATv2Conv

import families
from cell_attention import CellComplex, lift, load_dataset
from cell_attention.errors import InputError
from cell_attention.evaluation.ablation import PAPER_ABLATIONS
from cell_attention.nn import NeighbourAttention
from cell_attention.nn.attention import CellAttention
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.edge_network import EdgeNetwork
from cell_attention.nn.functional import segment_softmax
from cell_attention.nn.lift import AttentionalLift
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.nn.pooling import EdgePooling, best_rows
from cell_attention.testing import (
    assert_batching_is_harmless,
    assert_permutation_equivariant,
    assert_permutation_invariant,
)
from cell_attention.training.config import TrainingConfig

PRESETS = ("MUTAG", "PTC_MM", "PROTEINS", "NCI1", "NCI109")


def elu(value: float, alpha: float) -> float:
    return value if value > 0 else alpha * (math.exp(value) - 1)


def leaky(value: float, slope: float) -> float:
    return value if value > 0 else slope * value


def dense_round(
    layer: CellAttention, edges: Tensor, lower: list[list[int]], upper: list[list[int]]
) -> list[list[float]]:
    """φ((1+ε)W_s h + Σ α W_d h + Σ α W_u h), one number at a time."""
    heads, size = layer.heads, layer.out_channels
    w_self, w_lower, w_upper = layer.project.weight.split(layer.parts)
    result = []
    for e in range(edges.size(0)):
        total = [(1 + float(layer.epsilon)) * float(w @ edges[e]) for w in w_self]
        for weight, vectors, near in (
            (w_lower, layer.lower, lower[e]),
            (w_upper, layer.upper, upper[e]),
        ):
            messages = [[0.0] * size for _ in range(heads)]
            for h in range(heads):
                part = weight[h * size : (h + 1) * size]
                projected = {k: part @ edges[k] for k in [e, *near]}
                logits = {}
                for k in near:
                    if layer.score == "gatv2":
                        both = [leaky(float(v), 0.1) for v in projected[e] + projected[k]]
                        logits[k] = sum(
                            a * float(b) for a, b in zip(both, vectors.receiver[h], strict=True)
                        )
                    else:
                        raw = projected[e] @ vectors.receiver[h] + projected[k] @ vectors.sender[h]
                        logits[k] = leaky(float(raw), 0.1)
                scale = sum(math.exp(value) for value in logits.values())
                for f in range(size):
                    said = [math.exp(logits[k]) / scale * float(projected[k][f]) for k in near]
                    if said:
                        messages[h][f] = {
                            "sum": sum(said), "mean": sum(said) / len(said), "max": max(said)
                        }[layer.aggregate]  # fmt: skip
            for position in range(len(total)):
                if layer.concat:
                    total[position] += messages[position // size][position % size]
                else:
                    total[position] += sum(messages[h][position] for h in range(heads)) / heads
        result.append([elu(value, 0.1) for value in total])
    return result


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize("aggregate", ["sum", "mean", "max"])
def test_a_layer_equals_a_loop_over_the_formulas_in_values_and_gradients(
    heads: int, concat: bool, score: str, aggregate: str
) -> None:
    torch.manual_seed(0)
    graph = nx.disjoint_union(nx.circular_ladder_graph(4), nx.path_graph(3))
    one = lift(graph)
    layer = CellAttention(
        3, 2, heads, concat=concat, score=score, aggregate=aggregate  # type: ignore[arg-type]
    ).double()  # fmt: skip
    edges = torch.randn(one.num_edges, 3, dtype=torch.float64, requires_grad=True)
    near = [
        [pairs[1][pairs[0] == e].tolist() for e in range(one.num_edges)]
        for pairs in (one.lower_pairs, one.upper_pairs)
    ]
    got = layer(edges, one.lower_pairs, one.upper_pairs)
    with torch.no_grad():
        expected = torch.tensor(dense_round(layer, edges, *near), dtype=torch.float64)
    assert torch.allclose(got.edges, expected, rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(
        lambda values: layer(values, one.lower_pairs, one.upper_pairs).edges, (edges,)
    )
    names, weights = zip(*layer.named_parameters(), strict=True)

    def by_weights(*values: Tensor) -> Tensor:
        given = dict(zip(names, values, strict=True))
        arguments = (edges.detach(), one.lower_pairs, one.upper_pairs)
        result: Tensor = torch.func.functional_call(layer, given, arguments).edges
        return result

    trainable = [weight for weight in weights if weight.requires_grad]
    assert trainable
    assert torch.autograd.gradcheck(by_weights, tuple(w.detach().requires_grad_() for w in weights))


@pytest.mark.parametrize("name", ["MUTAG", "PTC_MM", "PTC_MR", "PROTEINS", "NCI1", "NCI109"])
@pytest.mark.parametrize("activation", ["leaky_relu", "tanh", "relu", "identity"])
def test_the_fused_kernel_equals_the_plain_one_in_values_and_gradients(
    name: str, activation: str, data_dir: Path
) -> None:
    batch = load_dataset(name, data_dir=data_dir)[:64]
    torch.manual_seed(0)
    plain = CellAttention(
        12, 8, 3, attention_activation=activation, learn_epsilon=True, kernel="torch"  # type: ignore[arg-type]
    )  # fmt: skip
    fused = copy.deepcopy(plain)
    fused.kernel = "fused"
    given, upstream = torch.randn(batch.num_edges, 12), torch.randn(batch.num_edges, 24)
    results = []
    for layer in (plain, fused):
        edges = given.clone().requires_grad_()
        attended = layer(edges, batch.lower_pairs, batch.upper_pairs)
        attended.edges.backward(upstream)
        grads = [parameter.grad for parameter in layer.parameters()]
        results.append([attended.edges, attended.lower, attended.upper, edges.grad, *grads])
    # Some gradients vanish in exact arithmetic, so that only their noise is left to compare:
    # what counts is the size of the layer's gradients as a whole.
    scale = max(float(value.detach().abs().max()) for value in results[0])
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5 * scale)


def test_the_fused_kernel_passes_gradcheck_and_repeats_itself_bit_for_bit() -> None:
    one = lift(nx.circular_ladder_graph(5))
    torch.manual_seed(0)
    layer = CellAttention(3, 2, 2, attention_activation="tanh", learn_epsilon=True, kernel="fused")
    layer.double()
    edges = torch.randn(one.num_edges, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda values: layer(values, one.lower_pairs, one.upper_pairs).edges, (edges,)
    )
    first, second = (layer(edges, one.lower_pairs, one.upper_pairs).edges for _ in range(2))
    assert torch.equal(first, second)


def test_the_fused_kernel_is_refused_where_it_cannot_be_used() -> None:
    one = lift(nx.cycle_graph(4))
    edges = torch.randn(4, 3)
    for options, reason in (
        ({"score": "gatv2"}, "score 'gatv2'"),
        ({"aggregate": "max"}, "aggregate 'max'"),
        ({"dropout": 0.5}, "attention dropout"),
        ({"activation": "gelu"}, "attention activation 'gelu'"),
    ):
        layer = NeighbourAttention(3, 2, kernel="fused", **options)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=f"kernel 'fused' cannot be used with {reason}"):
            layer(edges, one.lower_pairs)
    layer = NeighbourAttention(3, 2, kernel="fused")
    with pytest.raises(InputError, match="pairs that are not sorted by receiver"):
        layer(edges, one.lower_pairs.flip(1))
    layer.kernel = "auto"  # takes them the other way
    expected = layer(edges, one.lower_pairs).messages
    assert torch.allclose(layer(edges, one.lower_pairs.flip(1)).messages, expected, atol=1e-6)
    with pytest.raises(InputError, match="kernel must be one of 'auto', 'torch', 'fused'"):
        NeighbourAttention(3, 2, kernel="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize("heads", [1, 4])
def test_lower_attention_equals_gat_on_the_line_graph(heads: int) -> None:
    torch.manual_seed(1)
    one = load_dataset("MUTAG")[:20]
    edges = torch.randn(one.num_edges, 6)
    ours = NeighbourAttention(6, 5, heads, negative_slope=0.2)
    theirs = GATConv(6, 5, heads, add_self_loops=False, bias=False, negative_slope=0.2)
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.project.weight)
        theirs.att_dst.copy_(ours.vectors.receiver.unsqueeze(0))
        theirs.att_src.copy_(ours.vectors.sender.unsqueeze(0))
    heard = ours(edges, one.lower_pairs)
    expected, (_, weights) = theirs(edges, one.lower_pairs.flip(0), return_attention_weights=True)
    assert torch.allclose(heard.messages, expected, atol=1e-6)
    assert torch.allclose(heard.weights, weights, atol=1e-6)


@pytest.mark.parametrize("heads", [1, 4])
def test_gatv2_scores_equal_gatv2_on_the_line_graph(heads: int) -> None:
    torch.manual_seed(2)
    one = load_dataset("MUTAG")[:20]
    edges = torch.randn(one.num_edges, 6)
    ours = NeighbourAttention(6, 5, heads, score="gatv2", negative_slope=0.2)
    theirs = GATv2Conv(6, 5, heads, add_self_loops=False, bias=False, share_weights=True)
    with torch.no_grad():
        theirs.lin_l.weight.copy_(ours.project.weight)
        theirs.lin_l.bias = None
        theirs.lin_r.bias = None
        theirs.att.copy_(ours.vectors.receiver.unsqueeze(0))
    expected = theirs(edges, one.lower_pairs.flip(0))
    assert torch.allclose(ours(edges, one.lower_pairs).messages, expected, atol=1e-6)


def test_softmax_of_one_group_ignores_huge_logits_in_another() -> None:
    weights = segment_softmax(torch.tensor([[1e4], [0.0], [0.0]]), torch.tensor([0, 1, 1]), 2)
    assert weights.squeeze().tolist() == [1.0, 0.5, 0.5]


@pytest.mark.parametrize("kind", ["symmetric", "paper", "none"])
def test_the_lift_equals_its_formula(kind: str) -> None:
    torch.manual_seed(3)
    nodes = torch.randn(5, 4)
    edge_nodes = torch.tensor([[0, 1, 2], [3, 4, 4]])
    features = torch.randn(3, 2)
    layer = AttentionalLift(4, 6, kind, activation="sigmoid")  # type: ignore[arg-type]
    got = layer(nodes, edge_nodes, features)
    for row, (i, j) in enumerate(edge_nodes.T.tolist()):
        if kind == "none":
            expected = (nodes[i] * nodes[j]).sum().unsqueeze(0)
        else:
            joint = torch.cat([layer.weight[0], layer.weight[1]], 1)  # (F⁰, 2F_n)
            one_way = torch.sigmoid(joint @ torch.cat([nodes[i], nodes[j]]))
            back = torch.sigmoid(joint @ torch.cat([nodes[j], nodes[i]]))
            expected = one_way if kind == "paper" else (one_way + back) / 2
        assert torch.allclose(got[row], torch.cat([expected, features[row]]), atol=1e-6)


SYMMETRIC = [
    nx.cycle_graph(6), nx.cycle_graph(9), nx.complete_graph(5), nx.cubical_graph(),
    nx.petersen_graph(), nx.circular_ladder_graph(3), nx.circular_ladder_graph(6),
]  # fmt: skip


def constant(graphs: list[nx.Graph], width: int) -> CellComplex:
    complexes = lift(graphs)
    return replace(complexes, node_features=torch.ones(complexes.num_nodes, width))


def varied(graphs: list[nx.Graph], width: int) -> CellComplex:
    complexes = lift(graphs)
    random = torch.Generator().manual_seed(5)
    return replace(
        complexes, node_features=torch.rand(complexes.num_nodes, width, generator=random)
    )


def made(config: NetworkConfig, node_features: int, edge_features: int = 0) -> CellAttentionNetwork:
    torch.manual_seed(11)
    network = CellAttentionNetwork(config, node_features, edge_features, 2)
    complexes = varied(families.graphs(34, seed=6), node_features)
    if edge_features:
        complexes = replace(complexes, edge_features=torch.rand(complexes.num_edges, edge_features))
    network(complexes)  # so that batch normalisation has seen something
    return network.eval()


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.75, 1.0])
def test_theorem_1_holds_with_pooling_on_random_and_on_symmetric_graphs(
    name: str, ratio: float
) -> None:
    config = replace(NetworkConfig.paper(name), lift="symmetric", ratio=ratio)
    network = made(config, 3)
    assert_permutation_invariant(network, varied(families.graphs(34, seed=7), 3))
    assert_permutation_invariant(network, constant(SYMMETRIC, 3))
    assert_permutation_invariant(network, varied(SYMMETRIC, 3))


@pytest.mark.parametrize("name", PRESETS)
def test_edge_embeddings_are_equivariant_without_pooling(name: str) -> None:
    config = replace(NetworkConfig.paper(name), lift="symmetric", pooling="none", pool_at="every")
    assert_permutation_equivariant(made(config, 3), varied(families.graphs(34, seed=8), 3))


def test_the_papers_own_lift_is_not_invariant_and_the_check_notices() -> None:
    network = made(NetworkConfig.paper("PTC_MM"), 3)
    with pytest.raises(AssertionError, match="changes the output by"):
        assert_permutation_invariant(network, varied(families.graphs(34, seed=7), 3))


@pytest.mark.parametrize("name", PRESETS)
def test_a_batch_equals_its_members_one_by_one(name: str) -> None:
    assert_batching_is_harmless(
        made(NetworkConfig.paper(name), 3), varied(families.graphs(40, seed=9), 3)
    )


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.5, 0.55, 0.6, 0.75, 0.9])
def test_pooling_keeps_exactly_k_edges_for_every_size(ratio: float) -> None:
    sizes = torch.arange(0, 1_101)
    group = torch.arange(1_101).repeat_interleave(sizes)
    places = torch.cat(
        [torch.randperm(int(n), generator=torch.Generator().manual_seed(int(n))) for n in sizes]
    )
    kept = best_rows(places.double(), group, 1_101, ratio=ratio)
    expected = [math.ceil(Fraction(str(ratio)) * n) for n in range(1_101)]
    assert torch.bincount(group[kept], minlength=1_101).tolist() == expected
    for n in (1, 2, 25, 1_100):
        mine = places[kept[group[kept] == n]]
        assert sorted(mine.tolist()) == list(range(n - expected[n], n))


def test_ties_with_the_last_one_kept_are_kept() -> None:
    group = torch.zeros(6, dtype=torch.int64)
    assert best_rows(torch.ones(6), group, 1, ratio=0.5).tolist() == [0, 1, 2, 3, 4, 5]
    some = torch.tensor([3.0, 1, 2, 2, 2, 0])
    assert best_rows(some, group, 1, ratio=0.5).tolist() == [0, 2, 3, 4]
    nearly = torch.tensor([2.0, 1.0, 1.0 - 1e-6, 0.5, 0.0, 0.0])
    assert best_rows(nearly, group, 1, ratio=1 / 3).tolist() == [0, 1, 2]


def test_after_every_pooling_layer_the_complex_is_sound() -> None:
    config = NetworkConfig.edges(hidden=(8, 8, 8), heads=(2, 2, 2), ratio=0.6)
    complexes = varied(families.graphs(60, seed=10), 3)
    trace = made(config, 3).trace(complexes)
    assert len(trace.layers) == 3
    for layer, following in pairwise(trace.layers):
        seen, left = layer.complexes, following.complexes
        sizes = torch.bincount(seen.edge_complex, minlength=60)
        kept = torch.bincount(left.edge_complex, minlength=60)
        least = torch.tensor([math.ceil(Fraction("0.6") * int(n)) for n in sizes])
        assert bool((kept >= least).all())
        assert (left.incidence(1) @ left.incidence(2)).count_nonzero() == 0
        assert torch.equal(complexes.edge_nodes[:, layer.edges], left.edge_nodes)
        sides = left.incidence(2, signed=False)
        supported = (sides @ sides.T).tocoo()
        pairs = set(zip(supported.row.tolist(), supported.col.tolist(), strict=True))
        assert {tuple(pair) for pair in left.upper_pairs.T.tolist()} <= pairs
    exact = 0
    for layer in trace.layers:
        assert layer.score is not None
        members = layer.complexes.edge_complex
        kept = torch.bincount(members[layer.kept], minlength=60)
        for number, size in enumerate(torch.bincount(members, minlength=60).tolist()):
            wanted = math.ceil(Fraction("0.6") * size)
            ranked = layer.score[members == number].sort(descending=True).values
            if wanted < size and ranked[wanted - 1] - ranked[wanted] > 1e-3:
                assert int(kept[number]) == wanted
                exact += 1
    assert exact > 60
    for layer in trace.layers:
        for pairs, weights in (
            (layer.complexes.lower_pairs, layer.lower), (layer.complexes.upper_pairs, layer.upper),
        ):  # fmt: skip
            total = weights.new_zeros(layer.complexes.num_edges, 2).index_add(0, pairs[0], weights)
            heard = torch.bincount(pairs[0], minlength=layer.complexes.num_edges) > 0
            assert torch.allclose(total[heard], torch.ones_like(total[heard]), atol=1e-6)


def test_a_trace_has_the_logits_of_the_forward_pass_bit_for_bit() -> None:
    network = made(NetworkConfig.paper("NCI1"), 3)
    complexes = varied(families.graphs(40, seed=9), 3)
    assert torch.equal(network.trace(complexes).logits, network(complexes))
    assert torch.equal(network.embed(complexes).complexes, network.trace(complexes).readout)


def test_decalin_and_bicyclopentyl_are_told_apart() -> None:
    decalin, bicyclopentyl = lift("C1CCC2CCCCC2C1"), lift("C1CCC(C1)C1CCCC1")
    assert decalin.num_edges == bicyclopentyl.num_edges == 11
    torch.manual_seed(0)
    widths = [columns.size(1) for columns in (decalin.node_features, decalin.edge_features)]
    network = CellAttentionNetwork(NetworkConfig.edges(), *widths, 2).double().eval()
    outputs = [network(one) for one in (decalin, bicyclopentyl)]
    assert (outputs[0] - outputs[1]).abs().max() > 1e-6 * outputs[0].abs().max()


def test_parameters_per_part_follow_the_papers_counts() -> None:
    config = NetworkConfig.edges(lift_heads=10, hidden=(6, 4), heads=(3, 2), layer_readout="cat")
    counts = CellAttentionNetwork(config, 7, 4, 2).num_parameters()
    assert counts["lift"] == 2 * 7 * 10  # Θ(F⁰ F_n): a ∈ R^{2F_n} per head
    widths = (14, 18, 8)
    attention = sum(
        3 * fin * fout + 2 * 2 * fout for fin, fout in pairwise(widths)
    )  # W_s, W_d, W_u and two vectors with two halves
    assert counts["attention"] == attention
    assert counts["pool"] == 18 + 8  # Θ(F^l)
    assert counts["head"] == (26 * 32 + 32) + (32 * 2 + 2)


def test_a_network_reads_like_its_architecture() -> None:
    config = replace(NetworkConfig.paper("PTC_MM"), lift="symmetric", node_readout=3)
    network = CellAttentionNetwork(config, 20, 4, 2)
    total = sum(p.numel() for p in network.parameters() if p.requires_grad)
    assert repr(network).splitlines() == [
        f"CellAttentionNetwork({total:,} parameters",
        "  lift      polygons of up to 6 edges; symmetric, 20 node features → 32 heads, elu; "
        "4 edge features join  [1,280]",
        "  norm      batch, dropout 0.6  [72]",
        "  attend 1  36 → 2 × 32, cat: 64; gat scores with leaky_relu, attention both, sum"
        "  [7,168]",
        "  norm      elu, batch, dropout 0.6  [128]",
        "  attend 2  64 → 1 × 8, cat: 8; gat scores with leaky_relu, attention both, sum  [1,568]",
        "  norm      elu, batch  [16]",
        "  pool      the best 0.75 of the edges by tanh  [8]",
        "  read out  sum over the edges of the last layer, 3 from the nodes  [60]",
        "  head      11 → 4 → 2, elu, dropout 0.6  [58]",
        ")",
    ]


def test_a_network_on_every_rank_reads_like_its_architecture() -> None:
    config = NetworkConfig(
        hidden=(4, 4), heads=(2, 1), ranks=(0, 1), neighbourhoods=("nodes", "lower", "faces"),
        shared_cell=False, weights="gate", pooling="hierarchical", head_hidden=8,
    )  # fmt: skip
    network = CellAttentionNetwork(config, 7, 4, 2)
    total = sum(p.numel() for p in network.parameters() if p.requires_grad)
    heard = "gate without the shared cell over nodes, lower, faces; batch, relu, dropout 0.1"

    def count(part: torch.nn.Module) -> int:
        return sum(p.numel() for p in part.parameters() if p.requires_grad)

    layers = [count(layer) for layer in network.layers]  # type: ignore[union-attr]
    head = count(network.head) + count(network.head_norm)  # type: ignore[arg-type]
    counted = count(network.counts)  # type: ignore[arg-type]
    described = count(network.descriptors)  # type: ignore[arg-type]
    assert repr(network).splitlines() == [
        f"CellAttentionNetwork({total:,} parameters",
        "  start     polygons of up to 6 edges; 7 node features, 4 edge features → 8 on nodes, "
        f"edges  [{count(network.start)}]",  # type: ignore[arg-type]
        f"  attend 1  2 × 4: 8; {heard}  [{layers[0]}]",
        "  pool      the best 0.75 of the edges by tanh  [8]",
        f"  attend 2  1 × 4: 4; {heard}  [{layers[1]}]",
        "  pool      the best 0.75 of the edges by tanh  [4]",
        "  read out  sum over nodes, edges of every layer",
        f"  head      40 → 8 → 2, batch, relu, dropout 0.5  [{head}]",
        "  count     surroundings of nodes, up to 4 steps; batch, relu, dropout 0.5 → 2  "
        f"[{counted:,}]",
        f"  describe  complexes as wholes → 8 → 8; batch, relu, dropout 0.5 → 2  [{described}]",
        ")",
    ]
    parts = count(network.start) + sum(layers) + 8 + 4 + head + counted + described  # type: ignore[arg-type]
    assert total == parts
    usual = repr(CellAttentionNetwork(NetworkConfig(), 7, 0, 3)).splitlines()
    assert usual[1].split("  [")[0].endswith("; 7 node features → 64 on nodes, edges, polygons")
    every = "softmax over nodes, lower, upper, faces, cofaces; batch, relu, dropout 0.1"
    assert [line.split("  [")[0] for line in usual[2:8]] == [
        f"  attend {layer}  4 × 16: 64; {every}" for layer in (1, 2, 3, 4, 5, 6)
    ]
    assert usual[-4].split("  [")[0] == "  head      1344 → 64 → 3, batch, relu, dropout 0.5"
    earlier = NetworkConfig(hidden=(4,), heads=(1,), voices="each", update="mlp")
    attend = repr(CellAttentionNetwork(earlier, 7, 0, 3)).splitlines()[2]
    assert ", a voice for each; batch, relu, twice, dropout 0.1" in attend


@pytest.mark.parametrize("name", PAPER_ABLATIONS)
@pytest.mark.parametrize("preset", ["PTC_MM", "PROTEINS"])
def test_every_ablation_of_a_preset_is_a_network_that_learns(name: str, preset: str) -> None:
    config = replace(NetworkConfig.paper(preset), **PAPER_ABLATIONS[name])  # type: ignore[arg-type]
    network = made(config, 3).train()
    complexes = varied(families.graphs(34, seed=7), 3)
    network(complexes).square().sum().backward()
    for label, parameter in network.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, label
    trained = {label.rpartition(".")[0] for label, _ in network.named_parameters()}
    assert ("attention.0.lower" in trained) == (name not in ("no attention", "no lower", "uniform"))
    assert ("attention.0.upper" in trained) == (name not in ("no attention", "no upper", "uniform"))


def test_a_graph_without_edges_gets_a_prediction_and_an_empty_batch_none() -> None:
    network = made(NetworkConfig.edges(), 3)
    lonely = varied([nx.empty_graph(2), nx.empty_graph(0)], 3)
    logits = network(lonely)
    assert logits.shape == (2, 2)
    assert torch.equal(logits[0], logits[1])
    assert network(lonely[[]]).shape == (0, 2)
    assert network([]).shape == (0, 2)
    assert network.train()(lonely).isfinite().all()
    counted = made(NetworkConfig.edges(node_readout=4), 3)(lonely)
    assert not torch.equal(counted[0], counted[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": (8,), "heads": (1, 1)}, "one entry per layer, got 1 and 2"),
        ({"hidden": (), "heads": ()}, "one entry per layer"),
        ({"hidden": (8, 4), "heads": (1, 1)}, "equal width, got 8, 4; use layer_readout 'cat'"),
        ({"ratio": 0.0}, r"ratio must lie in \(0, 1\], got 0.0"),
        ({"ratio": 1.5}, r"ratio must lie in \(0, 1\], got 1.5"),
        ({"negative_slope": -0.1}, "negative_slope must not be negative, got -0.1"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"lift_heads": 0}, "lift_heads must be at least 1, got 0"),
        ({"score": "gat2"}, "score must be one of 'gat', 'gatv2', got 'gat2'"),
        ({"hidden": [8, 8]}, r"hidden must be a tuple of whole numbers, got \[8, 8\]"),
        ({"dropout": float("nan")}, "dropout must be finite, got nan"),
        ({"epsilon": "0"}, "epsilon must be a number, got '0'"),
        ({"head_hidden": 8.0}, "head_hidden must be a whole number, got 8.0"),
        ({"learn_epsilon": 1}, "learn_epsilon must be true or false, got 1"),
        ({"max_polygon": 2}, "max_polygon must be at least 3, got 2"),
        ({"max_polygon": 10**12}, "max_polygon must be at most 10,000, got 1000000000000"),
        ({"pool_at": "last"}, "needs pool_at 'every'"),
    ],
)
def test_configurations_that_make_no_network_are_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        NetworkConfig.edges(**changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"preset must be one of MUTAG, PTC_MM.*got 'PTC'"):
        NetworkConfig.paper("PTC")
    with pytest.raises(InputError, match="batch_size must be at least 1, got 0"):
        TrainingConfig.plain(batch_size=0)


def test_features_that_do_not_fit_the_network_are_refused() -> None:
    network = made(NetworkConfig.edges(), 3)
    one = varied([nx.cycle_graph(5)], 3)
    with pytest.raises(InputError, match="node_features must have 3 columns, got 2"):
        network(varied([nx.cycle_graph(5)], 2))
    with pytest.raises(InputError, match="edge_features must have 0 columns, got 1"):
        network(replace(one, edge_features=torch.ones(5, 1)))
    with pytest.raises(InputError, match=r"node_features must be floating point, got torch.int64"):
        network(replace(one, node_features=torch.ones(5, 3, dtype=torch.int64)))
    broken = one.node_features.clone()
    broken[3, 1] = float("nan")
    with pytest.raises(InputError, match="node_features must be finite, row 3 is not"):
        network(replace(one, node_features=broken))
    broken[3, 1] = float("-inf")
    with pytest.raises(InputError, match="node_features must be finite, row 3 is not"):
        network(replace(one, node_features=broken))
    huge = one.node_features.double()
    huge[2, 0] = 1e300  # too large for the network's float32
    with pytest.raises(InputError, match="node_features must be finite, row 2 is not"):
        network(replace(one, node_features=huge))
    with pytest.raises(InputError, match="the complexes are on meta, the network on cpu"):
        network(one.to("meta"))
    with pytest.raises(InputError, match="at least 2 edges in a training batch, got 1"):
        network.train()(varied([nx.path_graph(2)], 3))
    with pytest.raises(InputError, match=r"ratio must lie in \(0, 1\]"):
        EdgePooling(3, ratio=0)


def test_layers_draw_their_parameters_anew() -> None:
    for layer in (
        CellAttention(3, 4, 2, learn_epsilon=True), NeighbourAttention(3, 4), EdgePooling(5),
        AttentionalLift(3, 7),
    ):  # fmt: skip
        before = copy.deepcopy(list(layer.parameters()))
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.fill_(7.0)
        layer.reset_parameters()
        for old, new in zip(before, layer.parameters(), strict=True):
            assert new.shape == old.shape
            assert bool((new != 7.0).all())


@pytest.mark.parametrize("loss", ["classes", "labels", "values"])
def test_classes_labels_and_values_are_learned(loss: str) -> None:
    complexes = load_dataset("MUTAG")[:64]
    torch.manual_seed(0)
    network = CellAttentionNetwork(NetworkConfig.edges(), 7, 4, 3)
    assert complexes.targets is not None
    labels = torch.stack([complexes.targets, 1 - complexes.targets, complexes.targets], 1).float()
    functions = {
        "classes": lambda out: torch.nn.functional.cross_entropy(out, complexes.targets),
        "labels": lambda out: torch.nn.functional.binary_cross_entropy_with_logits(out, labels),
        "values": lambda out: torch.nn.functional.mse_loss(out, labels),
    }
    adam = torch.optim.AdamW(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        adam.zero_grad()
        value = functions[loss](network(complexes))
        value.backward()
        adam.step()
        losses.append(float(value.detach()))
    assert losses[-1] < 0.7 * losses[0]


TABLE = {
    "MUTAG": (
        1, "relu", 0.0, (32, 32), (1, 1), "leaky_relu", "elu", 8, 64, 0.1, 1.0, "hierarchical",
        0.1, 3e-3,
    ),
    "PTC_MM": (
        32, "elu", 0.0, (32, 8), (2, 1), "leaky_relu", "elu", 4, 128, 0.1, 0.75, "global",
        0.6, 1e-3,
    ),
    "PROTEINS": (
        256, "elu", 0.05, (128, 128), (1, 1), "tanh", "tanh", 128, 128, 0.3, 0.6, "hierarchical",
        0.3, 3e-3,
    ),
    "NCI1": (
        107, "elu", 0.2, (32, 16, 64, 8), (3, 5, 4, 5), "tanh", "elu", 256, 128, 0.08, 0.5,
        "global", 0.15, 3e-4,
    ),
    "NCI109": (
        116, "sigmoid", 0.2, (64, 8, 8, 32, 8), (5, 7, 4, 7, 7), "tanh", "gelu", 32, 128, 0.07,
        0.75, "global", 0.05, 3e-3,
    ),
}  # fmt: skip
"""The columns of the paper's table of hyper-parameters, from top to bottom."""


@pytest.mark.parametrize("name", TABLE)
def test_presets_are_the_papers_table(name: str) -> None:
    network, training = NetworkConfig.paper(name), TrainingConfig.paper(name)
    assert TABLE[name] == (
        network.lift_heads, network.lift_activation, network.lift_dropout, network.hidden,
        network.heads, network.attention_activation, network.activation, network.head_hidden,
        training.batch_size, network.negative_slope, network.ratio, network.pooling,
        network.dropout, training.learning_rate,
    )  # fmt: skip
    assert network.lift == "paper"
    assert network.epsilon == 0.001
    assert not network.learn_epsilon


@pytest.mark.parametrize(
    ("change", "training"),
    [
        ({"score": "gatv2"}, False), ({"aggregate": "mean"}, False), ({"aggregate": "max"}, False),
        ({"readout": "mean"}, False), ({"readout": "max"}, False), ({"epsilon": 0.5}, False),
        ({"pool_activation": "sigmoid"}, False), ({"attention_activation": "tanh"}, False),
        ({"activation": "tanh"}, False), ({"lift_activation": "tanh"}, False),
        ({"norm": "none"}, True), ({"norm": "layer"}, False), ({"ratio": 0.5}, False),
        ({"layer_readout": "cat"}, False), ({"join": "mean", "heads": (2, 2)}, False),
        ({"attention": "uniform"}, False), ({"negative_slope": 0.3}, False),
        ({"lift_dropout": 0.5}, True), ({"dropout": 0.5}, True), ({"attention_dropout": 0.5}, True),
    ],
)  # fmt: skip
def test_every_choice_changes_what_is_computed(change: dict[str, object], training: bool) -> None:
    complexes = varied(families.graphs(34, seed=7), 3)
    outputs = []
    for config in (NetworkConfig.edges(), replace(NetworkConfig.edges(), **change)):  # type: ignore[arg-type]
        torch.manual_seed(1)
        network = CellAttentionNetwork(config, 3, 0, 2).train(training)
        torch.manual_seed(2)
        outputs.append(network(complexes))
    assert float((outputs[0] - outputs[1]).detach().abs().max()) > 1e-4


def test_dropout_acts_before_every_attention_layer_and_in_the_head() -> None:
    complexes = varied(families.graphs(34, seed=7), 3)
    seen: list[list[float]] = []

    def remember(module: torch.nn.Module, given: tuple[Tensor, ...]) -> None:
        seen[-1].append(float((given[0] == 0).double().mean()))

    for pooling, pool_at in (("hierarchical", "every"), ("global", "last")):
        config = NetworkConfig.edges(dropout=0.4, pooling=pooling, pool_at=pool_at)  # type: ignore[arg-type]
        torch.manual_seed(0)
        network = CellAttentionNetwork(config, 3, 0, 2)
        seen.append([])
        for layer in (*network.attention, network.head[1]):
            layer.register_forward_pre_hook(remember)
        network(complexes)
        assert len(seen[-1]) == 3
        assert all(abs(share - 0.4) < 0.06 for share in seen[-1]), seen[-1]


def test_learned_epsilon_receives_a_gradient() -> None:
    network = made(replace(NetworkConfig.edges(), learn_epsilon=True), 3).train()
    network(varied(families.graphs(34, seed=7), 3)).square().sum().backward()
    for layer in network.attention:
        assert layer.epsilon.grad is not None
        assert float(layer.epsilon.grad.abs()) > 0


def test_the_public_checks_notice_what_they_are_for() -> None:
    complexes = varied(families.graphs(20, seed=9), 3)

    class Mixing(EdgeNetwork):
        """Takes the mean of the batch off: one graph's output depends on the others."""

        def forward(self, graphs: object) -> Tensor:
            logits = super().forward(graphs)
            return logits - logits.mean(0)

    class Bare(CellAttentionNetwork):
        """Of neither design."""

    with pytest.raises(InputError, match="Bare must be derived from RankNetwork or EdgeNetwork"):
        Bare(NetworkConfig(), 3, 0, 2)
    torch.manual_seed(0)
    with pytest.raises(AssertionError):
        assert_batching_is_harmless(Mixing(NetworkConfig.edges(), 3, 0, 2).eval(), complexes)
    config = replace(NetworkConfig.paper("PTC_MM"), pooling="none", pool_at="every")
    with pytest.raises(AssertionError):
        assert_permutation_equivariant(made(config, 3), complexes)


def test_a_network_can_be_pickled_and_copied() -> None:
    import pickle

    network = made(NetworkConfig.edges(pool_activation="identity"), 3)
    complexes = varied(families.graphs(20, seed=9), 3)
    again = pickle.loads(pickle.dumps(network))  # noqa: S301 - our own bytes
    assert torch.equal(again(complexes), network(complexes))
    assert torch.equal(copy.deepcopy(network)(complexes), network(complexes))
