"""Training and cross-validation: known answers, the same bits after any interruption."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.model_selection import StratifiedKFold

from cell_attention import CellComplex, NetworkConfig, TrainingConfig, lift, load_dataset
from cell_attention.cli.entry import run as run_words
from cell_attention.data.splits import Fold, Splits, read_splits, stratified_folds
from cell_attention.errors import CellAttentionError, DataError, InputError
from cell_attention.learn import engine
from cell_attention.learn.crossval import crossvalidate, run_fold
from cell_attention.learn.protocols import fair_protocol, paper_protocol, per_fold_best
from cell_attention.learn.runs import Question, Run, data_digest
from cell_attention.learn.tasks import task_of
from cell_attention.learn.training import DivergedError, Training, split_batches
from cell_attention.learn.twins import signatures, with_twin, with_twin_in

SMALL = NetworkConfig(lift_heads=4, hidden=(4, 4), heads=(2, 2), head_hidden=4, dropout=0.2)
QUICK = TrainingConfig(batch_size=32, epochs=6, learning_rate=1e-2)


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


def made(complexes: CellComplex, training: TrainingConfig = QUICK, seed: int = 3) -> Training:
    train, watched = range(60), range(60, 90)
    task = task_of(complexes, torch.arange(60))
    return Training(complexes, train, watched, task, SMALL, training, seed)


def test_protocols_give_the_known_answers_for_hand_made_curves() -> None:
    curves = [[50.0, 80.0, 60.0], [50.0, 60.0, 90.0], [50.0, 70.0, 60.0]]
    paper = paper_protocol(curves)  # means 50, 70, 70: the first of two equal epochs
    assert (paper.mean, paper.epoch, paper.folds) == (70.0, 2, (80.0, 60.0, 70.0))
    assert paper.std == pytest.approx((200 / 3) ** 0.5)  # population: divided by 3
    best = per_fold_best(curves)
    assert (best.mean, best.epoch, best.folds) == (80.0, None, (80.0, 90.0, 70.0))
    assert best.mean >= paper.mean
    assert fair_protocol([1.0, 3.0]).mean == 2.0
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
    splits = read_splits(data_dir / "splits" / "fair" / f"{name}_splits.json", graphs)
    assert len(splits.folds) == 10
    for fold in splits.folds:
        assert len(fold.train) + len(fold.validation) + len(fold.test) == graphs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a JSON file"),
        ("[]", "must be a list of at least 2 folds"),
        ('[{"train": [0], "validation": [1]}, 3]', "fold 1: must be an object"),
        ('[{"train": [0], "validation": [4]}, {}]', "fold 0: validation names graph 4, but they"),
        ('[{"train": [0, 1], "validation": [1]}, {}]', "fold 0: graph 1 is in it twice"),
        ('[{"train": [0]}, {}]', "fold 0: validation is empty or missing"),
        ('[{"train": [0.5], "validation": [1]}, {}]', "train must be a list of graph numbers"),
        (
            '[{"train": [0], "validation": [1]}, {"train": [1], "validation": [0]}]',
            "must hold each of 3 graphs once; graph 2 is in none",
        ),
        (
            '[{"train": [0], "validation": [1, 2]}, {"train": [0], "validation": [1]},'
            '{"train": [1], "validation": [0]}]',
            "must hold each of 3 graphs once; graph 1 is twice",
        ),
    ],
)
def test_splits_that_are_none_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "splits.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_splits(path, 3)


def test_a_last_batch_of_one_joins_the_one_before() -> None:
    assert [b.numel() for b in split_batches(torch.arange(10), 4)] == [4, 4, 2]
    assert [b.numel() for b in split_batches(torch.arange(9), 4)] == [4, 5]
    assert [b.numel() for b in split_batches(torch.arange(1), 4)] == [1]


@pytest.mark.parametrize("schedule", ["plateau", "step", "cosine", "constant"])
def test_a_training_that_is_interrupted_ends_with_the_same_bits(
    mutag: CellComplex, schedule: str, tmp_path: Path
) -> None:
    config = replace(QUICK, schedule=schedule, gradient_clip=1.0)  # type: ignore[arg-type]
    whole = made(mutag, config)
    for _ in range(6):
        whole.epoch()
    torch.manual_seed(99)  # what others draw must not matter
    for cut in (1, 4):
        first = made(mutag, config)
        for _ in range(cut):
            first.epoch()
        first.save(tmp_path / "checkpoint", "question")
        torch.rand(5)
        second = made(mutag, config)
        second.restore(tmp_path / "checkpoint", "question")
        assert second.epochs_done == cut
        while second.epochs_done < 6:
            second.epoch()
        assert second.curves == whole.curves
        for ours, theirs in zip(
            second.network.state_dict().values(), whole.network.state_dict().values(), strict=True
        ):
            assert torch.equal(ours, theirs)
        assert second.adam.param_groups[0]["lr"] == whole.adam.param_groups[0]["lr"]


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
        with pytest.raises(DataError, match="not a whole checkpoint"):
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
    assert (classes.kind, classes.outputs, classes.score_name) == ("classes", 2, "accuracy")
    even = classes.loss(torch.zeros(188, 2), mutag.targets)
    assert float(even) == pytest.approx(float(np.log(2)), rel=1e-5)
    logits = torch.tensor([[2.0, 1.0], [0.0, 3.0], [5.0, 0.0]])
    assert classes.score(logits, torch.tensor([0, 1, 1])) == pytest.approx(200 / 3)
    values = replace(mutag, targets=torch.linspace(0, 9, 188))
    task = task_of(values, everyone)
    assert task.kind == "values"
    assert task.score(torch.zeros(2, 1), torch.tensor([3.0, 4.0])) == pytest.approx(-(12.5**0.5))
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


def asked(complexes: CellComplex, epochs: int = 6) -> tuple[Question, Splits]:
    assert complexes.targets is not None
    splits = stratified_folds(complexes.targets, 3)
    question = Question(
        "MUTAG", len(complexes), data_digest(complexes), splits.origin, splits.digest, SMALL,
        replace(QUICK, epochs=epochs),
    )  # fmt: skip
    return question, splits


def answer(folder: Path, complexes: CellComplex, jobs: int, epochs: int = 6) -> bytes:
    question, splits = asked(complexes, epochs)
    run = Run.begin(folder, question, splits, fresh=False)
    crossvalidate(run, complexes, jobs, lambda name, numbers: None)
    return run.result.read_bytes()


def test_a_run_gives_the_same_bytes_with_one_process_and_with_two(
    mutag: CellComplex, tmp_path: Path
) -> None:
    one, two = (answer(tmp_path / str(jobs), mutag, jobs) for jobs in (1, 2))
    assert one == two
    for number in range(3):
        name = f"fold-{number:02}.json"
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    record = json.loads(one)
    files = [tmp_path / "1" / f"fold-{number:02}.json" for number in range(3)]
    curves = [json.loads(file.read_text())["score"] for file in files]
    assert record["protocols"]["paper"]["mean"] == max(np.mean(curves, 0))
    assert record["protocols"]["fair"] is None
    assert record["leakage"]["with_twin"] == 24
    assert not (tmp_path / "1" / "complexes.safetensors").exists()
    pictures = [(tmp_path / name / "curves.svg").read_bytes() for name in ("1", "2")]
    assert pictures[0] == pictures[1]
    assert b"best mean, epoch" in pictures[0]
    assert answer(tmp_path / "1", mutag, 1) == one  # a second run finds everything finished


def test_a_run_of_another_question_is_refused_with_the_difference(
    mutag: CellComplex, tmp_path: Path
) -> None:
    answer(tmp_path / "run", mutag, 1, epochs=1)
    question, splits = asked(mutag, 2)
    with pytest.raises(InputError, match=r"training.epochs was 1, is 2; name another folder"):
        Run.begin(tmp_path / "run", question, splits, fresh=False)
    Run.begin(tmp_path / "run", question, splits, fresh=True)
    assert not (tmp_path / "run" / "fold-00.json").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "diary.txt").write_text("mine")
    for fresh in (False, True):
        with pytest.raises(InputError, match=r"not .*a run of cell-attention"):
            Run.begin(tmp_path / "other", question, splits, fresh)
    assert (tmp_path / "other" / "diary.txt").read_text() == "mine"


def test_a_fold_goes_on_from_its_checkpoint(
    mutag: CellComplex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = answer(tmp_path / "whole", mutag, 1)
    question, splits = asked(mutag)
    run = Run.begin(tmp_path / "cut", question, splits, fresh=False)
    monkeypatch.setattr("cell_attention.learn.crossval.CHECKPOINT_SECONDS", 0.0)

    class KilledError(Exception):
        pass

    def die_in_epoch_4(numbers: dict[str, float]) -> None:
        if numbers["epoch"] == 4:
            raise KilledError

    mutag.save(run.complexes)
    with pytest.raises(KilledError):
        run_fold(str(run.folder), 1, die_in_epoch_4)
    assert run.checkpoint(1).is_file()
    seen: list[float] = []

    def watch(name: str, numbers: dict[str, float]) -> None:
        if name == "fold 1":
            seen.append(numbers["epoch"])

    crossvalidate(run, mutag, 1, watch)
    assert seen[0] == 4.0
    assert run.result.read_bytes() == whole
    assert not run.checkpoint(1).exists()


def test_damaged_files_of_a_run_are_named(mutag: CellComplex, tmp_path: Path) -> None:
    answer(tmp_path / "run", mutag, 1, epochs=1)
    fold = tmp_path / "run" / "fold-01.json"
    fold.write_text(fold.read_text()[:20])
    with pytest.raises(DataError, match=r"fold-01.json: not a whole JSON file"):
        answer(tmp_path / "run", mutag, 1, epochs=1)
    fold.unlink()
    (tmp_path / "run" / "fold-01.checkpoint").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"fold-01.checkpoint: not a whole checkpoint"):
        answer(tmp_path / "run", mutag, 1, epochs=1)


def die(folder: str, times: int, report: engine.Report) -> None:
    """End the process like a kernel that is out of memory, the first `times` times."""
    mark = Path(folder) / f"{len(list(Path(folder).iterdir()))}"
    mark.touch()
    if len(list(Path(folder).iterdir())) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    report({"epoch": 1.0})


def refuse(report: engine.Report) -> None:
    raise InputError("no such thing")


def fail(report: engine.Report) -> None:
    raise ZeroDivisionError("by nothing")


def test_a_worker_that_dies_is_tried_again_once_and_then_named(tmp_path: Path) -> None:
    for times in (0, 1, 2):
        folder = tmp_path / str(times)
        folder.mkdir()
        works = [engine.Work("fold 7", die, (str(folder), times)), engine.Work("other", idle, ())]
        if times < 2:
            engine.run_all(works, 2, lambda name, numbers: None)
            assert len(list(folder.iterdir())) == times + 1
        else:
            with pytest.raises(engine.WorkerError, match="fold 7: its process died twice"):
                engine.run_all(works, 2, lambda name, numbers: None)


def idle(report: engine.Report) -> None:
    report({"epoch": 0.0})


def test_errors_of_a_worker_reach_the_parent() -> None:
    idles = [engine.Work(f"idle {n}", idle, ()) for n in range(2)]
    with pytest.raises(InputError, match="no such thing"):
        engine.run_all([*idles, engine.Work("bad", refuse, ())], 2, lambda name, numbers: None)
    with pytest.raises(engine.WorkerError, match="bad: ZeroDivisionError: by nothing"):
        engine.run_all([*idles, engine.Work("bad", fail, ())], 2, lambda name, numbers: None)


WORDS = (
    "crossval", "MUTAG", "--folds", "3", "--epochs", "60", "--hidden", "4", "4",
    "--lift-heads", "4", "--jobs", "2", "--quiet",
)  # fmt: skip


def started(out: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "cell_attention", *WORDS, "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def children(pid: int) -> list[int]:
    """Processes that `pid` started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


