"""Training and cross-validation: known answers, the same bits after any interruption."""

import ctypes
import json
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.model_selection import KFold, StratifiedKFold

from cell_attention import CellComplex, NetworkConfig, TrainingConfig, lift, load_dataset
from cell_attention.cli.entry import run as run_words
from cell_attention.data.splits.folds import holdout, shuffled_folds, stratified_folds
from cell_attention.data.splits.split_files import read_folds
from cell_attention.errors import CellAttentionWarning, DataError, InputError
from cell_attention.evaluation.crossval import complete_run
from cell_attention.evaluation.jobs import Job, run_job
from cell_attention.evaluation.protocols import Outcome, one_number, paper_protocol, per_fold_best
from cell_attention.evaluation.result import read_result
from cell_attention.evaluation.run_folder import RunFolder
from cell_attention.evaluation.twins import signatures, with_twin, with_twin_in
from cell_attention.models.network_fitter import start_training
from cell_attention.parallel.engine import Workers
from cell_attention.training.curves import DivergedError
from cell_attention.training.loop import Training, split_batches
from cell_attention.training.schedule import LOWEST, one_cycle
from cell_attention.training.tasks import task_of
from learning import QUICK, SMALL, answer, asked, complaints, refused


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


RANKS = NetworkConfig(hidden=(4, 4), heads=(2, 2), head_hidden=4)


def made(
    complexes: CellComplex, training: TrainingConfig = QUICK, seed: int = 3,
    network: NetworkConfig = SMALL,
) -> Training:  # fmt: skip
    train, watched = range(60), range(60, 90)
    task = task_of(complexes, torch.arange(60))
    return start_training(
        complexes, train, watched, task=task, network=network, training=training, seed=(seed,)
    )


def test_protocols_give_the_known_answers_for_hand_made_curves() -> None:
    curves = [[50.0, 80.0, 60.0], [50.0, 60.0, 90.0], [50.0, 70.0, 60.0]]
    paper = paper_protocol(curves)  # means 50, 70, 70: the first of two equal epochs
    assert (paper.mean, paper.epoch, paper.folds) == (70.0, 2, (80.0, 60.0, 70.0))
    assert paper.std == pytest.approx((200 / 3) ** 0.5)  # population: divided by 3
    best = per_fold_best(curves)
    assert (best.mean, best.epoch, best.folds) == (80.0, None, (80.0, 90.0, 70.0))
    assert best.mean >= paper.mean
    assert one_number([1.0, 3.0]) == Outcome(2.0, 1.0, None, (1.0, 3.0))
    for wrong in ([[1.0], [1.0, 2.0]], [[], []]):
        with pytest.raises(InputError, match="the same number of epochs"):
            paper_protocol(wrong)


def test_folds_are_those_of_scikit_learn_with_the_authors_seed(mutag: CellComplex) -> None:
    assert mutag.targets is not None
    splits = stratified_folds(mutag.targets)
    theirs = StratifiedKFold(10, shuffle=True, random_state=12091996)
    expected = list(theirs.split(np.zeros(188), mutag.targets.numpy()))
    assert len(splits.folds) == 10
    for fold, (train, held) in zip(splits.folds, expected, strict=True):
        assert fold.train == tuple(train)
        assert fold.validation == tuple(held)
    assert splits.digest == stratified_folds(mutag.targets).digest
    assert splits.digest != stratified_folds(mutag.targets, seed=1).digest


@pytest.mark.parametrize(("name", "graphs"), [("NCI1", 4110), ("PROTEINS_full", 1113)])
def test_published_nested_splits_are_read(name: str, graphs: int, data_dir: Path) -> None:
    splits = read_folds(data_dir / "splits" / "fair" / f"{name}_splits.json", graphs)
    assert len(splits.folds) == 10
    for fold in splits.folds:
        assert len(fold.train) + len(fold.validation) + len(fold.test) == graphs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a JSON file"),
        ("[]", "must be a list of at least 2 folds"),
        ('[{"train": [0], "validation": [1]}, 3]', "fold 1: must be an object"),
        (
            '[{"train": [0], "validation": [4]}, {}]',
            "fold 0: validation must list graphs 0…2, got 4",
        ),
        ('[{"train": [0, 1], "validation": [1]}, {}]', "fold 0: graph 1 is listed twice"),
        ('[{"train": [0]}, {}]', "fold 0: validation is empty or missing"),
        ('[{"train": [0.5], "validation": [1]}, {}]', "train must be a list of graph numbers"),
        (
            '[{"train": [0], "validation": [1]}, {"train": [1], "validation": [0]}]',
            "must hold out each of 3 graphs exactly once; graph 2 is in no fold",
        ),
        (
            '[{"train": [0], "validation": [1, 2]}, {"train": [0], "validation": [1]},'
            '{"train": [1], "validation": [0]}]',
            "must hold out each of 3 graphs exactly once; graph 1 is in two folds",
        ),
        (
            '[{"train": [0], "validation": [1, 2]}, {"train": [1], "validation": [0]}]',
            "fold 1: graph 2 is in none of its splits",
        ),
        (
            '[{"train": [0], "validation": [1], "test": [2]},{"train": [2], "validation": [0, 1]}]',
            "fold 1 differs from fold 0",
        ),
        ("[" * 100_000, "not a JSON file"),
    ],
)
def test_splits_that_are_none_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "splits.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_folds(path, 3)


