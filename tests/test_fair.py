"""The fair protocol: inner validation chooses, the held-out graphs are met once."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cell_attention import CellComplex, load_dataset
from cell_attention.cli.entry import run as run_words
from cell_attention.data.splits.folds import Fold, nested, stratified_folds
from cell_attention.data.splits.split_files import read_folds
from cell_attention.errors import InputError
from cell_attention.evaluation.fair import choices
from cell_attention.evaluation.jobs import Job
from cell_attention.evaluation.result import read_result
from cell_attention.models.fitting import FoldTask
from cell_attention.models.network_fitter import NetworkFitter
from cell_attention.models.settings import Settings
from cell_attention.training.loop import Training
from learning import answer, asked, refused

GRID = (
    {"network": {"dropout": 0.0}, "training": {"learning_rate": 1e-4}},
    {"network": {"hidden": [6, 6]}, "training": {"learning_rate": 1e-2}},
)


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


def made(job: Job, settings: Settings, complexes: CellComplex, fold: Fold) -> Training:
    """The training of a job, before its first epoch."""
    seed = job.seed(settings.training.seed)
    task = FoldTask(job.settings(settings), complexes, fold, seed, job.stage)
    return NetworkFitter(settings.model).training(task)


def test_nested_folds_keep_the_outer_part_and_divide_the_rest(mutag: CellComplex) -> None:
    assert mutag.targets is not None
    plain = stratified_folds(mutag.targets)
    inner = nested(plain, mutag.targets)
    for outer, fold in zip(plain.folds, inner.folds, strict=True):
        assert fold.held_out == fold.test == outer.held_out
        assert fold.rest == outer.rest  # so the curves are the same with and without
        assert len(fold.validation) == round(len(outer.train) / 10)
        assert not set(fold.validation) & set(fold.train)
    assert nested(inner, mutag.targets) is inner
    assert inner.digest != plain.digest


def poisoned(complexes: CellComplex, graphs: tuple[int, ...]) -> CellComplex:
    """Everything that a graph has, spoiled: features that are no numbers, the other class."""
    assert complexes.targets is not None
    assert complexes.edge_features is not None
    chosen = torch.zeros(len(complexes), dtype=torch.bool)
    chosen[list(graphs)] = True
    nodes, edges = complexes.node_features.clone(), complexes.edge_features.clone()
    nodes[chosen[complexes.node_complex]] = float("nan")
    edges[chosen[complexes.edge_complex]] = float("inf")
    targets = torch.where(chosen, 1 - complexes.targets, complexes.targets)
    return replace(complexes, node_features=nodes, edge_features=edges, targets=targets)


@pytest.mark.parametrize("class_weights", [False, True])
def test_a_poisoned_test_fold_changes_no_weight_no_curve_and_no_choice(
    mutag: CellComplex, class_weights: bool
) -> None:
    settings, splits = asked(mutag, protocol="fair", grid=GRID, class_weights=class_weights)
    fold = splits.folds[0]
    spoiled = poisoned(mutag, fold.test)
    for part in (Job(0, "choice", 0, 0), Job(0, "choice", 1, 1), Job(0, "rerun", 2, 1)):
        clean, dirty = (made(part, settings, data, fold) for data in (mutag, spoiled))
        for training in (clean, dirty):
            while not training.finished:
                training.epoch()
            training.take_best()
        assert clean.curves == dirty.curves
        for ours, theirs in zip(
            clean.network.state_dict().values(), dirty.network.state_dict().values(), strict=True
        ):
            assert torch.equal(ours, theirs)  # running means of the normalisation included
    # The poison is one: whoever looks at the held-out graphs notices.
    curve = made(Job(0), settings, spoiled, fold)
    with pytest.raises(InputError, match="node_features must be finite"):
        curve.epoch()


def test_a_poisoned_validation_part_does_change_the_choice(mutag: CellComplex) -> None:
    settings, splits = asked(mutag, protocol="fair")
    fold = splits.folds[0]
    part = Job(0, "rerun", 0)
    clean = made(part, settings, mutag, fold)
    assert mutag.targets is not None
    flipped = mutag.targets.clone()
    flipped[list(fold.validation)] = 1 - flipped[list(fold.validation)]
    dirty = made(part, settings, replace(mutag, targets=flipped), fold)
    for training in (clean, dirty):
        training.epoch()
    assert clean.curves.loss == dirty.curves.loss
    assert clean.curves.score[0] == pytest.approx(100 - dirty.curves.score[0])


def test_the_fair_protocol_chooses_by_validation_and_averages_three_reruns(
    mutag: CellComplex, tmp_path: Path
) -> None:
    with_grid = json.loads(answer(tmp_path / "grid", mutag, protocol="fair", grid=GRID))
    for number, choice in enumerate(with_grid["choices"]):
        files = [tmp_path / "grid" / f"fair-{number:02}-choice-{c}.json" for c in (0, 1)]
        records = [json.loads(file.read_text()) for file in files]
        best = [record["score"][record["epoch"] - 1] for record in records]
        assert best == [max(record["score"]) for record in records] == choice["validation"]
        assert choice["configuration"] == int(best[1] > best[0]) or best[0] == best[1]
        reruns = [
            json.loads((tmp_path / "grid" / f"fair-{number:02}-rerun-{r}.json").read_text())
            for r in range(3)
        ]
        assert choice["tests"] == [record["test"] for record in reruns]
        assert {record["configuration"] for record in reruns} == {choice["configuration"]}
        assert len({tuple(record["loss"]) for record in reruns}) == 3  # three seeds
        assert with_grid["protocols"]["fair"]["folds"][number] == pytest.approx(
            np.mean(choice["tests"])
        )
    assert with_grid["grid"] == list(GRID)
    plain = json.loads(answer(tmp_path / "plain", mutag))
    alone = json.loads(answer(tmp_path / "alone", mutag, protocol="fair"))
    assert plain["protocols"]["fair"] is None
    assert not list((tmp_path / "alone").glob("*choice*"))
    for name in ("paper", "per_fold_best"):  # the same curves, whatever else is asked
        assert plain["protocols"][name] == with_grid["protocols"][name]
        assert plain["protocols"][name] == alone["protocols"][name]


def test_the_number_of_a_rerun_is_that_of_its_best_weights_on_the_held_out_graphs(
    mutag: CellComplex, tmp_path: Path
) -> None:
    answer(tmp_path / "run", mutag, protocol="fair")
    settings, splits = asked(mutag, protocol="fair")
    others = []
    assert mutag.targets is not None
    for number, fold in enumerate(splits.folds):
        for rerun in range(3):
            training = made(Job(number, "rerun", rerun), settings, mutag, fold)
            while not training.finished:
                training.epoch()
            last = training.evaluate(torch.tensor(fold.test)).score
            training.take_best()
            training.network.eval()
            with torch.no_grad():  # nothing but the network and the definition of accuracy
                guessed = training.network(mutag[fold.test]).argmax(1)
            right = guessed == mutag.targets[list(fold.test)]
            file = tmp_path / "run" / f"fair-{number:02}-rerun-{rerun}.json"
            record = json.loads(file.read_text())
            assert record["test"] == pytest.approx(100 * float(right.double().mean()))
            others.append((record["test"] != last, record["test"] not in record["score"]))
    # Neither the last weights nor the validation graphs would have given these numbers.
    assert all(any(differs) for differs in zip(*others, strict=True))


def test_every_training_of_a_run_has_a_seed_of_its_own() -> None:
    parts = [
        Job(fold, stage, number)
        for fold in range(10)
        for stage in ("curve", "rerun")
        for number in range(3 if stage == "rerun" else 1)
    ] + [Job(fold, "choice") for fold in range(10)]
    assert len({part.seed(7) for part in parts}) == len(parts)
    # Configurations are compared with the same seed: their difference is not that of luck.
    assert Job(3, "choice", 0).seed(7) == Job(3, "choice", 4).seed(7)


def test_between_configurations_of_equal_score_the_lower_loss_is_chosen() -> None:
    mine = {"score": [10.0, 90.0], "epoch": 2, "watched_loss": [0.1, 0.5], "test": 1.0}
    records = [mine, {**mine, "watched_loss": [0.9, 0.4]}, {**mine, "watched_loss": [0.2, 0.6]}]

    def done(parts: Sequence[Job]) -> list[dict[str, Any]]:
        return [mine if part.stage == "rerun" else records[part.number] for part in parts]

    settings, _ = asked(load_dataset("MUTAG"), protocol="fair", grid=({}, {}, {}))
    found = choices(settings, 2, done)
    assert [choice.configuration for choice in found] == [1, 1]
    assert found[0].validation == (90.0, 90.0, 90.0)


def test_the_fair_protocol_gives_the_same_bytes_with_two_processes(
    mutag: CellComplex, tmp_path: Path
) -> None:
    one, two = (
        answer(tmp_path / str(jobs), mutag, jobs, epochs=2, protocol="fair", grid=GRID)
        for jobs in (1, 2)
    )
    assert one == two
    assert read_result(tmp_path / "1" / "result.json").protocols["fair"] is not None


def test_published_nested_splits_run_fair(data_dir: Path, tmp_path: Path) -> None:
    path = data_dir / "splits" / "fair" / "PROTEINS_full_splits.json"
    words = [
        "crossval", "PROTEINS", "--data-dir", str(data_dir), "--splits", str(path), "--epochs", "1",
        "--hidden", "2", "--heads", "1", "--protocol", "fair", "--json",
        "--jobs", "1", "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    assert run_words(words) == 0
    splits = read_folds(path, 1113)
    stored = json.loads((tmp_path / "run" / "splits.json").read_text())
    assert [tuple(entry["test"]) for entry in stored] == [fold.test for fold in splits.folds]
    assert [tuple(entry["validation"]) for entry in stored] == [
        fold.validation for fold in splits.folds
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[network]\ndropout = 0.5", "[network] dropout must be a list of values, got"),
        ("[network]\ndropout = []", "[network] dropout must be a list of values, got"),
        ("[network]\ndropot = [0.5]", "no field 'dropot'; did you mean dropout?"),
        ("[network]\ndropout = [0.5, 2]", "dropout must lie in [0, 1), got 2"),
        ("[network]\nmax_polygon = [5, 6]", "max_polygon must be the same for the whole grid"),
        ("", "must list values for at least one field"),
    ],
)
def test_a_bad_grid_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    words = ["crossval", "MUTAG", "--grid", str(path), "--out", str(tmp_path / "run")]
    said = refused([*words, "--protocol", "fair"], capsys)
    assert message in said
    assert "grid.toml" in said
    assert "needs --protocol fair" in refused(words, capsys)
