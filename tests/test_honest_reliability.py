"""Intervals hold what they promise, and the calibration error is that of its definition."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cell_attention import load_model, predict
from cell_attention.cli.entry import run as run_words
from cell_attention.inference.reliability import calibration_error, coverage, margins_of
from learning import refused

SMALL = ["--hidden", "4", "--heads", "2", "--epochs", "2", "--quiet"]
NAN = float("nan")


def test_a_margin_is_the_quantile_of_split_conformal_prediction() -> None:
    draw = np.random.default_rng(3)
    for count in (9, 10, 19, 25, 99, 100):
        errors = draw.normal(size=(count, 2))
        (first, second) = margins_of(torch.tensor(errors), torch.zeros(count, 2).double())
        place = int(np.ceil(np.round(0.9 * (count + 1), 9))) - 1
        assert first == np.sort(np.abs(errors[:, 0]))[place]
        assert second == np.sort(np.abs(errors[:, 1]))[place]
    assert margins_of(torch.rand(8, 1), torch.rand(8, 1)) == (None,)
    gaps = torch.tensor([[0.0]] * 9 + [[NAN]] * 5)
    assert margins_of(torch.arange(14.0)[:, None], gaps) == (8.0,)


def test_intervals_contain_nine_of_ten_new_values_on_average() -> None:
    draw, inside = np.random.default_rng(5), []
    for _ in range(400):
        errors = torch.tensor(draw.standard_t(3, size=(219, 1)))
        nothing = torch.zeros_like(errors)
        margins = margins_of(errors[:19], nothing[:19])
        inside.append(coverage(errors[19:], nothing[19:], margins)["share"])
    # With 19 validation values the 18th is taken: exactly 18 / 20 on average.
    assert float(np.mean(inside)) == pytest.approx(0.9, abs=0.01)


def test_coverage_counts_known_values_of_columns_with_a_margin() -> None:
    guessed = torch.tensor([[0.0, 0.0], [1.0, 5.0], [2.0, 0.0]])
    known = torch.tensor([[0.5, 0.0], [3.0, 0.0], [NAN, 0.0]])
    assert coverage(guessed, known, (1.0, None)) == {"values": 2, "share": 0.5}
    assert coverage(guessed, known, (1.0, 4.0)) == {"values": 5, "share": 0.6}
    assert coverage(guessed, known, (None, None)) == {}


def test_the_calibration_error_is_that_of_its_definition() -> None:
    draw = np.random.default_rng(1)
    chances, truths = draw.random(500), draw.integers(0, 2, 500)
    chances[:3] = (0.0, 1.0, 0.1)
    expected = 0.0
    for part in range(10):
        low, high = part / 10, (part + 1) / 10
        inside = (chances >= low) & ((chances < high) | (part == 9))
        gap = abs(chances[inside].mean() - truths[inside].mean())
        expected += inside.sum() / len(chances) * gap
    found = calibration_error(torch.tensor(chances), torch.tensor(truths))
    assert found == pytest.approx(expected)
    perfect = torch.tensor([0.25] * 4)
    assert calibration_error(perfect, torch.tensor([0, 0, 0, 1])) == 0.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reliable")


@pytest.fixture(scope="module")
def values(place: Path) -> Path:
    rows = [f"{'C' * n}{tail},{n + len(tail)}" for n in range(1, 21) for tail in ("O", "N", "CF")]
    (place / "v.csv").write_text("\n".join(["smiles,y", *rows]) + "\n")
    words = ["train", str(place / "v.csv"), "--out", str(place / "values"), *SMALL]
    assert run_words([*words, "--validation", "0.25", "--test", "0.25"]) == 0
    return place / "values"


def test_predicted_values_have_an_interval_whose_coverage_is_reported(
    values: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, model = predict(values, str(place / "v.csv")), load_model(values)
    assert table.header[2:5] == ("y_prediction", "y_low", "y_high")
    rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    split = json.loads((values / "splits.json").read_text())
    reached = model.provenance["reached"]
    truth = np.array([float(row["y"]) for row in rows])
    low, high = (np.array([float(row[f"y_{end}"]) for row in rows]) for end in ("low", "high"))
    middle = np.array([float(row["y_prediction"]) for row in rows])
    errors = np.sort(np.abs(truth - middle)[split["validation"]])
    assert len(errors) == 15
    np.testing.assert_allclose((high - low) / 2, errors[int(np.ceil(0.9 * 16)) - 1], rtol=1e-3)
    test = split["test"]
    share = float(((low[test] <= truth[test]) & (truth[test] <= high[test])).mean())
    assert reached["test"]["intervals"] == {"values": len(test), "share": pytest.approx(share)}
    words = ["train", str(place / "v.csv"), "--out", str(values), *SMALL]
    assert run_words([*words, "--validation", "0.25", "--test", "0.25"]) == 0
    assert f"{100 * share:.1f} % of {len(test)} test values." in capsys.readouterr().out


def test_models_without_margins_have_no_intervals(values: Path, place: Path) -> None:
    model = load_model(values)
    header = predict(replace(model, margins=()), str(place / "v.csv")).header
    assert "y_low" not in header
    assert predict(replace(model, margins=(None,)), str(place / "v.csv")).header == header


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ([1.0, 2.0], "margins must be a list with an entry per column"),
        ("x", "margins must be a list with an entry per column"),
        ([float("inf")], "margins must be finite and at least 0"),
        ([-1], "margins must be finite and at least 0"),
        ([True], "margins must be finite and at least 0"),
    ],
)
def test_margins_that_are_not_valid_are_refused(
    margins: object, said: str, values: Path, place: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    shutil.copytree(values, tmp_path / "m")
    record = json.loads((values / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps({**record, "margins": margins}))
    assert said in refused(["predict", str(tmp_path / "m"), str(place / "v.csv")], capsys)


def test_train_reports_the_calibration_of_two_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{'C' * n}{tail},{int(tail == 'O')}" for n in range(1, 21) for tail in ("O", "N")]
    source, folder = tmp_path / "c.csv", tmp_path / "m"
    source.write_text("\n".join(["smiles,y", *rows]) + "\n")
    assert run_words(["train", str(source), "--out", str(folder), *SMALL]) == 0
    said = capsys.readouterr().out
    reached = load_model(folder).provenance["reached"]
    split = json.loads((folder / "splits.json").read_text())
    assert run_words(["predict", str(folder), str(source)]) == 0
    found = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    for name in ("validation", "test"):
        part = [found[row] for row in split[name]]
        chances = torch.tensor([float(row["y_probability"]) for row in part])
        error = calibration_error(chances, torch.tensor([int(row["y"]) for row in part]))
        assert reached[name]["calibration_error"] == pytest.approx(error, abs=1e-4)
        line = f"calibration error on the {name} graphs: {reached[name]['calibration_error']:.3f}"
        assert line in said