def test_a_last_batch_of_one_joins_the_one_before() -> None:
    assert [b.numel() for b in split_batches(torch.arange(10), 4)] == [4, 4, 2]
    assert [b.numel() for b in split_batches(torch.arange(9), 4)] == [4, 5]
    assert [b.numel() for b in split_batches(torch.arange(1), 4)] == [1]


def test_the_best_weights_survive_an_interruption_after_the_best_epoch(
    mutag: CellComplex, tmp_path: Path
) -> None:
    train, watched = range(60), range(60, 90)
    task = task_of(mutag, torch.arange(60))
    config = replace(QUICK, epochs=100, learning_rate=0.05)

    def begun() -> Training:
        return start_training(
            mutag,
            train,
            watched,
            task=task,
            network=SMALL,
            training=config,
            seed=(5,),
            keep_best=True,
        )

    whole = begun()
    whole.epoch()
    while whole.epochs_done < whole.curves.best_epoch + 3:
        whole.epoch()
    best = whole.curves.best_epoch
    first = begun()
    for _ in range(best + 1):
        first.epoch()
    first.save(tmp_path / "checkpoint", "settings")
    second = begun()
    second.restore(tmp_path / "checkpoint", "settings")
    while second.epochs_done < whole.epochs_done:
        second.epoch()
    for training in (whole, second):
        training.take_best()
    for ours, theirs in zip(
        second.network.state_dict().values(), whole.network.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs)
    plain = made(mutag)  # a checkpoint without best weights is not whole for one that keeps them
    plain.epoch()
    plain.save(tmp_path / "plain", "settings")
    with pytest.raises(DataError, match="not a complete checkpoint"):
        begun().restore(tmp_path / "plain", "settings")


@pytest.mark.parametrize("network", [SMALL, RANKS], ids=["paper", "ranks"])
@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": "plateau"},
        {"schedule": "step"},
        {"schedule": "cosine"},
        {"schedule": "constant"},
        {"schedule": "one_cycle", "warmup": 0.4},
        {"schedule": "one_cycle", "average": 0.9, "label_smoothing": 0.1},
    ],
)
def test_a_training_that_is_interrupted_ends_with_the_same_bits(
    mutag: CellComplex, changes: dict[str, Any], network: NetworkConfig, tmp_path: Path
) -> None:
    config = replace(QUICK, gradient_clip=1.0, **changes)
    whole = made(mutag, config, network=network)
    for _ in range(6):
        whole.epoch()
    torch.manual_seed(99)  # what others draw must not matter
    for cut in (1, 4):
        first = made(mutag, config, network=network)
        for _ in range(cut):
            first.epoch()
        first.save(tmp_path / "checkpoint", "settings")
        torch.rand(5)
        second = made(mutag, config, network=network)
        second.restore(tmp_path / "checkpoint", "settings")
        assert second.epochs_done == cut
        while second.epochs_done < 6:
            second.epoch()
        assert second.curves == whole.curves
        for name in ("network", "result"):  # the weights, and their average where there is one
            ours, theirs = (getattr(one, name).state_dict() for one in (second, whole))
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[key], theirs[key]) for key in ours)
        assert (whole.result is whole.network) == (config.average == 0)
        assert second.adam.param_groups[0]["lr"] == whole.adam.param_groups[0]["lr"]


def test_a_checkpoint_without_the_average_is_not_whole_for_a_training_that_has_one(
    mutag: CellComplex, tmp_path: Path
) -> None:
    plain = made(mutag, network=RANKS)
    plain.epoch()
    plain.save(tmp_path / "plain", "settings")
    with pytest.raises(DataError, match="not a complete checkpoint"):
        made(mutag, replace(QUICK, average=0.9), network=RANKS).restore(
            tmp_path / "plain", "settings"
        )


