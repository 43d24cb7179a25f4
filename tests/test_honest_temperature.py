"""Temperatures make probabilities honest and never change what is decided."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from cell_attention import (
    CANClassifier,
    NetworkConfig,
    explain,
    load_dataset,
    load_model,
    predict,
)
from cell_attention.cli.entry import run as run_words
from cell_attention.data.file_format import Kind
from cell_attention.errors import DataError
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import (
    at_temperatures,
    log_probabilities,
    predict_complexes,
    predictions_from,
)
from cell_attention.inference.reliability import (
    best_temperatures,
    calibration_error,
    chances_of,
    reliability_table,
    tempered_thresholds,
)
from cell_attention.models.registry import build_network
from cell_attention.training.metrics import best_thresholds

NAN = float("nan")


def drawn(kind: Kind, graphs: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits, and targets that are drawn with their probabilities."""
    generator = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(graphs, 3, generator=generator, dtype=torch.float64)
    if kind == "classes":
        return logits, torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    return logits, torch.bernoulli(logits.sigmoid(), generator=generator)


def test_overconfident_logits_get_the_factor_back_that_made_them_so() -> None:
    logits, classes = drawn("classes", 16000)
    for factor in (0.4, 1.0, 3.0):
        logs = log_probabilities("classes", [factor * logits])
        assert best_temperatures("classes", logs, classes) == pytest.approx((factor,), rel=0.08)
    logits, labels = drawn("labels", 16000)
    factors = torch.tensor([0.4, 1.0, 3.0])
    labels[:500, 1] = NAN
    found = best_temperatures("labels", log_probabilities("labels", [factors * logits]), labels)
    assert found == pytest.approx(tuple(factors.tolist()), rel=0.12)
    assert best_temperatures("values", logits, labels) == ()


def test_a_few_right_answers_make_no_certainty() -> None:
    logs = torch.tensor([[0.0, 2.0]] * 10).log_softmax(1)
    (few,) = best_temperatures("classes", logs, torch.ones(10))
    (many,) = best_temperatures("classes", logs.repeat(100, 1), torch.ones(1000))
    assert 0.9 < few < 1.0
    assert many < 0.6
    assert best_temperatures("labels", torch.ones(2, 1), torch.full((2, 1), NAN)) == (1.0,)


@pytest.mark.parametrize("factor", [1.0, 1.5, 3.0])
def test_a_few_graphs_do_not_make_probabilities_worse_on_average(factor: float) -> None:
    # As many validation graphs as a tenth of MUTAG, from networks that are right in nine of ten.
    generator = torch.Generator().manual_seed(0)
    gains = []
    for _ in range(100):
        logits = 2.5 * torch.randn(519, 2, generator=generator, dtype=torch.float64)
        classes = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
        logs = log_probabilities("classes", [factor * logits])
        (warmth,) = best_temperatures("classes", logs[:19], classes[:19])
        before, after = (cross_entropy(logs[19:] / t, classes[19:]) for t in (1.0, warmth))
        gains.append(float(before - after))
    assert sum(gains) / len(gains) > -0.003
    assert min(gains) > -0.05


def test_a_temperature_lowers_the_calibration_error_of_other_graphs() -> None:
    for kind in ("classes", "labels"):
        logits, targets = drawn(kind, 2000)
        logs = log_probabilities(kind, [4.0 * logits])
        held_out = targets[1000:]
        chosen = best_temperatures(kind, logs[:1000], targets[:1000])
        before, after = (
            calibration_error(*chances_of(kind, at_temperatures(kind, logs[1000:], t), held_out))
            for t in ((1.0,) * len(chosen), chosen)
        )
        assert before > 0.12
        assert after < 0.05


@pytest.mark.parametrize(("task", "outputs"), [("classes", 2), ("classes", 5), ("labels", 3)])
@pytest.mark.parametrize("members", [1, 3])
def test_decisions_do_not_depend_on_the_temperature(task: Kind, outputs: int, members: int) -> None:
    sizes = {"node_features": 1, "edge_features": 0, "outputs": outputs}
    config = NetworkConfig(hidden=(2,), heads=(1,), head_hidden=2, counts=0)
    plain = Model((build_network("can", config, sizes),) * members, task, (), {}, {})
    draw, count = np.random.default_rng(1), 1 if task == "classes" else outputs
    for _ in range(30):
        made = [torch.from_numpy(draw.normal(size=(50, outputs))) for _ in range(members)]
        shape = (50,) if task == "classes" else (50, outputs)
        known = torch.from_numpy(draw.integers(0, outputs if task == "classes" else 2, shape))
        values = predictions_from(plain, made).values
        limits = best_thresholds(task, values, known.double())
        warmth = tuple(draw.uniform(0.3, 3.0, count).tolist())
        before = predictions_from(replace(plain, thresholds=limits), made)
        other = replace(plain, temperatures=warmth, thresholds=tempered_thresholds(limits, warmth))
        after = predictions_from(other, made)
        assert torch.equal(before.decided(replace(plain, thresholds=limits)), after.decided(other))
        assert not torch.allclose(before.values, after.values)
        same = predictions_from(replace(plain, temperatures=(1.0,) * len(warmth)), made)
        torch.testing.assert_close(same.values, values, rtol=1e-12, atol=1e-15)
        assert (same.spread is None) == (members == 1)


