"""Explanations: shares that add up, symmetric where the graph is, and nothing lost on the way."""

from dataclasses import replace
from typing import Any

import networkx as nx
import pytest
import torch
from rdkit import Chem
from scipy.stats import ttest_1samp

from cell_attention import (
    CellAttentionNetwork,
    CellComplex,
    NetworkConfig,
    TrainingConfig,
    lift,
    load_dataset,
)
from cell_attention.errors import InputError
from cell_attention.explanation import Explanation, explain
from cell_attention.explanation.faithfulness import (
    Compared,
    by_chance,
    faithfulness,
    gradient_times_input,
)
from cell_attention.explanation.importance import margin
from cell_attention.explanation.planted import planted_rings
from cell_attention.models.network_fitter import start_training
from cell_attention.training.tasks import task_of

CONFIGS = {
    "hierarchical": NetworkConfig.edges(lift_heads=4, hidden=(4, 4), heads=(2, 2), norm="layer"),
    "cat": NetworkConfig.edges(lift_heads=4, hidden=(4, 6), heads=(2, 1), layer_readout="cat"),
    "global": NetworkConfig.edges(
        lift_heads=4, hidden=(4, 4, 4), heads=(2, 1, 2), pooling="global"
    ),
    "none": NetworkConfig.edges(lift_heads=4, hidden=(4, 4), heads=(1, 2), pooling="none"),
    "mean": NetworkConfig.edges(
        lift_heads=4, hidden=(4, 4), heads=(2, 2), readout="mean", ratio=0.5
    ),
    "max": NetworkConfig.edges(lift_heads=4, hidden=(4,), heads=(2,), readout="max"),
}
RANKS = {
    "ranks": NetworkConfig(hidden=(4, 4), heads=(2, 1)),
    "ranks pooled": NetworkConfig(hidden=(4, 4), heads=(2, 1), pooling="hierarchical"),
    "ranks gates": NetworkConfig(hidden=(4,), heads=(2,), weights="gate", ranks=(0, 1)),
}
ALL = {**CONFIGS, **RANKS}
MOLECULES = ["c1ccc2ccccc2c1", "CC(=O)Oc1ccccc1C(=O)O", "CCO", "[He]", "C1CC2CCC1C2"]


def network(config: NetworkConfig, graphs: Any, outputs: int = 2) -> CellAttentionNetwork:
    torch.manual_seed(1)
    edges = graphs.edge_features.size(1) if graphs.edge_features is not None else 0
    made = CellAttentionNetwork(config, graphs.node_features.size(1), edges, outputs).double()
    return made.eval()