def test_the_average_is_the_weighted_mean_of_the_weights_after_every_step(
    mutag: CellComplex,
) -> None:
    config = replace(QUICK, average=0.9, batch_size=60)  # one step per epoch
    training = made(mutag, config, network=RANKS)
    expected = {name: v.double().clone() for name, v in training.network.state_dict().items()}
    for step in range(1, 7):
        training.epoch()
        kept = min(0.9, (1 + step) / (10 + step))
        for name, value in training.network.state_dict().items():
            expected[name] = kept * expected[name] + (1 - kept) * value.double()
    for name, value in training.result.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(value.double(), expected[name], rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        outputs = training.result(mutag[range(60, 90)])
    assert torch.equal(training.outputs(torch.arange(60, 90)), outputs)


def test_one_cycle_rises_to_the_learning_rate_and_falls_to_almost_nothing() -> None:
    factors = [one_cycle(share / 1000, 0.05) for share in range(1001)]
    assert factors[50] == pytest.approx(1.0)
    assert factors[0] == factors[-1] == pytest.approx(LOWEST)
    assert factors[:51] == sorted(factors[:51])
    assert factors[50:] == sorted(factors[50:], reverse=True)


def test_label_smoothing_is_torchs_for_classes_and_moves_labels_towards_a_half(
    mutag: CellComplex,
) -> None:
    draw = torch.Generator().manual_seed(0)
    outputs = torch.randn(188, 2, generator=draw)
    assert mutag.targets is not None
    task = task_of(mutag, torch.arange(188))
    theirs = torch.nn.functional.cross_entropy(outputs, mutag.targets, label_smoothing=0.2)
    torch.testing.assert_close(task.loss(outputs, mutag.targets, 0.2), theirs)
    labels = torch.randint(0, 2, (188, 2), generator=draw).float()
    task = task_of(replace(mutag, targets=labels), torch.arange(188), kind="labels")
    theirs = torch.nn.functional.binary_cross_entropy_with_logits(outputs, 0.8 * labels + 0.1)
    torch.testing.assert_close(task.loss(outputs, labels, 0.2), theirs)


def test_a_checkpoint_of_another_question_or_a_torn_one_is_refused(
    mutag: CellComplex, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint"
    training = made(mutag)
    training.epoch()
    training.save(path, "mine")
    with pytest.raises(DataError, match="belongs to another run"):
        made(mutag).restore(path, "yours")
    for size in (0, 7, path.stat().st_size // 2):
        torn = tmp_path / "torn"
        torn.write_bytes(path.read_bytes()[:size])
        with pytest.raises(DataError, match="not a complete checkpoint"):
            made(mutag).restore(torn, "mine")


def test_a_loss_that_is_no_number_stops_with_epoch_and_batch(mutag: CellComplex) -> None:
    training = made(mutag, replace(QUICK, learning_rate=1e30))

    def all_epochs() -> None:
        for _ in range(6):
            training.epoch()

    with pytest.raises(DivergedError, match=r"the loss is (nan|inf) in epoch \d, batch \d of 2"):
        all_epochs()


def test_training_learns(mutag: CellComplex) -> None:
    training = made(mutag, replace(QUICK, epochs=40))
    for _ in range(40):
        training.epoch()
    assert training.curves.loss[-1] < 0.8 * training.curves.loss[0]
    assert max(training.curves.score) > 66


def test_tasks_follow_the_targets(mutag: CellComplex) -> None:
    everyone = torch.arange(188)
    assert mutag.targets is not None
    classes = task_of(mutag, everyone, class_weights=True)
    assert (classes.kind, classes.outputs, classes.score_name) == ("classes", 2, "accuracy in %")
    even = classes.loss(torch.zeros(188, 2), mutag.targets)
    assert float(even) == pytest.approx(float(np.log(2)), rel=1e-5)
    logits = torch.tensor([[2.0, 1.0], [0.0, 3.0], [5.0, 0.0]])
    assert classes.score(logits, torch.tensor([0, 1, 1])) == pytest.approx(200 / 3)
    values = replace(mutag, targets=torch.linspace(0, 9, 188))
    task = task_of(values, everyone)
    assert task.kind == "values"
    # Outputs are in units of the training targets' deviation around their mean, here 4.5.
    assert task.score(torch.zeros(2, 1), torch.tensor([3.0, 4.0])) == pytest.approx(-(1.25**0.5))
    labels = torch.randint(0, 2, (188, 3)).float()
    labels[0, 0] = float("nan")
    task = task_of(replace(mutag, targets=labels), everyone)
    assert (task.kind, task.outputs) == ("labels", 3)
    assert bool(task.loss(torch.zeros(188, 3), labels).isfinite())
    with pytest.raises(DataError, match="targets"):
        task_of(replace(mutag, targets=None), everyone)


def test_twins_are_those_that_were_counted(data_dir: Path) -> None:
    for name, twins in (("MUTAG", 24), ("PTC_MM", 34)):
        assert with_twin(signatures(load_dataset(name, data_dir=data_dir))) == twins


def test_twins_are_what_colour_refinement_says() -> None:
    ring, two = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    graphs = lift([ring, two, nx.path_graph(6), nx.relabel_nodes(ring, lambda v: 5 - v)])
    same = replace(graphs, node_features=torch.ones(graphs.num_nodes, 1))
    marks = signatures(same)
    assert marks[0] == marks[1] == marks[3]  # 1-WL cannot tell a hexagon from two triangles
    assert marks[0] != marks[2]
    assert with_twin(marks) == 3
    assert with_twin_in(marks, [0, 2], [1, 3]) == 1


def test_a_result_is_read_from_the_curves_and_a_second_run_finds_it(
    mutag: CellComplex, tmp_path: Path
) -> None:
    first = answer(tmp_path / "run", mutag)
    record = json.loads(first)
    files = [tmp_path / "run" / f"fold-{number:02}.json" for number in range(3)]
    curves = [json.loads(file.read_text())["score"] for file in files]
    assert record["protocols"]["paper"]["mean"] == max(np.mean(curves, 0))
    assert record["protocols"]["fair"] is None
    assert record["leakage"]["with_twin"] == 24
    assert not (tmp_path / "run" / "complexes.safetensors").exists()
    assert b"best mean, epoch" in (tmp_path / "run" / "curves.svg").read_bytes()
    before = [file.stat().st_mtime_ns for file in files]
    assert answer(tmp_path / "run", mutag) == first
    assert [file.stat().st_mtime_ns for file in files] == before


def test_a_run_of_another_question_is_refused_with_the_difference(
    mutag: CellComplex, tmp_path: Path
) -> None:
    answer(tmp_path / "run", mutag, 1, epochs=1)
    settings, splits = asked(mutag, 2)
    with (
        pytest.raises(InputError, match=r"training.epochs was 1, is 2; name another folder"),
        RunFolder.begin(tmp_path / "run", settings, splits, fresh=False),
    ):
        pass
    with RunFolder.begin(tmp_path / "run", settings, splits, fresh=True):
        pass
    assert not (tmp_path / "run" / "fold-00.json").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "diary.txt").write_text("mine")
    for fresh in (False, True):
        with (
            pytest.raises(InputError, match=r"neither empty nor a RUN_DIR"),
            RunFolder.begin(tmp_path / "other", settings, splits, fresh=fresh),
        ):
            pass
    assert (tmp_path / "other" / "diary.txt").read_text() == "mine"


def test_a_fold_goes_on_from_its_checkpoint(mutag: CellComplex, tmp_path: Path) -> None:
    whole = answer(tmp_path / "whole", mutag, 1)
    settings, splits = asked(mutag)

    class KilledError(Exception):
        pass

    def die_in_epoch_4(numbers: dict[str, float]) -> None:
        if numbers["epoch"] == 4:
            raise KilledError

    seen: list[float] = []

    def watch(name: str, numbers: dict[str, float]) -> None:
        if name == "fold 1" and numbers:
            seen.append(numbers["epoch"])

    with RunFolder.begin(tmp_path / "cut", settings, splits, fresh=False) as run:
        mutag.save(run.complexes)
        with pytest.raises(KilledError):
            run_job(str(run.folder), Job(1), 0.0, report=die_in_epoch_4)
        assert run.checkpoint("fold-01").is_file()
        complete_run(run, mutag, Workers(1, progress=watch))
    assert seen[0] == 4.0
    assert run.result.read_bytes() == whole
    assert not run.checkpoint("fold-01").exists()


def test_damaged_files_of_a_run_are_named(mutag: CellComplex, tmp_path: Path) -> None:
    answer(tmp_path / "run", mutag, 1, epochs=1)
    fold = tmp_path / "run" / "fold-01.json"
    fold.write_text(fold.read_text()[:20])
    with pytest.raises(DataError, match=r"fold-01.json: not a complete JSON file"):
        answer(tmp_path / "run", mutag, 1, epochs=1)
    fold.unlink()
    (tmp_path / "run" / "fold-01.checkpoint").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"fold-01.checkpoint: not a complete checkpoint"):
        answer(tmp_path / "run", mutag, 1, epochs=1)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("fold-01.json", {"score": [50.0, 50.0]}, "not a valid record of fold 1; delete it"),
        ("fold-01.json", {"score": [float("nan")]}, "not a valid record of fold 1"),
        ("fold-01.json", {"score": "all"}, "not a valid record of fold 1"),
        ("fold-01.json", {"format": 99}, "format 99 is newer than 2"),
        ("fold-01.json", {"settings": "another"}, "belongs to another run or job"),
        ("fold-01.json", {"job": "fold-02"}, "belongs to another run or job"),
        ("fair-00-rerun-0.json", {"test": None}, "not a valid record of fold 0, rerun 0"),
        ("fair-00-rerun-0.json", {"epoch": 7}, "not a valid record of fold 0, rerun 0"),
        ("run.json", {"format": "x"}, "run.json: the entry 'format' is missing"),
        ("run.json", {"format": 99}, "format 99 is newer than 2"),
        ("run.json", {"versions": 5}, "versions must be a list of objects"),
        ("run.json", {"settings": {"network": [1]}}, "not valid settings of a run"),
    ],
)
def test_changed_files_of_a_run_are_refused(
    finished_run: Path, name: str, change: dict[str, object], message: str, mutag: CellComplex,
    tmp_path: Path,
) -> None:  # fmt: skip
    run = tmp_path / "run"
    shutil.copytree(finished_run, run)
    record = json.loads((run / name).read_text())
    (run / name).write_text(json.dumps({**record, **change}))
    with pytest.raises(DataError, match=message):
        answer(run, mutag, epochs=1, protocol="fair")
    (run / name).unlink()
    (run / name).mkdir()
    if name != "run.json":
        with pytest.raises(DataError, match="is a folder, but must be a file"):
            answer(run, mutag, epochs=1, protocol="fair")