def test_the_reliability_table_counts_every_graph_once() -> None:
    chances = torch.tensor([0.0, 0.05, 0.1, 0.95, 1.0]).double()
    table = reliability_table(chances, torch.tensor([0, 1, 1, 1, 1]))
    assert table == [
        {"from": 0.0, "graphs": 2, "probability": pytest.approx(0.025), "frequency": 0.5},
        {"from": 0.1, "graphs": 1, "probability": pytest.approx(0.1), "frequency": 1.0},
        {"from": 0.9, "graphs": 2, "probability": pytest.approx(0.975), "frequency": 1.0},
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("warm")
    rows = [
        f"{'C' * n}{tail},{int(tail == 'O')},{int(n > 9)}"
        for n in range(1, 21)
        for tail in ("O", "N")
    ]
    (place / "t.csv").write_text("\n".join(["smiles,a,b", *rows]) + "\n")
    small = ["--hidden", "4", "--heads", "2", "--epochs", "4", "--quiet", "--descriptors", "none"]
    for name, columns in (("two", "a"), ("labels", "ab")):
        words = ["train", str(place / "t.csv"), "--target-columns", *columns]
        assert run_words([*words, *small, "--validation", "0.25", "--out", str(place / name)]) == 0
    return place


@pytest.mark.parametrize(("name", "count"), [("two", 1), ("labels", 2)])
def test_every_door_shows_the_same_probability(name: str, count: int, place: Path) -> None:
    model = load_model(place / name)
    assert len(model.temperatures) == count
    assert all(number != 1.0 for number in model.temperatures)
    table = predict(place / name, place / "t.csv")
    plain = predict(replace(model, temperatures=()), place / "t.csv")
    assert not torch.allclose(table.values, plain.values)
    smiles = [row[0] for row in table.rows[:3]]
    for row, one in zip(table.values[:3], explain(model, smiles, measure=True), strict=True):
        torch.testing.assert_close(one.predictions, row, rtol=1e-4, atol=1e-5)
        assert one.faithfulness is not None
        whole = float(one.faithfulness.ours.deletion[0, 0])
        assert whole == pytest.approx(one.prediction, abs=1e-5)


def test_train_records_what_the_temperature_changes(place: Path) -> None:
    for name in ("two", "labels"):
        model = load_model(place / name)
        known = model.provenance["reached"]
        for part in ("validation", "test"):
            assert known[part]["calibration_error_before"] != known[part]["calibration_error"]
            per_graph = 1 if name == "two" else 2
            counted = sum(row["graphs"] for row in known[part]["reliability"])
            assert counted == per_graph * known[part]["graphs"]
        split = json.loads((place / name / "splits.json").read_text())["test"]
        values = predict(replace(model, temperatures=()), place / "t.csv").values[split]
        rows = [line.split(",") for line in (place / "t.csv").read_text().splitlines()[1:]]
        truth = torch.tensor([[float(rows[row][1]), float(rows[row][2])] for row in split])
        target = truth if name == "labels" else truth[:, 0]
        error = calibration_error(*chances_of(model.task, values, target))  # type: ignore[arg-type]
        assert known["test"]["calibration_error_before"] == pytest.approx(error, abs=1e-6)


def test_models_without_a_temperature_predict_as_ever(place: Path, tmp_path: Path) -> None:
    for path in (place / "two").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    record = json.loads((tmp_path / "config.json").read_text())
    del record["temperatures"]
    (tmp_path / "config.json").write_text(json.dumps(record))
    old = load_model(tmp_path)
    assert old.temperatures == ()
    with torch.no_grad():
        graphs = load_dataset(place / "t.csv")
        expected = old.network(graphs).double().softmax(1)
    assert torch.equal(predict_complexes(old, graphs).values, expected)
    for wrong, said in (
        ([1.0, 2.0], "temperatures do not fit 2 outputs"), ("hot", "temperatures do not fit"),
        ([0.0], "temperatures must lie in"), ([NAN], "temperatures must lie in"),
        ([True], "temperatures must lie in"),
    ):  # fmt: skip
        (tmp_path / "config.json").write_text(json.dumps({**record, "temperatures": wrong}))
        with pytest.raises(DataError, match=said):
            load_model(tmp_path)


def test_the_estimator_predicts_calibrated_probabilities() -> None:
    molecules = [f"{'C' * n}{tail}" for n in range(1, 11) for tail in ("O", "N", "CF")]
    classes = [index % 3 for index in range(30)]
    made = CANClassifier(hidden=(4,), heads=(1,), epochs=3, validation=0.3).fit(molecules, classes)
    (warmth,) = made.model_.temperatures
    assert warmth != 1.0
    raw = replace(made.model_, temperatures=())
    found = made.predict_proba(molecules)
    made.model_ = raw
    plain = made.predict_proba(molecules)
    expected = torch.tensor(plain).log().div(warmth).softmax(1).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (found.argmax(1) == plain.argmax(1)).all()
