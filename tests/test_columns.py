"""Several labels or columns of values: every one has scores of its own beside their mean."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    matthews_corrcoef,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from cell_attention import crossvalidate, lift, load_model, predict, train
from cell_attention.cli.entry import run as run_words
from cell_attention.evaluation.result import Result, read_result
from cell_attention.models.settings import Settings
from cell_attention.training.metrics import METRICS, column_metrics, measured
from cell_attention.training.tasks import Task, task_of

SMALL = ("--hidden", "4", "4", "--heads", "1", "1", "--epochs", "3", "--quiet")
QUICK = {"hidden": (4, 4), "heads": (1, 1)}


def table(path: Path, header: str, row: Callable[[int], str], count: int = 60) -> Path:
    tails = ("C", "N", "O", "CO", "CN")
    lines = [f"{'C' * (n // 5 + 1)}{tails[n % 5]},{row(n)}" for n in range(count)]
    path.write_text("\n".join([f"smiles,{header}", *lines]) + "\n")
    return path


def two_values(path: Path) -> Path:
    return table(path, "weight,tiny", lambda n: f"{100 + 7 * n % 50},{'' if n % 4 else n / 1e4}")


def two_labels(path: Path) -> Path:
    return table(path, "even,gaps", lambda n: f"{n % 2},{'' if n % 3 else n // 3 % 2}")


def test_metrics_of_every_label_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(1)
    known = random.integers(0, 2, (80, 3)).astype(np.float64)
    known[::5, 1] = np.nan
    known[:, 2] = 1.0
    guessed = random.random((80, 3))
    limits = (0.5, 0.3, 0.5)
    found = column_metrics(
        torch.tensor(guessed), torch.tensor(known), kind="labels", thresholds=limits
    )
    for column in (0, 1):
        there = ~np.isnan(known[:, column])
        truth, given = known[there, column], guessed[there, column]
        decided = given >= limits[column]
        expected = {
            "accuracy": 100 * (decided == truth).mean(),
            "roc_auc": roc_auc_score(truth, given),
            "pr_auc": average_precision_score(truth, given),
            "mcc": matthews_corrcoef(truth, decided),
            "brier": brier_score_loss(truth, given),
        }
        assert found[column] == pytest.approx(expected)
    assert found[2].keys() == {"accuracy", "mcc", "brier"}  # no ranks among one class


def test_errors_of_several_values_are_averaged_in_deviations() -> None:
    random = np.random.default_rng(2)
    known, guessed = random.normal(size=(50, 2)) * (1, 1e4), random.normal(size=(50, 2))
    scale = torch.tensor([2.0, 5e3])
    task = Task("values", 2, "rmse", None, torch.zeros(2), scale)
    errors = [root_mean_squared_error(known[:, i], guessed[:, i]) for i in (0, 1)]
    expected = -(errors[0] / 2.0 + errors[1] / 5e3) / 2
    tensors = torch.tensor(guessed), torch.tensor(known)
    assert task.score_of(*tensors) == pytest.approx(expected)
    assert task.score_name == "negative RMSE in standard deviations"
    assert task.column_scores(*tensors) == pytest.approx([-errors[0], -errors[1]])
    r2 = replace(task, metric="r2")  # has no unit
    assert r2.score_of(*tensors) == measured("r2", *tensors, kind="values")
    assert r2.score_name == "R²"
    one = Task("values", 1, "rmse", None, torch.zeros(1), scale[:1])
    assert one.score_name == METRICS["rmse"].score_name
    first = tensors[0][:, :1], tensors[1][:, :1]
    assert one.score_of(*first) == -measured("rmse", *first, kind="values")


def test_train_and_predict_report_every_value_in_its_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, folder, out = two_values(tmp_path / "t.csv"), tmp_path / "m", tmp_path / "out.csv"
    assert run_words(["train", str(source), "--out", str(folder), *SMALL]) == 0
    said = capsys.readouterr().out
    assert "weights of epoch" in said
    assert load_model(folder).provenance["score"] == "negative RMSE in standard deviations"
    assert "RMSE and MAE of all columns together are in standard deviations" in said
    assert sum(line.startswith("  tiny") for line in said.splitlines()) == 3
    known = load_model(folder).provenance
    assert run_words(["predict", str(folder), str(source), "--out", str(out)]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    test = json.loads((folder / "splits.json").read_text())["test"]
    for column, unit in zip(("weight", "tiny"), known["deviations"], strict=True):
        chosen = [rows[i] for i in test if rows[i][column]]
        truth = [float(row[column]) for row in chosen]
        given = [float(row[f"{column}_prediction"]) for row in chosen]
        found = known["reached"]["test"]["columns"][column]
        assert found["graphs"] == len(chosen)
        assert found["metrics"]["rmse"] == pytest.approx(
            root_mean_squared_error(truth, given), rel=1e-3
        )
        assert found["metrics"]["mae"] == pytest.approx(mean_absolute_error(truth, given), rel=1e-3)
        assert found["metrics"]["r2"] == pytest.approx(r2_score(truth, given), rel=1e-2)
        train = json.loads((folder / "splits.json").read_text())["train"]
        assert unit == pytest.approx(
            np.std([float(rows[i][column]) for i in train if rows[i][column]]), rel=1e-4
        )
    reached = known["reached"]["test"]
    each = [reached["columns"][name]["metrics"]["rmse"] for name in ("weight", "tiny")]
    mean = sum(error / by for error, by in zip(each, known["deviations"], strict=True)) / 2
    assert reached["metrics"]["rmse"] == pytest.approx(mean)
    assert reached["score"] == pytest.approx(-mean)


def test_predictions_have_metrics_of_every_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, folder = two_labels(tmp_path / "t.csv"), tmp_path / "m"
    assert run_words(["train", str(source), "--out", str(folder), *SMALL, "--json"]) == 0
    reached = json.loads(capsys.readouterr().out)["reached"]["test"]
    assert reached["columns"].keys() == {"even", "gaps"}
    assert run_words(["predict", str(folder), str(source), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = [row for row in found["predictions"] if row["gaps"]]
    truth = [float(row["gaps"]) for row in rows]
    given = [float(row["gaps_probability"]) for row in rows]
    metrics = found["metrics"]
    assert metrics["columns"]["gaps"]["roc_auc"] == pytest.approx(
        roc_auc_score(truth, given), abs=1e-3
    )
    both = [metrics["columns"][name]["brier"] for name in ("even", "gaps")]
    assert metrics["brier"] == pytest.approx(sum(both) / 2)
    assert run_words(["predict", str(folder), str(source)]) == 0
    assert "gaps: accuracy in %" in capsys.readouterr().err


def test_the_mean_error_of_a_model_without_deviations_is_not_reported(tmp_path: Path) -> None:
    source, folder = two_values(tmp_path / "t.csv"), tmp_path / "m"
    assert run_words(["train", str(source), "--out", str(folder), *SMALL]) == 0
    record = json.loads((folder / "config.json").read_text())
    del record["provenance"]["deviations"]  # as in models of earlier versions
    (folder / "config.json").write_text(json.dumps(record))
    found = predict(folder, source).metrics
    assert {"rmse", "mae"}.isdisjoint(found)
    assert {"rmse", "mae", "r2"} <= found["columns"]["tiny"].keys()


@pytest.mark.parametrize("model", ["gin", "forest"])
def test_a_cross_validation_has_the_scores_of_every_column(model: str, tmp_path: Path) -> None:
    network = {} if model == "forest" else {"hidden": (4, 4)}
    found = crossvalidate(
        str(two_labels(tmp_path / "t.csv")), model, network=network, folds=2,
        training=None if model == "forest" else {"epochs": 2}, folder=tmp_path / "run",
    )  # fmt: skip
    fair = found.protocols["fair"]
    assert fair is not None
    assert found.columns.keys() == {"even", "gaps"}
    even, gaps = (found.columns[name].folds for name in ("even", "gaps"))
    for one, two, both in zip(even, gaps, fair.folds, strict=True):
        assert one is not None
        assert two is not None
        assert (one + two) / 2 == pytest.approx(both)
    assert found.columns["even"].mean == pytest.approx(np.mean(np.array(even, dtype=float)))
    assert read_result(tmp_path / "run" / "result.json").columns == found.columns
    assert found.to_json() == (tmp_path / "run" / "result.json").read_text()


def test_results_and_settings_of_one_column_have_no_entry_for_columns(tmp_path: Path) -> None:
    source = table(tmp_path / "t.csv", "y", lambda n: str(n % 2))
    found = crossvalidate(str(source), "forest", folds=2, folder=tmp_path / "run")
    assert isinstance(found, Result)
    for name in ("run.json", "result.json", "fold-00.json"):
        assert '"columns"' not in (tmp_path / "run" / name).read_text()


def test_labels_that_an_earlier_version_began_to_learn_are_continued(tmp_path: Path) -> None:
    source, folder = two_labels(tmp_path / "t.csv"), tmp_path / "m"
    assert run_words(["train", str(source), "--out", str(folder), *SMALL]) == 0
    record = json.loads((folder / "config.json").read_text())["provenance"]
    names = Settings.__dataclass_fields__
    settings = Settings.of(
        {**{name: record[name] for name in names if name in record and name != "network"},
         "network": json.loads((folder / "config.json").read_text())["network"]}
    )  # fmt: skip
    earlier = replace(settings, columns=()).digest()
    assert settings.columns == ("even", "gaps")
    assert earlier in settings.digests()
    assert replace(settings, columns=(), task="values").digest() not in (
        replace(settings, task="values").digests()
    )


def untaught(path: Path) -> Path:
    """`late` is 1 in training and both in the rest; `never` is unknown in training."""
    parts = ["train"] * 36 + ["validation"] * 12 + ["test"] * 12

    def row(n: int) -> str:
        late = 1 if n < 36 else n // 2 % 2
        return f"{n % 2},{late},{'' if n < 36 else n % 2},{parts[n]}"

    return table(path, "even,late,never,set", row)


def test_labels_with_one_value_in_training_are_named_and_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, folder = untaught(tmp_path / "t.csv"), tmp_path / "m"
    words = ["train", str(source), "--split-column", "set", "--out", str(folder), *SMALL]
    assert run_words(words) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "only one value" in line]
    assert len(said) == 1
    assert "'late', 'never': only one value in the training graphs, so nothing can" in said[0]
    known = load_model(folder).provenance
    assert known["not_learned"] == ["late", "never"]
    for part in ("train", "validation", "test"):
        reached = known["reached"][part]
        assert reached["columns"]["late"] == {"graphs": 0, "metrics": {}}
        assert reached["columns"]["never"] == {"graphs": 0, "metrics": {}}
        assert reached["metrics"] == reached["columns"]["even"]["metrics"]
    found = predict(folder, source).metrics
    assert found["columns"]["late"] == found["columns"]["never"] == {}
    assert found["roc_auc"] == found["columns"]["even"]["roc_auc"]


def test_the_labels_that_can_be_learned_still_are() -> None:
    targets = torch.tensor([[n % 2, 1, float("nan")] for n in range(40)], dtype=torch.float32)
    graphs = replace(lift(["CCCCCC", "OOO"] * 20), targets=targets)
    task = task_of(graphs, torch.arange(30), kind="labels")
    assert task.taught is not None
    assert task.taught.tolist() == [True, False, False]
    perfect = targets.nan_to_num(0.0) * 20 - 10
    wrong_elsewhere = perfect.clone()
    wrong_elsewhere[:, 1] = -10
    assert task.score(wrong_elsewhere, targets) == 100.0
    model = train(graphs, network=QUICK, training={"epochs": 15})
    assert model.provenance["reached"]["validation"]["columns"]["0"]["metrics"]["roc_auc"] == 1.0


def test_a_single_column_and_columns_that_teach_are_all_scored() -> None:
    for targets in (torch.ones(9, 1), torch.arange(18.0).reshape(9, 2)):
        graphs = replace(lift(["CC"] * 9), targets=targets)
        assert task_of(graphs, torch.arange(9), kind="values").taught is None


def test_the_forest_leaves_out_what_cannot_be_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # In the training graphs of fold `a` the label `gone` has no known value.
    source = table(
        tmp_path / "t.csv", "even,gone,fold", lambda n: f"{n % 2},{'' if n % 4 < 2 else n % 2},"
        + ("b" if n % 4 < 2 else "a")
    )  # fmt: skip
    words = ["crossval", str(source), "--model", "forest", "--split-column", "fold", "--quiet"]
    assert run_words([*words, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert (
        "'gone': only one value in the training graphs of a fold (the first in fold 0)" in said.err
    )
    assert "Each column in its own unit" in said.out
    found = read_result(tmp_path / "run" / "result.json")
    assert found.columns["gone"].folds[0] is None
    assert found.columns["gone"].folds[1] is None  # fold b holds no known value
    assert found.columns["gone"].text(found.score) == "not defined"
    outcome = found.protocols["paper"]
    assert outcome is not None
    assert outcome.folds == found.columns["even"].folds
