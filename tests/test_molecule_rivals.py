"""Rivals that read molecules instead of graphs: what they are fitted to, and what they predict."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from rdkit import Chem
from rdkit.Chem import AllChem, Descriptors
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import accuracy_score, roc_auc_score, root_mean_squared_error
from torch import Tensor

from cell_attention import NetworkConfig, TrainingConfig, lift
from cell_attention.cli.entry import run as run_words
from cell_attention.data.splits.folds import Fold
from cell_attention.models import molecule_tables
from cell_attention.models.fitting import FoldTask
from cell_attention.models.molecule_fitter import random_state
from cell_attention.models.registry import MODELS, fitter
from cell_attention.models.settings import Settings
from learning import refused

TABLES = [name for name in MODELS if name in molecule_tables.TABLES]
TEXTS = ["C" * n + "O" if n % 2 else "C1CCCCC1" + "C" * n + "N" for n in range(1, 41)]
TREES = 20
FOLD = Fold(tuple(range(0, 40, 2)), tuple(range(1, 40, 6)), tuple(range(3, 40, 6)))


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(molecule_tables, "TREES", TREES)


def fold_task(
    model: str, targets: Tensor, *, fold: Fold = FOLD, metric: str | None = None
) -> FoldTask:
    complexes = replace(lift(TEXTS), targets=targets)
    settings = Settings(
        "t.csv", len(TEXTS), "", "", "", NetworkConfig(), TrainingConfig(), model=model,
        metric=metric,
    )  # fmt: skip
    return FoldTask(settings, complexes, fold, (7,), smiles=lambda: TEXTS)


def score(task: FoldTask) -> float:
    (found,) = fitter(task.settings.model).fit_fold(task)["score"]
    return float(found)


def descriptors(texts: Sequence[str] = TEXTS) -> NDArray[np.float64]:
    listed = [Descriptors.CalcMolDescriptors(Chem.MolFromSmiles(text)) for text in texts]
    return np.array([list(values.values()) for values in listed])


def fingerprints() -> NDArray[np.uint8]:
    make = AllChem.GetMorganGenerator(radius=2, fpSize=2048)
    return np.array([make.GetFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in TEXTS])


def learners(name: str) -> tuple[NDArray[Any], Any, Any]:
    """The table of a model, and its learners of classes and of values, as its page says."""
    state = random_state((7,))
    if name == "boosting":
        more: dict[str, Any] = {"early_stopping": False, "random_state": state}
        return (
            descriptors(), HistGradientBoostingClassifier(**more),
            HistGradientBoostingRegressor(**more),
        )  # fmt: skip
    table = fingerprints() if name == "forest" else descriptors()
    more = {"n_estimators": TREES, "random_state": state}
    return table, RandomForestClassifier(**more), RandomForestRegressor(max_features=1 / 3, **more)


@pytest.mark.parametrize("name", TABLES)
def test_a_score_is_that_of_scikit_learns_own_learner_on_the_same_table(name: str) -> None:
    table, classifier, regressor = learners(name)
    rest, held = list(FOLD.rest), list(FOLD.held_out)
    classes = np.arange(40) * 7 % 3
    guessed = classifier.fit(table[rest], classes[rest]).predict(table[held])
    expected = 100.0 * accuracy_score(classes[held], guessed)
    assert score(fold_task(name, torch.from_numpy(classes))) == pytest.approx(expected)
    values = np.sin(np.arange(40.0))
    guessed = regressor.fit(table[rest], values[rest]).predict(table[held])
    expected = -root_mean_squared_error(values[held], guessed)
    assert score(fold_task(name, torch.from_numpy(values))) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", TABLES)
def test_labels_are_learned_one_by_one_from_the_molecules_where_they_are_known(name: str) -> None:
    table, classifier, regressor = learners(name)
    labels = np.stack([np.arange(40.0) % 2, np.arange(40.0) // 2 % 2, np.arange(40.0) // 3 % 2], 1)
    labels[5:9, 0] = labels[::5, 1] = np.nan
    rest, held = np.array(FOLD.rest), np.array(FOLD.held_out)
    areas = []
    for column in labels.T:
        known = rest[~np.isnan(column[rest])]
        if name == "boosting":
            guessed = classifier.fit(table[known], column[known]).predict_proba(table[held])[:, 1]
        else:
            guessed = regressor.fit(table[known], column[known]).predict(table[held])
        there = ~np.isnan(column[held])
        if len(set(column[held][there])) == 2:
            areas.append(roc_auc_score(column[held][there], guessed[there]))
    task = fold_task(name, torch.from_numpy(labels), metric="roc_auc")
    assert score(task) == pytest.approx(np.mean(areas), rel=1e-6)
    assert score(task) == score(task)


@pytest.mark.parametrize("name", TABLES)
def test_a_lone_class_or_label_in_training_is_always_predicted(name: str) -> None:
    classes = torch.zeros(40, dtype=torch.int64)
    classes[list(FOLD.held_out[:2])] = 1
    expected = 100.0 * (1 - 2 / len(FOLD.held_out))
    assert score(fold_task(name, classes)) == pytest.approx(expected)
    for other in (classes.double(), 1.0 - classes.double()):
        labels = torch.stack([torch.arange(40.0) % 2, other], 1)
        task = fold_task(name, labels, metric="brier")
        made: Any = fitter(name)
        guessed = made.predictions(task, TEXTS, targets=labels.numpy(), kind="labels")
        torch.testing.assert_close(guessed[:, 1], other[-1].expand(len(guessed)))


@pytest.mark.parametrize("name", TABLES)
def test_a_target_that_is_known_nowhere_in_training_is_not_scored(name: str) -> None:
    targets = torch.randn(40, 2)
    targets[list(FOLD.rest), 1] = torch.nan
    both = score(fold_task(name, targets))  # errors of several columns are in their deviations
    alone = score(fold_task(name, targets[:, :1]))
    scale = targets[list(FOLD.rest), 0].std(correction=0)
    assert both == pytest.approx(alone / float(scale), rel=1e-5)


@pytest.mark.parametrize("name", ["forest-rdkit", "boosting"])
def test_a_descriptor_without_any_known_value_is_left_out(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = descriptors()
    values = torch.arange(40.0).sin()
    unknown = np.full((40, 1), np.nan)
    unknown[FOLD.held_out[0]] = 3.0
    tables = {}
    for number, more in enumerate((np.empty((40, 0)), unknown)):
        wider = np.hstack([table[:, :50], more, table[:, 50:]])
        model = replace(molecule_tables.TABLES[name], table=lambda smiles, wider=wider: wider)
        monkeypatch.setitem(molecule_tables.TABLES, name, model)
        tables[number] = score(fold_task(name, values))
    assert tables[0] == tables[1]


def test_the_folds_of_a_run_share_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*TEXTS[:-1], "CCCCF"]
    first = molecule_tables.rdkit_table(texts)
    assert molecule_tables.rdkit_table(tuple(texts)) is first
    assert not first.flags.writeable
    np.testing.assert_allclose(first, descriptors(texts), rtol=1e-12)


@pytest.mark.parametrize("name", ["forest-rdkit", "boosting"])
def test_descriptor_models_cross_validate_and_are_reported(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "t.csv"
    source.write_text("smiles,size\n" + "".join(f"{text},{len(text) / 3}\n" for text in TEXTS))
    words = ["crossval", str(source), "--model", name, "--folds", "2", "--jobs", "1"]
    words += ["--split", "scaffold", "--out", str(tmp_path / "run"), "--json", "--quiet"]
    assert run_words(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["model"], len(record["protocols"]["paper"]["folds"])) == (name, 2)
    assert run_words(["report", str(tmp_path / "run")]) == 0
    assert name in capsys.readouterr().out
    out = ["--out", str(tmp_path / "no")]
    line = refused(["train", str(source), "--model", name, *out], capsys)
    assert f"model '{name}' is not a network and cannot be saved" in line
    line = refused(["crossval", "MUTAG", "--model", name, *out], capsys)
    assert f"model '{name}' needs a file of molecules" in line
