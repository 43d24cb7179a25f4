"""`pretrain`: masked cells do not see themselves, and the result is a start for `train`."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cell_attention import (
    CellComplex,
    NetworkConfig,
    TrainingConfig,
    fingerprint,
    load_dataset,
    load_model,
    predict,
    pretrain,
    train,
)
from cell_attention.cli.entry import run as run_words
from cell_attention.errors import InputError
from cell_attention.models.registry import build_network, sizes_of
from cell_attention.nn.masked import MaskedNetwork
from cell_attention.training.cell_values import CellValues
from cell_attention.training.masked_loop import MaskedTraining, draw_mask
from learning import assert_resumes_to_the_same_bytes, refused

SMALL: dict[str, Any] = {"hidden": (4, 4), "heads": (2, 2)}
SCHEDULE = {"epochs": 4, "learning_rate": 5e-3}
QUICK = ("--hidden", "4", "4", "--heads", "2", "2", "--epochs", "6", "--quiet")


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained") / "model"
    pretrain("MUTAG", network=SMALL, training=SCHEDULE, folder=folder)
    return folder


def masked_network(graphs: CellComplex, **changes: Any) -> MaskedNetwork:
    torch.manual_seed(0)
    config = NetworkConfig(**{**SMALL, **changes})
    network: Any = build_network("can", config, sizes_of("can", graphs, 1))
    return MaskedNetwork(network, (7, 4, 3)).eval()


def masks(graphs: CellComplex) -> list[Tensor]:
    torch.manual_seed(1)
    counts = graphs.num_nodes, graphs.num_edges, graphs.num_polygons
    return [draw_mask(count, 0.2) for count in counts]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pooling": "hierarchical"},
        {"design": "paper", "lift_heads": 4, "pooling": "hierarchical", "head_hidden": 4},
    ],
)
@pytest.mark.parametrize("training", [False, True])
def test_masked_cells_do_not_see_their_own_value(
    changes: dict[str, Any], training: bool, mutag: CellComplex
) -> None:
    graphs = mutag[:20]
    network, hidden = masked_network(graphs, **changes).train(training), masks(graphs)
    assert graphs.edge_features is not None
    nodes, edges = graphs.node_features.clone(), graphs.edge_features.clone()
    nodes[hidden[0]] = nodes[hidden[0]].roll(1, 1) + 3.0
    edges[hidden[1]] = edges[hidden[1]].roll(1, 1) - 5.0
    other = replace(graphs, node_features=nodes, edge_features=edges)

    def guesses(complexes: CellComplex) -> list[Tensor]:
        torch.manual_seed(2)  # dropout
        return [guess.logits for guess in network(complexes, hidden)]

    found = guesses(graphs)
    for one, two in zip(found, guesses(other), strict=True):
        assert torch.equal(one, two)
    # Values that are not masked are seen.
    other = replace(graphs, node_features=nodes.roll(1, 1), edge_features=edges.roll(1, 1))
    for one, two in zip(found, guesses(other), strict=True):
        assert not one.numel() or not torch.equal(one, two)  # pooling may drop all polygons
    assert found[0].numel()


def test_masked_polygons_do_not_begin_at_the_vector_of_their_size(mutag: CellComplex) -> None:
    graphs = mutag[:20]
    network, hidden = masked_network(graphs), masks(graphs)
    hexagons = graphs.polygon_sizes == 6
    start: Any = network.network.start
    found = []
    for mask in (hexagons, hidden[2]):
        for shift in (0.0, 1.0):
            with torch.no_grad():
                start.sizes.weight[3] += shift  # of six nodes
            found.append(network(graphs, [None, None, mask])[0].logits)
    assert torch.equal(found[0], found[1])  # every hexagon is masked
    assert not torch.equal(found[2], found[3])


def test_the_guesses_are_those_of_the_masked_cells(mutag: CellComplex) -> None:
    graphs = mutag[:20]
    network, hidden = masked_network(graphs), masks(graphs)
    for guess, mask, width in zip(network(graphs, hidden), hidden, (7, 4, 3), strict=True):
        assert torch.equal(guess.cells, mask.nonzero().squeeze(1))
        assert guess.logits.shape == (int(mask.sum()), width)
    # Pooling drops edges: their rows are still those of the input.
    pooled = masked_network(graphs, pooling="hierarchical")(graphs, hidden)[1]
    assert 0 < pooled.cells.numel() < int(hidden[1].sum())
    assert bool(hidden[1][pooled.cells].all())


def test_the_values_of_cells_are_the_distinct_rows(mutag: CellComplex) -> None:
    assert mutag.edge_features is not None
    sizes = mutag.polygon_sizes[:, None]
    for rank, rows in enumerate((mutag.node_features, mutag.edge_features, sizes)):
        values = CellValues.of(mutag, rank)
        assert values is not None
        classes = values.classes(mutag).numpy()
        _, expected, counts = np.unique(
            rows.numpy(), axis=0, return_inverse=True, return_counts=True
        )
        assert len(values) == len(counts)
        assert len({*zip(classes.tolist(), expected.ravel().tolist(), strict=True)}) == len(counts)
        assert (classes == values.usual).sum() == counts.max()


def test_a_value_that_training_did_not_have_is_no_class(mutag: CellComplex) -> None:
    carbon = mutag.node_features.argmax(1) == 0
    only = [g for g in range(188) if bool(carbon[mutag.node_complex == g].all())]
    assert only == []
    few = CellValues.of(mutag[:3], 0)
    assert few is not None
    known = {tuple(row) for row in mutag[:3].node_features.tolist()}
    expected = torch.tensor([tuple(row) in known for row in mutag.node_features.tolist()])
    assert not bool(expected.all())
    assert torch.equal(few.classes(mutag) >= 0, expected)


def test_a_mask_has_its_share_and_never_nothing() -> None:
    torch.manual_seed(0)
    assert 1400 < int(draw_mask(10_000, 0.15).sum()) < 1600
    assert all(int(draw_mask(3, 1e-6).sum()) == 1 for _ in range(20))
    assert draw_mask(0, 0.5).numel() == 0


def test_the_reported_accuracies_are_those_of_counting(mutag: CellComplex) -> None:
    training = MaskedTraining(
        mutag, range(100), range(100, 188), training=TrainingConfig(epochs=2), seed=(0,), mask=0.3,
        build=lambda: masked_network(mutag).network,
    )  # fmt: skip
    training.epoch()
    chosen = torch.arange(100, 188)
    graphs = mutag[chosen]
    nodes, edges, polygons = training.guessed(chosen)
    # The same masks, drawn again.
    generator = torch.Generator().manual_seed(20)
    hidden = [
        draw_mask(count, 0.3, generator)
        for count in (graphs.num_nodes, graphs.num_edges, graphs.num_polygons)
    ]
    network: Any = training.result.eval()
    with torch.no_grad():
        logits = network(graphs, hidden)[0].logits
    rows = [tuple(row) for row in graphs.node_features[hidden[0]].tolist()]
    kinds = [tuple(row) for row in mutag[:100].node_features.tolist()]
    common = Counter(kinds).most_common(1)[0][0]
    assert nodes.cells == len(rows)
    assert nodes.most_frequent == 100 * rows.count(common) / len(rows)
    values = training.values[0]
    assert values is not None
    right = (logits.argmax(1) == values.classes(graphs)[hidden[0]]).double().mean()
    assert nodes.accuracy == pytest.approx(100 * float(right))
    mean = (nodes.accuracy + edges.accuracy + polygons.accuracy) / 3
    assert training.evaluate(chosen).score == pytest.approx(mean)


def test_a_network_learns_what_is_masked(mutag: CellComplex) -> None:
    model = pretrain("MUTAG", network=SMALL, training={"epochs": 15, "learning_rate": 1e-2})
    found = model.provenance["masked"]
    assert {*found} == {"nodes", "edges", "polygons"}
    assert found["nodes"]["accuracy"] > found["nodes"]["most_frequent"] + 10
    assert found["edges"]["accuracy"] > found["edges"]["most_frequent"] + 10


def test_a_pretrained_model_has_fingerprints_and_predicts_nothing(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = load_model(pretrained)
    assert model.task == "none"
    assert sorted(path.name for path in pretrained.iterdir()) == [
        "config.json", "metrics.jsonl", "model.safetensors", "splits.json",
    ]  # fmt: skip
    vectors = fingerprint(pretrained, "MUTAG")
    assert vectors.shape == (188, model.config.readout_width)
    with pytest.raises(InputError, match="pretrained without targets, so it predicts nothing"):
        predict(model, "MUTAG")
    for verb, *more in (["predict"], ["explain", "--out", str(tmp_path / "a.html")]):
        said = refused([verb, str(pretrained), "MUTAG", *more], capsys)
        assert "train one from it (--from), or take its fingerprints" in said


def test_training_starts_from_what_was_learned_and_from_nothing_else(
    pretrained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(pretrained)
    tuned = train("MUTAG", from_model=pretrained, training=SCHEDULE, freeze=("start", "layers"))
    old, new = model.network.state_dict(), tuned.network.state_dict()
    for name in old:
        same = torch.equal(old[name], new[name])
        assert same == name.startswith(("start.", "layers.")), name
    moved = tuned.provenance["transfer"]
    assert moved["copied"]["parts"] == ["start", "layers"]
    assert moved["new"]["parts"] == ["head", "head_norm", "counts", "descriptors"]


def test_a_damaged_record_of_what_was_learned_is_one_line(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(pretrained, folder)
    record = json.loads((folder / "config.json").read_text())
    record["provenance"]["learned"] = 3
    (folder / "config.json").write_text(json.dumps(record))
    words = ["train", "MUTAG", "--from", str(folder), "--out", str(tmp_path / "m")]
    assert "provenance.learned must be a list of names, got 3" in refused(words, capsys)


def test_an_interrupted_pretraining_ends_with_the_same_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pretrain", "MUTAG", *QUICK, "--checkpoint-seconds", "0"]
    assert_resumes_to_the_same_bytes(words, tmp_path, epochs=3)
    assert "run the same command to resume" in capsys.readouterr().err
    # The same command only reads; another share of masked cells is another model.
    words += ["--out", str(tmp_path / "cut")]
    capsys.readouterr()
    assert run_words([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mask"] == 0.15
    assert "has another model" in refused([*words, "--mask", "0.3"], capsys)


def test_molecules_need_no_targets_and_those_of_a_table_are_not_read(tmp_path: Path) -> None:
    smiles = ["CCO", "c1ccccc1O", "CCN", "c1ccccc1N", "OC1CCCC1", "CC(=O)O"] * 5
    listed, table = tmp_path / "a.smi", tmp_path / "a.csv"
    listed.write_text("\n".join(smiles))
    rows = [f"{text},{'' if number % 2 else 'x'},word" for number, text in enumerate(smiles)]
    table.write_text("\n".join(["smiles,mixed,name", *rows]))
    models = [pretrain(path, network=SMALL, training={"epochs": 2}) for path in (listed, table)]
    states = [model.network.state_dict() for model in models]
    for name, value in states[0].items():
        assert torch.equal(value, states[1][name]), name
    assert models[0].provenance["masked"]["polygons"]["values"] == 2  # rings of five and six


def test_what_cannot_be_pretrained_is_one_line(
    tmp_path: Path, mutag: CellComplex, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "m"), "--quiet"]
    said = refused(["pretrain", "MUTAG", "--mask", "1.5", *out], capsys)
    assert "mask must lie in (0, 1), got 1.5" in said
    said = refused(["pretrain", "MUTAG", "--validation", "0", *out], capsys)
    assert "validation must lie in (0, 1), got 0" in said
    said = refused(["pretrain", "MUTAG", "--task", "regression", *out], capsys)
    assert "pretrain uses no targets" in said
    assert not (tmp_path / "m").exists()
    plain = replace(mutag, node_features=torch.ones(mutag.num_nodes, 1), edge_features=None)
    with pytest.raises(InputError, match="nothing can be masked"):
        pretrain(plain, network={**SMALL, "ranks": (0, 1)}, training=SCHEDULE)
    numbers = replace(plain, node_features=torch.randn(mutag.num_nodes, 20))
    few = numbers[torch.arange(188).repeat(2)]
    assert CellValues.of(few, 0) is not None  # 3,371 different rows are few enough
    many = replace(few, node_features=torch.randn(few.num_nodes, 1))
    assert CellValues.of(many, 0) is None