@pytest.fixture(scope="module")
def finished_run(mutag: CellComplex, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    answer(folder, mutag, epochs=1, protocol="fair")
    return folder


def test_a_fresh_start_that_is_interrupted_can_be_made_again(
    finished_run: Path, mutag: CellComplex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, splits = asked(mutag, 1)
    run, unlink = tmp_path / "run", Path.unlink
    names = sorted(path.name for path in finished_run.iterdir())
    for count in range(len(names)):
        shutil.copytree(finished_run, run)
        left = count

        def failing(self: Path, missing_ok: bool = False) -> None:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            unlink(self, missing_ok)

        monkeypatch.setattr(Path, "unlink", failing)
        with (
            pytest.raises(KeyboardInterrupt),
            RunFolder.begin(run, settings, splits, fresh=True),
        ):
            pass
        monkeypatch.undo()
        with RunFolder.begin(run, settings, splits, fresh=True):
            pass
        assert sorted(path.name for path in run.iterdir()) == ["run.json", "splits.json"]
        shutil.rmtree(run)


def test_files_of_others_are_left_alone(mutag: CellComplex, tmp_path: Path) -> None:
    (tmp_path / "movie.part").write_text("mine")
    with pytest.raises(InputError, match="is neither empty nor a RUN_DIR"):
        answer(tmp_path, mutag, epochs=1)
    for verb in ("train", "crossval"):
        assert run_words([verb, "MUTAG", "--epochs", "1", "--out", str(tmp_path)]) == 2
    assert (tmp_path / "movie.part").read_text() == "mine"


def test_a_later_version_with_more_fields_goes_on_with_the_files_of_an_earlier_one(
    finished_run: Path, mutag: CellComplex, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished_run, run)
    record = json.loads((run / "run.json").read_text())
    del record["settings"]["class_weights"]  # as if that version had not known it
    for path in [run / "run.json", *run.glob("fold-*.json"), *run.glob("fair-*.json")]:
        old = record if path.name == "run.json" else json.loads(path.read_text())
        old["digest" if path.name == "run.json" else "settings"] = "of the earlier version"
        path.write_text(json.dumps(old))
    (run / "result.json").unlink()
    assert (
        answer(run, mutag, epochs=1, protocol="fair") == (finished_run / "result.json").read_bytes()
    )


def test_graphs_without_a_known_target_teach_nothing_and_are_no_divergence(
    mutag: CellComplex,
) -> None:
    values = torch.linspace(0, 9, 188)
    values[:90:2] = float("nan")
    data = replace(mutag, targets=values)
    task = task_of(data, torch.arange(60))
    one_by_one = replace(QUICK, batch_size=1)
    training = start_training(
        data, range(60), range(60, 90), task=task, network=SMALL, training=one_by_one, seed=(0,)
    )
    training.epoch()
    assert np.isfinite(training.curves.loss[0])
    with pytest.raises(DataError, match="none of the 2 validation graphs has a known target"):
        start_training(data, range(60), (0, 2), task=task, network=SMALL, training=QUICK, seed=(0,))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["crossval", "MUTAG", "--folds", "1"], "folds must be at least 2, got 1"),
        (["crossval", "MUTAG", "--folds", "64"], "folds must be at most 63"),
        (["crossval", "MUTAG", "--jobs", "-1"], "jobs must not be negative, got -1"),
        (["crossval", "MUTAG", "--split-seed", "-1"], "split_seed must lie in 0…4294967295"),
        (["crossval", "MUTAG", "--batch-size", "9" * 20], "batch_size must be at most 1,000,000,0"),
        (
            ["crossval", "MUTAG", "--hidden", "9" * 20, "4", "--heads", "1", "1"],
            "hidden must be at most 1,000,000, got",
        ),
        (["crossval", "MUTAG", "--hidden", "4"], "hidden and heads must have one entry per layer"),
        (
            ["crossval", "MUTAG", "--lift-heads", "4"],
            "design 'ranks' does not use lift_heads, which must keep its default",
        ),
        (
            ["crossval", "MUTAG", "--design", "paper", "--weights", "gate"],
            "design 'paper' does not use weights, which must keep its default",
        ),
        (["crossval", "MUTAG", "--splits", "."], ".: no such file, a folder"),
        (["demo", "--epochs", "-1"], "epochs must lie in 0…10^9, got -1"),
        (["demo", "--jobs", "-1"], "jobs must not be negative, got -1"),
        (["crossval", "MUTAG", "--ratio", "1.5"], "ratio must lie in (0, 1], got 1.5"),
        (["crossval", "MUTAG", "--splits", "no.json"], "no.json: no such file"),
        (["crossval", "MUTAG", "--config", "no.toml"], "--config no.toml: no such file"),
        (["crossval", "MUTAGG"], "no data set 'MUTAGG'"),
    ],
)
@pytest.mark.filterwarnings("ignore:.* is not on this machine")
def test_bad_words_are_one_line_and_exit_code_2(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_words([*words, "--out", str(tmp_path / "run")]) == 2
    printed = capsys.readouterr()
    said = printed.err
    assert message in said
    assert printed.out == ""
    assert len(complaints(said)) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[network]\nhiden = [4]", "no field 'hiden'; did you mean hidden?"),
        ("[network]\nratio = 3", "ratio must lie in (0, 1], got 3"),
        ("[training]\nschedule = 'linear'", "schedule must be one of 'one_cycle'"),
        ("hidden = [4]", "must have the tables [network] and [training] only, got 'hidden'"),
        ("[network", "not a TOML file"),
        ("a = " + "[" * 100_000, "not a TOML file"),
        ("[training]\nseed = -1", "seed must not be negative, got -1"),
    ],
)
def test_a_bad_configuration_file_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    words = ["crossval", "MUTAG", "--config", str(path), "--out", str(tmp_path / "run")]
    said = refused(words, capsys)
    assert message in said
    assert "config.toml" in said


