"""Weights of rare classes and labels in the loss, and when they are the default."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional

from cell_attention import CellComplex, lift, load_dataset
from cell_attention.cli.entry import run as run_words
from cell_attention.data.dataset import GraphSet
from cell_attention.data.molecules.molecule_set import read_molecules
from cell_attention.errors import DataError
from cell_attention.training.class_weights import (
    choose_weights,
    weights_of_classes,
    weights_of_labels,
)
from cell_attention.training.tasks import task_of

SMALL = ("--hidden", "4", "4", "--heads", "1", "1", "--epochs", "2", "--quiet")


def table(path: Path, header: str, rows: list[str]) -> Path:
    lines = [f"{'C' * (n // 3 + 1)}{('', 'N', 'O')[n % 3]},{row}" for n, row in enumerate(rows)]
    path.write_text("\n".join([f"smiles,{header}", *lines]) + "\n")
    return path


def rare(path: Path, count: int = 150) -> Path:
    """One molecule in fifteen is of class 1."""
    return table(path, "y", [str(int(n % 15 == 0)) for n in range(count)])


def with_targets(targets: torch.Tensor) -> CellComplex:
    return replace(lift(["CC"] * len(targets)), targets=targets)


def test_weights_of_classes_are_the_balanced_ones_of_scikit_learn() -> None:
    seen = np.random.default_rng(0).choice(4, 200, p=[0.5, 0.3, 0.15, 0.05])
    theirs = compute_class_weight("balanced", classes=np.arange(4), y=seen)
    ours = weights_of_classes(torch.tensor(seen), 4)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)


def test_weights_of_every_label_are_the_balanced_ones_of_its_known_values() -> None:
    seen = (np.random.default_rng(0).random((300, 3)) < [0.5, 0.04, 0.97]).astype(np.float32)
    seen[::3, 1] = np.nan
    found = weights_of_labels(torch.tensor(seen), rare_only=False).numpy()
    for column in range(3):
        known = seen[~np.isnan(seen[:, column]), column]
        theirs = compute_class_weight("balanced", classes=np.array([0.0, 1.0]), y=known)
        np.testing.assert_allclose(found[:, column], theirs, rtol=1e-6)
    only = weights_of_labels(torch.tensor(seen), rare_only=True).numpy()
    assert only[:, 0].tolist() == [1.0, 1.0]
    assert (only[:, 1:] == found[:, 1:]).all()


def test_a_label_that_is_always_the_same_has_no_weight() -> None:
    seen = torch.tensor([[0.0, 1.0, float("nan")]] * 20)
    assert weights_of_labels(seen, rare_only=False).tolist() == [[1.0] * 3] * 2


def test_a_weighted_label_has_the_loss_of_two_weighted_classes() -> None:
    labels = (torch.arange(60) % 20 == 0).float()
    one, logits = with_targets(labels.unsqueeze(1)), torch.randn(60, 1)
    task = task_of(one, torch.arange(60), class_weights=True, kind="labels")
    both = torch.cat([torch.zeros(60, 1), logits], 1)
    weights = weights_of_classes(labels.long(), 2)
    theirs = functional.cross_entropy(both, labels.long(), weights)
    assert one.targets is not None
    torch.testing.assert_close(task.loss(logits, one.targets), theirs)
    balanced = np.where(labels == 1, float(weights[1]), float(weights[0]))
    expected = log_loss(labels.numpy(), logits.sigmoid().flatten().numpy(), sample_weight=balanced)
    assert float(task.loss(logits, one.targets)) == pytest.approx(expected, rel=1e-4)


def test_values_have_no_weights() -> None:
    with pytest.raises(DataError, match="class_weights needs targets that are classes, got values"):
        task_of(with_targets(torch.randn(9, 1)), torch.arange(9), class_weights=True)


def test_only_molecules_with_a_class_rarer_than_one_in_ten_are_weighted(tmp_path: Path) -> None:
    found = read_molecules(rare(tmp_path / "t.csv"))
    weights, said = choose_weights("auto", found, kind="classes", metric="roc_auc")
    assert weights is True
    assert said.startswith("class '1' is rare (6.7 %): rare classes have more weight")
    for asked in (True, False):
        assert choose_weights(asked, found, kind="classes", metric="roc_auc") == (asked, "")
    # Accuracy and the Brier score follow the true frequencies; None is accuracy.
    for metric in (None, "accuracy", "brier"):
        assert choose_weights("auto", found, kind="classes", metric=metric) == (False, "")
    tenth = read_molecules(table(tmp_path / "u.csv", "y", [str(int(n < 3)) for n in range(30)]))
    assert choose_weights("auto", tenth, kind="classes", metric="roc_auc") == (False, "")
    plain = GraphSet("graphs", found.graphs, kind="classes")  # not a file of molecules
    assert choose_weights("auto", plain, kind="classes", metric="roc_auc") == (False, "")


def test_labels_are_weighted_one_by_one(tmp_path: Path) -> None:
    rows = [f"{n % 2},{int(n % 20 == 0)},1" for n in range(60)]
    found = read_molecules(table(tmp_path / "t.csv", "even,few,all", rows))
    weights, said = choose_weights("auto", found, kind="labels", metric="roc_auc")
    assert weights == "auto"
    assert said.startswith("1 of 3 labels are rare, the first 'few': ")
    task = task_of(found.graphs, torch.arange(60), class_weights="auto", kind="labels")
    assert task.weights is not None
    assert task.weights[:, 0].tolist() == task.weights[:, 2].tolist() == [1.0, 1.0]
    assert task.weights[:, 1].tolist() == pytest.approx([60 / (2 * 57), 60 / (2 * 3)])


@pytest.mark.parametrize("name", ["BBBP.csv", "ESOL.csv"])
def test_the_molecules_of_the_published_results_are_not_weighted(name: str, data_dir: Path) -> None:
    found = read_molecules(data_dir / "MoleculeNet" / name, "skip")
    assert found.kind is not None
    metric = "rmse" if found.kind == "values" else "roc_auc"
    assert choose_weights("auto", found, kind=found.kind, metric=metric) == (False, "")


def test_the_default_weights_rare_molecules_says_so_and_can_be_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, found = rare(tmp_path / "t.csv"), {}
    for name, flags in (
        ("default", []), ("on", ["--class-weights"]), ("off", ["--no-class-weights"]),
    ):  # fmt: skip
        words = ["train", str(source), "--out", str(tmp_path / name), *SMALL, *flags]
        assert run_words(words) == 0
        said = capsys.readouterr().err
        assert ("class '1' is rare" in said) == (name == "default")
        assert ("--no-class-weights would weight" in said) == (name == "default")
        record = json.loads((tmp_path / name / "config.json").read_text())
        found[name] = record["weights_sha256"], record["provenance"]["class_weights"]
    assert found["default"] == found["on"]
    assert found["default"][1] is True
    assert found["off"][1] is False
    assert found["off"][0] != found["on"][0]
    words = ["train", str(source), "--class-weights", "--no-class-weights"]
    assert run_words(words) == 2
    assert "--class-weights and --no-class-weights contradict" in capsys.readouterr().err


def test_graphs_that_are_no_molecules_keep_their_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cell_attention import train

    mutag = load_dataset("MUTAG")
    few = (mutag.targets == 1).nonzero().flatten()[:120].tolist()
    graphs = mutag[sorted([*few, *(mutag.targets == 0).nonzero().flatten()[:9].tolist()])]
    made = [
        train(graphs, network={"hidden": (4, 4), "heads": (1, 1)}, training={"epochs": 1}, **more)
        for more in ({}, {"class_weights": False})
    ]
    assert made[0].provenance == made[1].provenance
