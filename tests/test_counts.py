"""The colours of nodes, their counts, and the branch of the network that reads them."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cell_attention import (
    CellAttentionNetwork,
    CellComplex,
    NetworkConfig,
    TrainingConfig,
    lift,
    load_dataset,
)
from cell_attention.arguments import record_of
from cell_attention.errors import InputError
from cell_attention.models.network_fitter import start_training
from cell_attention.nn.rank_network import RankNetwork
from cell_attention.nn.surrounding_counts import BUCKETS, SCALE, SurroundingCounts
from cell_attention.testing import relabelled
from cell_attention.topology.colours import node_colours, rounds_in_common, surroundings
from cell_attention.topology.interop import to_networkx
from cell_attention.training.loop import Training
from cell_attention.training.tasks import Task

ROUNDS = 3


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


def members(complexes: CellComplex) -> list[CellComplex]:
    return [complexes[number] for number in range(len(complexes))]


def sets_of_codes(complexes: CellComplex, rounds: int = ROUNDS) -> list[list[int]]:
    start, codes = surroundings(complexes, rounds)
    return [codes[first:last].tolist() for first, last in pairwise(start)]


def branch() -> SurroundingCounts:
    torch.manual_seed(0)
    config = NetworkConfig(counts=ROUNDS)
    made = SurroundingCounts(config, 2, "auto").double().eval()
    assert isinstance(made.norm.norm, nn.BatchNorm1d)
    nn.init.uniform_(made.norm.norm.running_mean)
    nn.init.uniform_(made.norm.norm.running_var, 0.5, 2.0)
    return made


def test_colours_divide_the_nodes_as_networkx_does(mutag: CellComplex) -> None:
    chosen = mutag[:40]
    colours = node_colours(replace(chosen, edge_features=None), ROUNDS)
    names: list[list[str]] = [[] for _ in range(ROUNDS + 1)]
    for graph in map(to_networkx, members(chosen)):
        for _, data in graph.nodes(data=True):
            data["label"] = str(int(np.argmax(data["x"])))
        hashes = nx.weisfeiler_lehman_subgraph_hashes(
            graph, node_attr="label", iterations=ROUNDS, include_initial_labels=True
        )
        for node in sorted(graph):
            for number, name in enumerate(hashes[node]):
                names[number].append(name)
    for ours, theirs in zip(colours.tolist(), names, strict=True):
        pairs = Counter(zip(ours, theirs, strict=True))
        assert len(pairs) == len(set(ours)) == len(set(theirs)) > 5


def test_shared_codes_are_the_optimal_assignment_kernel_of_grakel(mutag: CellComplex) -> None:
    kernels = pytest.importorskip("grakel.kernels")
    chosen = mutag[:25]
    graphs = []
    for graph in map(to_networkx, members(chosen)):
        labels = {node: int(np.argmax(data["x"])) for node, data in graph.nodes(data=True)}
        graphs.append([{(i, j): 1.0 for a, b in graph.edges for i, j in ((a, b), (b, a))}, labels])
    theirs = kernels.WeisfeilerLehmanOptimalAssignment(n_iter=ROUNDS).fit_transform(graphs)
    codes = sets_of_codes(replace(chosen, edge_features=None))
    sets = list(map(set, codes))
    assert list(map(len, sets)) == list(map(len, codes))  # no code stands twice in a complex
    ours = [[len(one & other) for other in sets] for one in sets]
    assert np.array_equal(ours, theirs)


def test_codes_do_not_depend_on_numbering_batch_or_precision(mutag: CellComplex) -> None:
    chosen = mutag[:30]
    codes = sets_of_codes(chosen)
    assert sets_of_codes(relabelled(chosen, 1).complexes) == codes
    assert [sets_of_codes(one)[0] for one in members(chosen)] == codes
    exact = replace(chosen, node_features=chosen.node_features.double())
    assert sets_of_codes(exact) == codes
    minus = chosen.node_features.where(chosen.node_features != 0, -0.0)
    assert sets_of_codes(replace(chosen, node_features=minus)) == codes


def test_a_colour_knows_the_bonds_and_what_is_within_its_rounds() -> None:
    single, double = lift("CCCCC"), lift("CCCC=C")
    first, second = node_colours(single, 4), node_colours(double, 4)
    alike = node_colours(replace(double, node_features=single.node_features), 4)
    assert second.shape == first.shape == (5, 5)
    for rounds in range(5):  # the double bond is between the nodes 3 and 4
        far = [node for node in range(5) if min(abs(node - 3), abs(node - 4)) >= rounds]
        same = (alike[rounds] == first[rounds]).nonzero()[0].tolist()
        assert same == far


def dense(layer: SurroundingCounts, complexes: CellComplex) -> Tensor:
    """y of every complex, by a loop over the formula."""
    found = []
    for codes in sets_of_codes(complexes):
        x = torch.zeros(layer.table.embedding_dim, dtype=torch.float64)
        for code in codes:
            x = x + layer.table.weight[code % BUCKETS] / len(codes) ** 0.5
        norm = layer.norm.norm
        assert isinstance(norm, nn.BatchNorm1d)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        z = (SCALE * x - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
        z = (z * norm.weight + norm.bias).relu()
        found.append(layer.last.weight @ z + layer.last.bias)
    return torch.stack(found)


def test_the_branch_is_its_formula_values_and_gradients(mutag: CellComplex) -> None:
    layer, chosen = branch(), mutag[:6]
    ours, theirs = layer(chosen), dense(layer, chosen)
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
    weigh = torch.randn(6, 2, dtype=torch.float64)
    for result in zip(
        torch.autograd.grad((ours * weigh).sum(), list(layer.parameters())),
        torch.autograd.grad((theirs * weigh).sum(), list(layer.parameters())),
        strict=True,
    ):
        assert torch.allclose(*result, rtol=0, atol=1e-12)


def test_plain_torch_has_the_same_values_and_second_derivatives(mutag: CellComplex) -> None:
    layer, chosen = branch(), mutag[:6]
    values = layer(chosen)
    layer.kernel = "torch"
    assert torch.allclose(layer(chosen), values, rtol=0, atol=1e-12)
    (slope,) = torch.autograd.grad(
        layer(chosen).pow(2).sum(), layer.table.weight, create_graph=True
    )
    slope.pow(2).sum().backward()
    assert layer.table.weight.grad is not None
    assert layer.table.weight.grad.abs().max() > 0


@pytest.mark.parametrize("rounds", [-1, 1.5, True])
def test_a_wrong_number_of_rounds_is_refused(mutag: CellComplex, rounds: Any) -> None:
    with pytest.raises(InputError, match=f"rounds must be a whole number .*, got {rounds}"):
        node_colours(mutag[:2], rounds)
    with pytest.raises(InputError, match="edge_nodes must lie in"):
        node_colours(replace(mutag[:2], edge_nodes=mutag[:2].edge_nodes + 10**9), 1)


def test_complexes_without_nodes_or_edges_are_counted_too() -> None:
    layer = branch()
    graphs = lift(["C", "CC"])
    assert torch.allclose(layer(graphs)[:1], layer(lift("C")))
    empty = replace(graphs[:0], num_complexes=2, targets=None)
    assert torch.equal(*layer(empty))


def test_the_network_is_the_mean_of_its_branches_and_without_counts_the_head_alone(
    mutag: CellComplex,
) -> None:
    chosen = mutag[:10]
    torch.manual_seed(0)
    network = CellAttentionNetwork(NetworkConfig(composition=False), 7, 4, 2).eval()
    torch.manual_seed(0)
    alone = CellAttentionNetwork(NetworkConfig(counts=0, composition=False), 7, 4, 2).eval()
    head, counted = network.branches(chosen)
    assert torch.equal(head, alone(chosen))
    assert torch.equal(network(chosen), (head + counted) / 2)
    assert torch.equal(network.trace(chosen).logits, network(chosen))
    assert not torch.allclose(head, counted)
    network.rescale_outputs(torch.tensor([2.0, 3.0]), torch.tensor([1.0, -1.0]))
    expected = (head + counted) / 2 * torch.tensor([2.0, 3.0]) + torch.tensor([1.0, -1.0])
    assert torch.allclose(network(chosen), expected, atol=1e-5)


def begun(complexes: CellComplex, kind: Any) -> Training:
    config = NetworkConfig(hidden=(4,), heads=(2,), dropout=0.0, head_dropout=0.0, head_hidden=4)
    return Training(
        complexes, range(100), range(100, 188),
        task=Task("classes", 2, "accuracy"),
        build=lambda: kind(config, 7, 4, 2),
        training=TrainingConfig(epochs=1), seed=(0,),
    )  # fmt: skip


def test_training_holds_every_branch_against_the_targets(mutag: CellComplex) -> None:
    training = begun(mutag, CellAttentionNetwork)
    batch = mutag[:50]
    branches = training.network.branches(batch)  # type: ignore[operator]
    losses = [nn.functional.cross_entropy(logits, batch.targets) for logits in branches]
    assert training.step(batch) == pytest.approx(
        float(torch.stack(losses).mean().detach()), abs=1e-6
    )


def test_a_network_with_a_forward_of_its_own_is_trained_by_what_it_returns(
    mutag: CellComplex,
) -> None:
    class Halved(RankNetwork):
        def forward(self, graphs: Any) -> Tensor:
            return super().forward(graphs) / 2

    training = begun(mutag, Halved)
    batch = mutag[:50]
    expected = nn.functional.cross_entropy(training.network(batch), batch.targets)
    assert training.step(batch) == pytest.approx(float(expected.detach()), abs=1e-6)


def test_a_record_from_before_the_counts_has_none() -> None:
    record = record_of(NetworkConfig())
    assert record.pop("counts") == NetworkConfig().counts > 0
    assert NetworkConfig.from_record(record).counts == 0
    assert "counts" not in record_of(NetworkConfig(counts=0))
    assert "counts" not in record_of(NetworkConfig.paper("MUTAG"))


def test_rounds_in_common_are_those_that_a_count_of_colours_finds(mutag: CellComplex) -> None:
    for rows, share in ((range(188), 0.2), (range(188), 0.8), (range(6), 0.5), (range(1), 0.2)):
        chosen, expected = mutag[list(rows)], 1
        owners = chosen.node_complex.tolist()
        for number, colours in enumerate(node_colours(chosen, 6).tolist()):
            seen: dict[int, set[int]] = {}
            for colour, owner in zip(colours, owners, strict=True):
                seen.setdefault(colour, set()).add(owner)
            if sum(len(seen[colour]) > 1 for colour in colours) < share * len(colours):
                break
            expected = max(expected, number)
        assert rounds_in_common(chosen, 6, share) == expected
        assert rounds_in_common(chosen, 1, share) == 1
    assert rounds_in_common(mutag, 6, 0.8) < rounds_in_common(mutag, 6, 0.2)
    assert rounds_in_common(mutag[[]], 4, 0.2) == 4


def test_what_every_graph_has_for_itself_is_not_counted(mutag: CellComplex) -> None:
    graphs = [nx.random_regular_graph(3, 30, seed=seed) for seed in range(12)]
    generator = np.random.default_rng(0)
    for graph in graphs:
        for _, data in graph.nodes(data=True):
            data["x"] = [float(generator.random() < 0.5), 1.0]
    own = replace(lift(graphs), targets=torch.tensor([0, 1] * 6))
    for complexes, rounds in ((mutag, NetworkConfig().counts), (own, 2)):
        task = Task("classes", 2, "accuracy")
        training = start_training(
            complexes, range(len(complexes) - 4), [len(complexes) - 1], task=task,
            network=NetworkConfig(), training=TrainingConfig(), seed=(0,),
        )  # fmt: skip
        assert isinstance(training.network, RankNetwork)
        assert training.network.counts is not None
        assert training.network.config.counts == training.network.counts.rounds == rounds