def test_flags_win_over_the_file_and_the_file_over_the_preset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    network = "[network]\ndesign = 'paper'\nhidden = [4, 4]\nlift_heads = 3\n"
    path.write_text(f"{network}[training]\nepochs = 5\n")
    words = ["crossval", "MUTAG", "--config", str(path), "--epochs", "1", "--folds", "2"]
    assert run_words([*words, "--jobs", "1", "--json", "--out", str(tmp_path / "run")]) == 0
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert settings["network"]["hidden"] == [4, 4]
    assert settings["network"]["lift_heads"] == 3
    assert settings["network"]["ratio"] == 1.0
    assert settings["training"]["epochs"] == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "run" / "result.json").read_text())


def test_each_model_and_each_design_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text("[network]\ndesign = 'paper'\n")
    few = ["crossval", "MUTAG", "--folds", "2", "--epochs", "1", "--hidden", "4", "--jobs", "1"]
    for more, name in (
        (["--heads", "1"], "MUTAG-can"),
        (["--heads", "1", "--config", "c.toml"], "MUTAG-can-paper"),
        (["--model", "gin", "--design", "paper"], "MUTAG-gin"),
    ):
        assert run_words([*few, "--quiet", *more]) == 0
        assert (tmp_path / name / "result.json").is_file()
    # The flag is the same run as the file.
    assert run_words([*few, "--quiet", "--heads", "1", "--design", "paper"]) == 0
    folders = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    assert folders == ["MUTAG-can", "MUTAG-can-paper", "MUTAG-gin"]


