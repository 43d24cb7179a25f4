"""Networks for cells: a row of outputs per node, edge or polygon, learned from some of them."""

from dataclasses import replace
from typing import Any

import networkx as nx
import pytest
import torch

from cell_attention import (
    CellComplex,
    CellPredictor,
    NetworkConfig,
    TrainingConfig,
    fit_cells,
    lift,
    load_dataset,
)
from cell_attention.errors import CellAttentionError
from cell_attention.nn.cell_predictor import RANK_OF, num_cells
from cell_attention.testing import (
    assert_batching_is_harmless,
    assert_permutation_equivariant,
)
from cell_attention.training.cell_training import CellTraining
from cell_attention.training.tasks import task_of

RANKS = NetworkConfig(hidden=(4, 4), heads=(2, 2), head_hidden=8)
PAPER = NetworkConfig.edges(hidden=(4, 4), heads=(2, 2), pooling="none")
MUTAG = load_dataset("MUTAG")
KINDS = [(RANKS, "nodes"), (RANKS, "edges"), (RANKS, "polygons"), (PAPER, "edges")]


def made(config: NetworkConfig, cells: Any, outputs: int = 3) -> CellPredictor:
    torch.manual_seed(0)
    network = CellPredictor(config, 7, 4, outputs, cells=cells)
    network(MUTAG[:40])  # the norms learn how the features are distributed
    return network.eval()


@pytest.mark.parametrize(("config", "cells"), KINDS)
def test_relabelling_permutes_the_outputs(config: NetworkConfig, cells: str) -> None:
    network = made(config, cells)
    assert_permutation_equivariant(network, MUTAG[:12], tolerance=1e-9)
    found = network(MUTAG[:12])
    assert found.shape == (num_cells(MUTAG[:12], cells), 3)
    assert found.std(0).min() > 1e-3  # they are not all the same


@pytest.mark.parametrize(("config", "cells"), KINDS)
def test_a_batch_of_complexes_gives_the_outputs_of_each(config: NetworkConfig, cells: str) -> None:
    assert_batching_is_harmless(made(config, cells), MUTAG[20:32])


@pytest.mark.parametrize(("config", "cells"), KINDS)
def test_the_head_reads_every_layer_and_nothing_of_other_complexes(
    config: NetworkConfig, cells: str
) -> None:
    network, batch = made(config, cells), MUTAG[:3]
    nodes = batch.node_features.clone()
    nodes[batch.node_complex == 1] = 0.5
    changed = network(replace(batch, node_features=nodes))
    member = (batch.node_complex, batch.edge_complex, batch.polygon_complex)[RANK_OF[cells]]
    same = (changed - network(batch)).abs().amax(1) == 0
    assert torch.equal(same, member != 1)
    states = network.states(batch)
    layers = list(network.network._layers(batch))
    last = (layers[-1].nodes, layers[-1].features, layers[-1].polygons)[RANK_OF[cells]]
    torch.testing.assert_close(states[:, -8:], last)
    assert states.size(1) == 8 * (3 if config.design == "ranks" else 2)


def test_nothing_of_whole_complexes_is_left_in_the_network() -> None:
    network = made(replace(RANKS, counts=3, composition=True), "edges")
    names = {name.split(".")[1] for name, _ in network.named_parameters()}
    assert names == {"start", "layers", "head", "head_norm"}
    described = replace(MUTAG[:4], complex_features=torch.ones(4, 2))
    assert torch.equal(network(described), network(MUTAG[:4]))


@pytest.mark.parametrize(
    ("config", "cells", "message"),
    [
        (PAPER, "nodes", "cells 'nodes' need features of their own, the network has edges alone"),
        (replace(RANKS, ranks=(0, 1)), "polygons", "the network has ranks \\(0, 1\\)"),
        (replace(RANKS, pooling="global"), "edges", "pooling must be 'none'"),
        (RANKS, "bonds", "cells must be one of 'nodes', 'edges', 'polygons'"),
    ],
)
def test_networks_that_have_no_such_cells_are_refused(
    config: NetworkConfig, cells: Any, message: str
) -> None:
    with pytest.raises(CellAttentionError, match=message):
        CellPredictor(config, 7, 4, 2, cells=cells)


def communities() -> tuple[CellComplex, torch.Tensor]:
    """A stochastic block model of three communities, whose nodes have noise as features."""
    likely = [[0.4 if a == b else 0.03 for a in range(3)] for b in range(3)]
    graph = nx.stochastic_block_model([25] * 3, likely, seed=1)
    draw = torch.Generator().manual_seed(0)
    truth = torch.arange(75) // 25
    features = torch.nn.functional.one_hot(truth, 3) + torch.randn(75, 3, generator=draw)
    return replace(lift(graph, 3, degrees=1), node_features=features), truth