@pytest.mark.parametrize("name", CONFIGS)
def test_shares_of_the_edges_are_those_of_the_readouts(name: str) -> None:
    graphs = lift(MOLECULES)
    model = network(CONFIGS[name], graphs)
    for one in explain(model, graphs):
        # The same by another way: scale all features that are read out, and look at the slope.
        with torch.no_grad():
            trace = model.trace(one.complexes)
        step = 1e-6
        found = []
        for factor in (1 - step, 1 + step):
            layers = tuple(
                replace(layer, features=layer.features * factor) for layer in trace.layers
            )
            with torch.no_grad():
                logits = model.logits(model.read_out(one.complexes, layers))
            found.append(float(margin(logits, torch.tensor([one.output]), True)))
        slope = (found[1] - found[0]) / (2 * step)
        assert float(one.edges.sum()) == pytest.approx(slope, rel=1e-4, abs=1e-7)
        assert float(one.nodes.sum()) == pytest.approx(float(one.edges.sum()), abs=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_explanations_do_not_depend_on_the_order_of_atoms_or_on_neighbours(name: str) -> None:
    molecule = Chem.MolFromSmiles(MOLECULES[1])
    order = torch.randperm(molecule.GetNumAtoms(), generator=torch.Generator().manual_seed(2))
    other = Chem.RenumberAtoms(molecule, order.tolist())
    graphs = lift([molecule, other, "CCO"])
    model = network(ALL[name], graphs)
    one, two, _ = explain(model, graphs)
    torch.testing.assert_close(one.nodes[order], two.nodes, rtol=0, atol=1e-9)
    (alone,) = explain(model, lift(other))
    torch.testing.assert_close(alone.edges, two.edges, rtol=0, atol=1e-9)
    torch.testing.assert_close(alone.polygons, two.polygons, rtol=0, atol=1e-9)
    places = {frozenset(pair): n for n, pair in enumerate(two.complexes.edge_nodes.T.tolist())}
    new = {int(old): place for place, old in enumerate(order)}
    moved = [places[frozenset((new[u], new[v]))] for u, v in one.complexes.edge_nodes.T.tolist()]
    torch.testing.assert_close(one.edges, two.edges[moved], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_symmetric_bonds_of_benzene_carry_the_same(name: str) -> None:
    ring = lift("c1ccccc1")
    (one,) = explain(network(ALL[name], ring), ring)
    torch.testing.assert_close(one.edges, one.edges[:1].expand(6), rtol=0, atol=1e-12)
    torch.testing.assert_close(one.nodes, one.nodes[:1].expand(6), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_symmetric_bonds_of_naphthalene_carry_the_same(name: str) -> None:
    rings = lift("c1ccc2ccccc2c1")
    (one,) = explain(network(ALL[name], rings), rings, measure=False)
    assert one.molecule is None
    ranks = list(Chem.CanonicalRankAtoms(Chem.MolFromSmiles("c1ccc2ccccc2c1"), breakTies=False))
    kinds: dict[frozenset[int], list[float]] = {}
    for (u, v), value in zip(rings.edge_nodes.T.tolist(), one.edges.tolist(), strict=True):
        kinds.setdefault(frozenset((ranks[u], ranks[v])), []).append(value)
    assert len(kinds) == 4
    for values in kinds.values():
        assert values == pytest.approx([values[0]] * len(values), abs=1e-9)


def rebuilt(one: CellComplex, rank: int, gone: int) -> CellComplex:
    """The complex without a cell and all that it bounds, from lists of nodes."""
    ends = [tuple(pair) for pair in one.edge_nodes.T.tolist()]
    rings: dict[int, list[tuple[int, int]]] = {}
    for edge, polygon in one.polygon_edges.T.tolist():
        rings.setdefault(polygon, []).append(ends[edge])
    nodes = [v for v in range(one.num_nodes) if (rank, gone) != (0, v)]
    edges = [e for e, pair in enumerate(ends) if (rank, gone) != (1, e) and {*pair} <= {*nodes}]
    left = {ends[e] for e in edges}
    polygons = []
    for polygon, sides in rings.items():
        if (rank, gone) != (2, polygon) and {*sides} <= left:
            cycle = nx.find_cycle(nx.Graph(sides))
            polygons.append([nodes.index(u) for u, *_ in cycle])
    assert one.edge_features is not None
    return CellComplex.from_cells(
        [(nodes.index(u), nodes.index(v)) for u, v in (ends[e] for e in edges)], polygons,
        num_nodes=len(nodes), node_features=one.node_features[nodes],
        edge_features=one.edge_features[edges],
    )  # fmt: skip


@pytest.mark.parametrize("name", RANKS)
def test_importances_on_every_rank_are_what_is_lost_without_the_cell(name: str) -> None:
    graphs = lift(["CC(=O)Oc1ccccc1C(=O)O", "C1CC2CCC1C2", "CCO"])
    model = network(RANKS[name], graphs)
    for one in explain(model, graphs, measure=False):
        chosen = torch.tensor([one.output])
        for rank, found in enumerate((one.nodes, one.edges, one.polygons)):
            for cell, value in enumerate(found.tolist()):
                with torch.no_grad():
                    rest = model(rebuilt(one.complexes, rank, cell))
                lost = one.margin - float(margin(rest, chosen, True))
                assert value == pytest.approx(lost, abs=1e-9)
    (atom,) = explain(model, lift("[He]"))  # without it nothing is left
    assert bool(atom.nodes.isfinite().all())
    assert (atom.nodes.numel(), atom.edges.numel(), atom.polygons.numel()) == (1, 0, 0)


def test_a_part_of_a_graph_that_no_rank_reads_is_worth_nothing() -> None:
    graphs = lift(MOLECULES)
    (first, *_) = explain(network(RANKS["ranks"], graphs), graphs, measure=False)
    assert float(first.polygons.abs().min()) > 0
    deaf = NetworkConfig(
        hidden=(4,), heads=(1,), ranks=(0, 1), neighbourhoods=("lower",), composition=False
    )
    for one in explain(network(deaf, graphs), graphs, measure=False):
        assert one.polygons.tolist() == pytest.approx([0.0] * one.polygons.numel(), abs=1e-12)


def test_what_passes_upwards_passes_through_polygons_and_nothing_else() -> None:
    graphs = lift(nx.wheel_graph(7))  # six triangles and a hexagon: pairs share a polygon or more
    graphs = replace(graphs, node_features=torch.rand(7, 3, dtype=torch.float64))
    model = network(CONFIGS["none"], graphs)
    (one,) = explain(model, graphs)
    assert one.complexes.num_polygons == 7
    # In the first and only-attended layer: half of every edge, by its two sides, goes upwards.
    last = explain(network(replace(CONFIGS["none"], hidden=(4,), heads=(2,)), graphs), graphs)[0]
    assert float(last.polygons.sum()) == pytest.approx(0.25 * float(last.edges.sum()), rel=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_layers_are_those_of_the_trace(name: str) -> None:
    graphs = load_dataset("MUTAG")[[0, 7, 30]]
    model = network(ALL[name], graphs)
    explained = explain(model, graphs)
    assert [one.predictions.tolist() for one in explained] == model(graphs).softmax(1).tolist()
    for one in explained:
        with torch.no_grad():
            trace = model.trace(one.complexes)
        for mine, layer in zip(one.layers, trace.layers, strict=True):
            torch.testing.assert_close(mine.lower, layer.lower, rtol=0, atol=1e-12)
            torch.testing.assert_close(mine.upper, layer.upper, rtol=0, atol=1e-12)
            assert mine.survivors.tolist() == layer.edges.tolist()
            assert mine.lower_pairs.tolist() == mine.edges[layer.complexes.lower_pairs].tolist()
            assert mine.upper_pairs.tolist() == mine.edges[layer.complexes.upper_pairs].tolist()
            assert (mine.score is None) == (layer.score is None)


def test_outputs_are_chosen_or_predicted() -> None:
    graphs = lift(MOLECULES)
    model = network(CONFIGS["cat"], graphs, outputs=3)
    found = explain(model, graphs)
    assert [one.output for one in found] == model(graphs).argmax(1).tolist()
    for one in found:
        share = one.prediction
        assert one.margin == pytest.approx(torch.tensor(share).logit().item(), abs=1e-4)
    labels = explain(model, graphs, [2] * 5, task="labels")
    assert [one.margin for one in labels] == pytest.approx(model(graphs)[:, 2].tolist())
    value = network(CONFIGS["cat"], graphs, outputs=1)
    (first, *_) = explain(value, graphs)
    assert first.margin == pytest.approx(float(value(graphs)[0, 0].detach()))
    for wrong, message in (([0], r"outputs must be \(5,\)"), ([3] * 5, "must lie in 0…2")):
        with pytest.raises(InputError, match=message):
            explain(model, graphs, wrong)
    with pytest.raises(InputError, match=r"call network\.eval"):
        explain(model.train(), graphs)


def test_top_edges_come_first() -> None:
    ring = lift("CCO")
    (one,) = explain(network(CONFIGS["none"], ring), ring)
    assert isinstance(one, Explanation)
    best = one.top_edges(1)
    assert float(one.edges[best]) == float(one.edges.max())


def test_curves_begin_and_end_where_they_must_and_follow_the_ranking() -> None:
    graphs = load_dataset("MUTAG")[torch.arange(12)]
    model = network(CONFIGS["hierarchical"], graphs)
    with torch.no_grad():
        outputs, whole = model(graphs).argmax(1), model(graphs).softmax(1)
    draw = torch.rand(graphs.num_edges, generator=torch.Generator().manual_seed(0))
    found = faithfulness(model, graphs, draw, outputs=outputs)
    chosen = whole.gather(1, outputs[:, None])[:, 0]
    torch.testing.assert_close(found.deletion[:, 0], chosen)
    torch.testing.assert_close(found.insertion[:, -1], chosen)
    torch.testing.assert_close(found.deletion[:, -1], found.insertion[:, 0])
    # By hand, for one graph: the best fifth goes.
    mine = graphs.edge_complex == 4
    count = int(mine.sum())
    best = draw[mine].topk(-(-count // 5)).indices
    rest = sorted(set(range(count)).difference(best.tolist()))
    with torch.no_grad():
        left = model(graphs[4:5].restrict(rest)).softmax(1)[0, outputs[4]]
    assert float(found.fidelity_plus[4]) == pytest.approx(float(chosen[4] - left), abs=1e-9)
    chance = by_chance(model, graphs, outputs)
    assert chance.deletion.shape == (12, 11)
    alone = by_chance(model, graphs[3:4], outputs[3:4])
    torch.testing.assert_close(alone.deletion, chance.deletion[3:4], rtol=0, atol=1e-9)
    assert float((chance.insertion - chance.deletion).mean(1).sum()) == pytest.approx(
        float(chance.area.sum())
    )


def test_gradient_times_input_is_the_slope_along_the_input() -> None:
    graphs = lift(MOLECULES)
    model = network(CONFIGS["cat"], graphs)
    outputs = torch.zeros(5, dtype=torch.int64)
    found, step, values = gradient_times_input(model, graphs, outputs), 1e-6, []
    isolated = graphs.node_complex == 3  # an atom without a bond has no edge to stand for it
    for factor in (1 - step, 1 + step):
        factors = torch.full((graphs.num_nodes, 1), factor, dtype=torch.float64)
        factors[isolated] = 1.0
        scaled = replace(
            graphs,
            node_features=factors * graphs.node_features.double(),
            edge_features=factor * graphs.edge_features.double(),
        )
        with torch.no_grad():
            values.append(float(margin(model(scaled), outputs, True).sum()))
    slope = (values[1] - values[0]) / (2 * step)
    assert float(found.sum()) == pytest.approx(slope, rel=1e-4)


def test_nodes_carry_what_they_are_read_out_with() -> None:
    graphs = lift(MOLECULES)
    model = network(replace(CONFIGS["cat"], node_readout=5), graphs)
    assert model.node_sum is not None
    for one in explain(model, graphs, measure=False):
        ends = torch.zeros_like(one.nodes)
        for row in one.complexes.edge_nodes:
            ends = ends.index_add(0, row, 0.5 * one.edges)
        own, step, found = one.nodes - ends, 1e-6, []
        with torch.no_grad():
            trace = model.trace(one.complexes)
            for factor in (1 - step, 1 + step):
                scaled = replace(
                    one.complexes, node_features=factor * one.complexes.node_features.double()
                )
                logits = model.logits(model.read_out(scaled, trace.layers))
                found.append(float(margin(logits, torch.tensor([one.output]), True)))
        assert float(own.sum()) == pytest.approx((found[1] - found[0]) / (2 * step), rel=1e-4)


def test_faithfulness_of_one_graph_is_that_of_the_set_and_of_itself_alone() -> None:
    graphs = load_dataset("MUTAG")[torch.arange(9)]
    model = network(CONFIGS["hierarchical"], graphs)
    found = explain(model, graphs)
    parts = [one.faithfulness for one in found]
    joined = Compared.joined([part for part in parts if part is not None])
    outputs = torch.tensor([one.output for one in found])
    ranking = torch.cat([one.edges for one in found])
    together = faithfulness(model, graphs, ranking, outputs=outputs)
    torch.testing.assert_close(joined.ours.area, together.area)
    alone = faithfulness(model, graphs[3:4], found[3].edges, outputs=outputs[3:4])
    torch.testing.assert_close(alone.deletion, together.deletion[3:4], rtol=0, atol=1e-9)
    means = joined.means()
    difference = joined.ours.area - joined.chance.area
    expected = ttest_1samp(difference.numpy(), 0.0, alternative="greater").pvalue
    assert means["area"]["p"] == pytest.approx(float(expected), rel=1e-6)
    falls = joined.ours.fidelity_minus - joined.chance.fidelity_minus
    expected = ttest_1samp(falls.numpy(), 0.0, alternative="less").pvalue
    assert means["fidelity_minus"]["p"] == pytest.approx(float(expected), rel=1e-6)
    assert joined.of(2).means()["area"]["p"] != joined.of(2).means()["area"]["p"]  # NaN


def test_a_ranking_by_truth_is_faithful_and_its_reverse_is_not() -> None:
    # What an edge is worth is found by deleting it: the best possible first step.
    graphs = load_dataset("MUTAG")[torch.arange(4)]
    model = network(CONFIGS["none"], graphs)
    with torch.no_grad():
        outputs = model(graphs).argmax(1)
        whole = model(graphs).softmax(1).gather(1, outputs[:, None])[:, 0]
    worth = torch.zeros(graphs.num_edges, dtype=torch.float64)
    for edge in range(graphs.num_edges):
        rest = [row for row in range(graphs.num_edges) if row != edge]
        with torch.no_grad():
            left = model(graphs.restrict(rest)).softmax(1).gather(1, outputs[:, None])[:, 0]
        owner = graphs.edge_complex[edge]
        worth[edge] = (whole - left)[owner]
    good, bad = (faithfulness(model, graphs, sign * worth, outputs=outputs) for sign in (1.0, -1.0))
    assert bool((good.area > bad.area).all())
    assert bool((good.fidelity_plus > bad.fidelity_plus).all())


def test_the_planted_ring_is_found() -> None:
    made = planted_rings(1300)
    counts = made.complexes.polygon_complex.bincount()
    assert int(counts.min()) >= 4  # three decoys at least
    assert made.complexes.targets is not None
    assert made.complexes.targets.tolist() == [int(p is not None) for p in made.polygons]
    # Neither elements nor sizes tell the class: a ring of all three kinds does.
    config = NetworkConfig.edges(
        lift_heads=8, hidden=(16, 16), heads=(2, 2), head_hidden=32, pooling="none"
    )
    quick = TrainingConfig.plain(batch_size=32, learning_rate=5e-3, epochs=40, schedule="cosine")
    task = task_of(made.complexes, torch.arange(1000))
    training = start_training(
        made.complexes,
        range(1000),
        range(1000, 1100),
        task=task,
        network=config,
        training=quick,
        seed=(0,),
        keep_best=True,
    )
    training.complete(None, "", seconds=0.0, report=lambda numbers: None)
    training.take_best()
    trained = training.network.eval()
    assert isinstance(trained, CellAttentionNetwork)
    rest = range(1100, 1300)
    found = explain(trained, made.complexes[list(rest)], measure=False)
    truth = [made.polygons[row] for row in rest]
    right = [one.output == (ring is not None) for one, ring in zip(found, truth, strict=True)]
    assert sum(right) >= 0.99 * len(right)
    ranked = [
        int(one.polygons.argmax()) == ring
        for one, ring in zip(found, truth, strict=True)
        if ring is not None and one.output == 1
    ]
    assert sum(ranked) >= 0.95 * len(ranked)