def test_an_unwritable_folder_and_a_file_in_its_place_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run_words(["crossval", "MUTAG", "--out", str(tmp_path / "file")]) == 2
    assert run_words(["crossval", "MUTAG", "--out", str(tmp_path / "file" / "below")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "is a file" in said[0]


def test_folds_for_values_are_those_of_scikit_learn() -> None:
    splits = shuffled_folds(torch.rand(23, 2), 5, seed=4)
    theirs = list(KFold(5, shuffle=True, random_state=4).split(np.zeros(23)))
    assert [fold.held_out for fold in splits.folds] == [tuple(held) for _, held in theirs]
    for wrong in (1, 24):
        with pytest.raises(InputError, match=r"folds must lie in 2…23"):
            shuffled_folds(torch.rand(23), wrong)


@pytest.mark.parametrize("test", [0.0, 0.1, 0.3])
def test_a_holdout_has_every_graph_once_and_the_classes_in_equal_shares(
    mutag: CellComplex, test: float
) -> None:
    assert mutag.targets is not None
    fold = holdout(mutag.targets, 0.1, test, seed=1)
    assert sorted(fold.train + fold.validation + fold.test) == list(range(188))
    assert len(fold.validation) == 19
    assert len(fold.test) == round(188 * test)
    for part in (fold.train, fold.validation, fold.test):
        if part:
            share = float(mutag.targets[list(part)].double().mean())
            assert share == pytest.approx(125 / 188, abs=0.04)
    assert fold == holdout(mutag.targets, 0.1, test, seed=1)
    assert fold != holdout(mutag.targets, 0.1, test, seed=2)


def test_holdouts_that_leave_nothing_are_refused() -> None:
    targets = torch.tensor([0, 1, 0, 1])
    for validation, test, text in (
        (0.0, 0.1, r"validation must lie in \(0, 1\), got 0.0"),
        (0.1, 1.0, r"test must lie in \[0, 1\), got 1.0"),
        (0.6, 0.5, "leave graphs to train on, got 0.6 and 0.5"),
        (float("nan"), 0.1, "validation must lie in"),
    ):
        with pytest.raises(InputError, match=text):
            holdout(targets, validation, test, seed=0)
    with pytest.raises(InputError, match="at least 2 graphs"):
        holdout(targets[:1], 0.1, 0.0, seed=0)
    fold = holdout(torch.tensor([0, 0, 0, 1]), 0.25, 0.25, seed=0)  # too few for equal shares
    assert [len(part) for part in (fold.train, fold.validation, fold.test)] == [2, 1, 1]


@pytest.mark.parametrize(("count", "epochs"), [(4110, 50), (300, 50), (188, 80), (1, 15_000)])
def test_a_small_set_is_shown_more_often(count: int, epochs: int) -> None:
    assert TrainingConfig().for_graphs(count).epochs == epochs
    assert TrainingConfig(epochs=7).for_graphs(count).epochs == 7


def test_training_and_settings_state_how_many_epochs_were_chosen(mutag: CellComplex) -> None:
    assert made(mutag, TrainingConfig()).config.epochs == 80
    settings = replace(asked(mutag)[0], training=TrainingConfig())
    assert settings.epochs == settings.record()["training"]["epochs"] == 80


def test_training_stops_patience_epochs_after_the_best_one_and_takes_its_weights(
    mutag: CellComplex,
) -> None:
    config = replace(QUICK, epochs=60, patience=5)
    train, watched = range(60), range(60, 90)
    task = task_of(mutag, torch.arange(60))
    training = start_training(
        mutag, train, watched, task=task, network=SMALL, training=config, seed=(3,), keep_best=True
    )
    while not training.finished:
        training.epoch()
    best = training.curves.best_epoch
    assert training.epochs_done == best + 5 < 60
    scores, losses = training.curves.score, training.curves.watched_loss
    assert scores[best - 1] == max(scores)
    ties = [loss for score, loss in zip(scores, losses, strict=True) if score == max(scores)]
    assert losses[best - 1] == min(ties)
    training.take_best()
    found = training.evaluate(torch.arange(60, 90))
    assert (found.loss, found.score) == (losses[best - 1], scores[best - 1])
    with pytest.raises(ValueError, match="keep_best"):
        made(mutag).take_best()


def test_a_model_without_epochs_gives_one_number(
    mutag: CellComplex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["crossval", "MUTAG", "--model", "majority", "--out", str(tmp_path / "run")]
    assert run_words(words) == 0
    printed = capsys.readouterr().out
    assert "no epochs: one number" in printed
    assert "best mean epoch" not in printed
    assert mutag.targets is not None
    folds = stratified_folds(mutag.targets).folds
    expected = [
        100 * float((mutag.targets[list(f.validation)] == 1).double().mean()) for f in folds
    ]
    outcome = read_result(tmp_path / "run" / "result.json").protocols["fair"]
    assert outcome is not None
    assert outcome.mean == pytest.approx(np.mean(expected))
    assert not (tmp_path / "run" / "curves.svg").exists()


def test_a_run_of_another_version_is_continued_with_a_warning(
    mutag: CellComplex, tmp_path: Path
) -> None:
    whole = answer(tmp_path / "run", mutag, epochs=1)
    path = tmp_path / "run" / "run.json"
    record = json.loads(path.read_text())
    assert record["versions"][0]["torch"] == torch.__version__
    record["versions"][0]["cell-attention"] = "0.0.9"
    path.write_text(json.dumps(record))
    (tmp_path / "run" / "result.json").unlink()
    with pytest.warns(CellAttentionWarning, match=r"cell-attention 0.0.9 → "):
        assert answer(tmp_path / "run", mutag, epochs=1) == whole
    assert len(json.loads(path.read_text())["versions"]) == 2


CSV = "smiles,value\n" + "\n".join(
    f"{'C' * n}{ring},{n + len(ring) / 10}" for n in range(1, 7) for ring in ("", "O", "c1ccccc1")
)


def test_values_of_molecules_are_cross_validated_by_their_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "molecules.csv").write_text(CSV)
    words = ["crossval", str(tmp_path / "molecules.csv"), "--folds", "3", "--epochs", "3"]
    assert run_words([*words, "--jobs", "1", "--out", str(tmp_path / "run")]) == 0
    assert "negative RMSE over 3 shuffled folds" in capsys.readouterr().out
    record = json.loads((tmp_path / "run" / "result.json").read_text())
    assert record["score"] == "negative RMSE"
    assert record["majority"] is None
    assert record["protocols"]["paper"]["mean"] < 0


def test_class_weights_change_the_training(tmp_path: Path) -> None:
    words = ["crossval", "MUTAG", "--folds", "2", "--epochs", "1", "--jobs", "1", "--quiet"]
    losses = []
    for number, more in enumerate(([], ["--class-weights"])):
        assert run_words([*words, *more, "--out", str(tmp_path / str(number))]) == 0
        losses.append(json.loads((tmp_path / str(number) / "fold-00.json").read_text())["loss"])
    assert losses[0] != losses[1]


def test_a_full_disk_is_one_line_and_nothing_is_lost(tmp_path: Path) -> None:
    words = [
        sys.executable, "-m", "cell_attention", "crossval", "MUTAG", "--folds", "2", "--epochs",
        "3", "--hidden", "4", "4", "--heads", "1", "1", "--jobs", "2", "--quiet", "--out",
        str(tmp_path / "run"),
    ]  # fmt: skip

    def small_files() -> None:  # what the system says of a file that is too large is an OSError too
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, 16_000))

    ended = subprocess.run(words, capture_output=True, text=True, preexec_fn=small_files)
    assert ended.returncode == 1, ended.stderr
    assert len(complaints(ended.stderr)) == 1
    assert "complexes.safetensors: cannot be written" in ended.stderr
    assert not list((tmp_path / "run").glob(".*.part"))
    ended = subprocess.run(words, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert complaints(ended.stderr) == []


def test_a_settled_process_reuses_the_memory_of_the_last_step() -> None:
    code = (
        "import resource, sys, numpy, torch;"
        "from cell_attention.training.threads import settle_process;"
        "int(sys.argv[1]) and settle_process();"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt;"
        "step = lambda: [numpy.ones(2**20) for _ in range(16)];"  # 16 × 8 MiB, then freed
        "step(); step(); step();"
        "before = faults(); step(); print(torch.get_num_threads(), faults() - before)"
    )

    def told(settled: str) -> list[int]:
        words = [sys.executable, "-c", code, settled]
        run = subprocess.run(words, capture_output=True, text=True, check=True)
        return [int(word) for word in run.stdout.split()]

    threads, pages = told("1")
    assert threads == 1
    if hasattr(ctypes.CDLL(None), "mallopt"):
        assert pages < 1000 < told("0")[1]