def test_nodes_of_a_block_model_are_told_apart_better_than_by_their_features() -> None:
    complexes, truth = communities()
    order = torch.randperm(75, generator=torch.Generator().manual_seed(2))
    fitted = fit_cells(
        complexes, truth, cells="nodes", train=order[:25], validation=order[25:40],
        test=order[40:], network={"hidden": (8, 8), "heads": (2, 2), "ranks": (0, 1)},
        training={"epochs": 60, "learning_rate": 5e-3, "average": 0.0},
    )  # fmt: skip
    alone = 100.0 * float((complexes.node_features.argmax(1) == truth)[order[40:]].float().mean())
    assert fitted.scores["test"] > alone + 15.0
    found = fitted.predict(complexes)
    torch.testing.assert_close(found.sum(1), torch.ones(75).double())
    right = (found.argmax(1) == truth)[order[40:]].float().mean()
    assert 100.0 * float(right) == pytest.approx(fitted.scores["test"])


@pytest.mark.parametrize("config", [RANKS, PAPER])
def test_types_of_bonds_are_learned_from_the_atoms(config: NetworkConfig) -> None:
    assert MUTAG.edge_features is not None
    bonds, blind = MUTAG.edge_features.argmax(1), replace(MUTAG, edge_features=None)
    part = torch.rand(len(bonds), generator=torch.Generator().manual_seed(0))
    fitted = fit_cells(
        blind, bonds, train=part < 0.7, validation=(part >= 0.7) & (part < 0.8), test=part >= 0.8,
        network=config, training=TrainingConfig(epochs=4, learning_rate=5e-3),
    )  # fmt: skip
    usual = 100.0 * float((bonds == bonds.mode().values).float().mean())
    # The two bonds of a nitro group have different types, but nothing tells them apart.
    assert fitted.scores["test"] > usual + 12.0


def test_targets_of_held_out_cells_are_not_looked_at() -> None:
    complexes, truth = communities()
    rows = torch.arange(75)
    parts = {"train": rows % 3 == 0, "validation": rows % 3 == 1}
    sizes: dict[str, Any] = {"network": {"hidden": (4,), "heads": (1,)}, "training": {"epochs": 2}}
    one = fit_cells(complexes, truth, cells="nodes", **parts, **sizes)
    other = truth.clone()
    other[rows % 3 == 2] = 7
    two = fit_cells(complexes, other, cells="nodes", **parts, **sizes)
    assert torch.equal(one.predict(complexes), two.predict(complexes))


@pytest.mark.parametrize("kind", ["values", "labels"])
def test_cells_have_values_and_labels_too(kind: str) -> None:
    sizes = MUTAG.edge_complex.bincount()[MUTAG.edge_complex].float()
    targets = sizes * 10.0 if kind == "values" else torch.stack([sizes > 20, sizes > 15], 1).float()
    targets[::5] = torch.nan
    rows = torch.arange(len(targets))
    fitted = fit_cells(
        MUTAG, targets, train=rows % 2 == 0, validation=rows % 2 == 1, network=RANKS,
        training={"epochs": 2},
    )  # fmt: skip
    found = fitted.predict(MUTAG[:5])
    assert found.shape == (MUTAG[:5].num_edges, 1 if kind == "values" else 2)
    if kind == "values":
        assert 50.0 < float(found.mean()) < 400.0
    else:
        assert bool(((found > 0) & (found < 1)).all())


@pytest.mark.parametrize("cells", ["nodes", "edges", "polygons"])
def test_rows_are_the_cells_of_the_chosen_complexes(cells: str) -> None:
    targets = torch.arange(num_cells(MUTAG, cells)).float()
    mask = torch.ones(len(targets), dtype=torch.bool)
    training = CellTraining(
        MUTAG, targets, cells=cells, parts={"train": mask, "validation": mask},
        task=task_of(targets, torch.arange(9)), build=lambda: made(RANKS, cells, 1),
        training=TrainingConfig(epochs=1), seed=(0,),
    )  # fmt: skip
    chosen = torch.tensor([7, 2, 100, 2])
    marked = replace(
        MUTAG,
        node_features=torch.arange(MUTAG.num_nodes)[:, None],
        edge_features=torch.arange(MUTAG.num_edges)[:, None],
        polygon_features=torch.arange(MUTAG.num_polygons)[:, None],
    )[chosen]
    there = (marked.node_features, marked.edge_features, marked.polygon_features)[RANK_OF[cells]]
    assert there is not None
    assert torch.equal(training.rows(chosen), there[:, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": torch.zeros(5)}, "targets must be one row per cell"),
        ({"train": [0, 1], "validation": [1, 2]}, "must not share a cell"),
        ({"train": [10**6]}, "train must lie in 0…3720"),
        ({"train": []}, "train must hold at least one cell"),
        (
            {"validation": torch.ones(3) > 0},
            "validation must be a mask of 3721 cells",
        ),
        ({"targets": torch.full((3721,), -1)}, "train has a cell without a class"),
        ({"targets": torch.full((3721,), torch.nan)}, "none of the train cells has a known target"),
        ({"network": {"pooling": "global"}}, "pooling must be 'none'"),
        ({"network": 3}, "network must be a NetworkConfig"),
        ({"metric": "rmse"}, "metric must be one of accuracy"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "targets": torch.zeros(3721, dtype=torch.int64).index_fill(0, torch.arange(0, 3721, 2), 1),
        "train": [0, 1], "validation": [2, 3],
    }  # fmt: skip
    with pytest.raises(CellAttentionError, match=message):
        fit_cells(MUTAG, **{**given, **changes})