def running(pid: int) -> bool:
    """Whether a process is there and not a mere entry that nobody has collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_run_that_is_killed_three_times_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole = started(tmp_path / "whole")
    said = whole.communicate(timeout=300)
    assert whole.returncode == 0, said
    random = np.random.default_rng(0)
    for kill in range(3):
        process = started(tmp_path / "cut")
        time.sleep(float(random.uniform(3.0, 7.0)))
        victims = children(process.pid)
        if kill == 1 and victims:
            os.kill(victims[-1], signal.SIGKILL)  # a worker: the parent tries again
            time.sleep(1.0)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    last = started(tmp_path / "cut")
    said = last.communicate(timeout=300)
    assert last.returncode == 0, said
    for name in ("result.json", "fold-00.json", "fold-01.json", "fold-02.json", "run.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_ctrl_c_ends_at_once_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = started(tmp_path / "run")
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "run.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(4.0)
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert b"the same command goes on from there" in said
    assert b"Traceback" not in said
    time.sleep(0.5)
    assert not any(running(pid) for pid in workers)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["crossval", "MUTAG", "--folds", "1"], "folds must be at least 2, got 1"),
        (["crossval", "MUTAG", "--folds", "64"], "folds must be at most 63"),
        (["crossval", "MUTAG", "--jobs", "-1"], "jobs must not be negative, got -1"),
        (["crossval", "MUTAG", "--ratio", "1.5"], "ratio must lie in (0, 1], got 1.5"),
        (["crossval", "MUTAG", "--splits", "no.json"], "no.json: no such file"),
        (["crossval", "MUTAG", "--config", "no.toml"], "--config no.toml: no such file"),
        (["crossval", "MUTAGG"], "no data set 'MUTAGG'"),
    ],
)
def test_bad_words_are_one_line_and_exit_code_2(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_words([*words, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[network]\nhiden = [4]", "no field 'hiden'; did you mean hidden?"),
        ("[network]\nratio = 3", "ratio must lie in (0, 1], got 3"),
        ("[training]\nschedule = 'linear'", "schedule must be one of 'plateau'"),
        ("hidden = [4]", "'hidden' must be one of the tables [network] and [training]"),
        ("[network", "not a TOML file"),
    ],
)
def test_a_bad_configuration_file_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    words = ["crossval", "MUTAG", "--config", str(path), "--out", str(tmp_path / "run")]
    assert run_words(words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "config.toml" in said
    assert said.count("\n") == 1


def test_flags_win_over_the_file_and_the_file_over_the_preset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[network]\nhidden = [4, 4]\nlift_heads = 3\n[training]\nepochs = 5\n")
    words = ["crossval", "MUTAG", "--config", str(path), "--epochs", "1", "--folds", "2"]
    assert run_words([*words, "--jobs", "1", "--json", "--out", str(tmp_path / "run")]) == 0
    question = json.loads((tmp_path / "run" / "run.json").read_text())["question"]
    assert question["network"]["hidden"] == [4, 4]
    assert question["network"]["lift_heads"] == 3
    assert question["network"]["ratio"] == 1.0
    assert question["training"]["epochs"] == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "run" / "result.json").read_text())


def test_an_unwritable_folder_and_a_file_in_its_place_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run_words(["crossval", "MUTAG", "--out", str(tmp_path / "file")]) == 2
    assert run_words(["crossval", "MUTAG", "--out", str(tmp_path / "file" / "below")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "is a file" in said[0]


def test_a_fold_is_only_what_it_says() -> None:
    assert Fold((1,), (2,)).test == ()
    assert issubclass(engine.WorkerError, CellAttentionError)
