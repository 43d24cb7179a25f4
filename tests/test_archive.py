"""`pack` and `unpack`: a folder as one file, the same folder back, and nothing outside of it."""

import json
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from cell_attention import CellComplex, load_dataset
from cell_attention.cli.entry import run as run_words
from cell_attention.errors import DataError, InputError, SourceNotFoundError
from cell_attention.evaluation.archive import pack, run_folder, unpack
from cell_attention.evaluation.crossval import complete_run
from cell_attention.evaluation.packed_splits import pack_splits, splits_text
from cell_attention.evaluation.run_folder import RunFolder
from cell_attention.evaluation.run_summary import RunSummary, summary
from cell_attention.parallel.engine import Workers
from learning import answer, asked, refused

RESULTS = Path(__file__).parents[1] / "results"
FILES = [*sorted(RESULTS.glob("*.json")), *sorted(RESULTS.glob("molecules/*.json"))]
SMALL = ["MUTAG", "--folds", "2", "--epochs", "2", "--jobs", "1", "--quiet", "--heads", "1", "1"]


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def runs(mutag: CellComplex, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain run, a fair one, and both packed."""
    folder = tmp_path_factory.mktemp("runs")
    answer(folder / "plain", mutag, epochs=2)
    answer(folder / "fair", mutag, epochs=2, protocol="fair")
    for name in ("plain", "fair"):
        pack(folder / name, folder / f"{name}.json")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def said(one: RunSummary) -> dict[str, Any]:
    """All that a summary says but where it comes from."""
    return {
        field.name: getattr(one, field.name)
        for field in fields(one)
        if field.name not in ("folder", "packed")
    }


def archive(file: Path, files: Any, splits: Any = (), **more: Any) -> Path:
    file.write_text(json.dumps({"format": 1, "splits": splits, "files": files, **more}))
    return file


# There and back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "fair"])
def test_a_run_comes_back_with_the_same_bytes_in_every_file(
    name: str, runs: Path, tmp_path: Path
) -> None:
    unpack(runs / f"{name}.json", tmp_path / "back")
    there = contents(runs / name)
    assert there.pop("curves.svg")
    assert contents(tmp_path / "back") == there
    pack(tmp_path / "back", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (runs / f"{name}.json").read_bytes()


def test_a_file_in_any_layout_comes_back_with_the_same_bytes(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs / "plain", folder)
    odd = {
        "fold-00.json": b'{"a": 1,  "b": [1.50]}', "fold-01.json": b'{"a": 1, "a": 2}\n',
        "fold-02.json": b'{"a": NaN}\n', "timing.json": b'{"seconds": 1e400}\n',
        "deep.json": b"[" * 3000 + b"]" * 3000 + b"\n", "name.json": '{"é": "–"}\n'.encode(),
        "digits.json": b"1" * 5000 + b"\n", "half.json": b'{"a": "\\ud800"}\n',
        "empty.json": b"", "journal.log": b"one\r\ntwo\n\nthree", "below/notes.md": b"\n",
    }  # fmt: skip
    (folder / "below").mkdir()
    for name, text in odd.items():
        (folder / name).write_bytes(text)
    pack(folder, tmp_path / "run.json")
    unpack(tmp_path / "run.json", tmp_path / "back")
    back = contents(tmp_path / "back")
    assert {name: back[name] for name in odd} == odd
    json.loads((tmp_path / "run.json").read_text(), parse_constant=pytest.fail)


def test_pictures_checkpoints_data_and_unfinished_files_stay_behind(
    runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(runs / "plain", tmp_path / "run")
    for name in (
        "a.svg", "fold-01.checkpoint", "complexes.safetensors", "molecules.json",
        ".fold-01.json.4711.part",
    ):  # fmt: skip
        (tmp_path / "run" / name).write_bytes(b"\xff")
    pack(tmp_path / "run", tmp_path / "run.json")
    assert (tmp_path / "run.json").read_bytes() == (runs / "plain.json").read_bytes()


def test_equal_splits_stand_once_and_every_json_file_has_one_line(
    runs: Path, tmp_path: Path
) -> None:
    for name in ("full", "no-lift", "uniform"):
        shutil.copytree(runs / "plain", tmp_path / "run" / name)
    shutil.copytree(runs / "fair", tmp_path / "run" / "other")
    pack(tmp_path / "run", tmp_path / "run.json")
    text = (tmp_path / "run.json").read_text()
    record = json.loads(text)
    assert len(record["splits"]) == 2
    assert all("train" not in fold for folds in record["splits"] for fold in folds)
    lines = text.splitlines()
    for name, entry in record["files"].items():
        (line,) = [line for line in lines if line.startswith(json.dumps(name))]
        assert json.loads(line.partition(": ")[2].rstrip(",")) == entry


@pytest.mark.parametrize(
    ("folds", "short"),
    [
        ([{"train": [0, 2], "validation": [1], "test": [3]}], True),
        ([{"train": [2, 0], "validation": [1], "test": [3]}], False),  # another order
        ([{"train": [0, 3], "validation": [1], "test": []}], False),  # graphs left out
        ([{"train": [0, 1], "validation": [1], "test": []}], False),  # a graph in two parts
        ([{"train": [0, 2], "validation": [1, 1], "test": []}], False),
        ([{"train": [], "validation": [0], "test": []}], True),
    ],
)
def test_training_graphs_are_left_out_only_where_they_are_all_the_others(
    folds: list[dict[str, list[int]]], short: bool
) -> None:
    packed = pack_splits(json.dumps(folds))
    assert packed is not None
    assert ("train" not in json.loads(packed)[0]) == short
    assert splits_text(json.loads(packed)) == json.dumps(folds)


def test_splits_that_are_none_of_ours_are_not_shortened() -> None:
    for text in ("", "{}", "[3]", '[{"train": [0]}]', '[{"train":[0],"validation":[],"test":[]}]',
                 '[{"train": [true], "validation": [0], "test": []}]'):  # fmt: skip
        assert pack_splits(text) is None


# Continued ---------------------------------------------------------------------------------------


def test_a_half_finished_run_continues_to_the_bytes_of_a_whole_one(
    mutag: CellComplex, tmp_path: Path
) -> None:
    expected = answer(tmp_path / "whole", mutag)
    question, splits = asked(mutag)

    def stop_in_the_second_fold(name: str, numbers: dict[str, float]) -> None:
        if name == "fold 1" and numbers.get("epoch", 0) > 2:
            raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        RunFolder.begin(tmp_path / "half", question, splits, fresh=False) as run,
    ):
        complete_run(run, mutag, Workers(1, "processes", 0.0, stop_in_the_second_fold))
    assert not run.result.exists()
    pack(tmp_path / "half", tmp_path / "half.json")
    assert (summary(tmp_path / "half.json").finished, summary(tmp_path / "half.json").folds) == (
        1, 3,
    )  # fmt: skip
    unpack(tmp_path / "half.json", tmp_path / "back")
    kept = (tmp_path / "back" / "fold-00.json").stat().st_mtime_ns
    assert answer(tmp_path / "back", mutag) == expected
    assert (tmp_path / "back" / "fold-00.json").stat().st_mtime_ns == kept
    for name in ("run.json", "splits.json", "fold-01.json", "fold-02.json", "curves.svg"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_same_commands_continue_an_ablation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ablate", *SMALL, "--hidden", "2", "2"]
    assert run_words([*words, "--out", str(tmp_path / "run")]) == 0
    expected = contents(tmp_path / "run")
    (tmp_path / "run" / "ablation.json").unlink()
    for name in ("result.json", "fold-01.json"):
        (tmp_path / "run" / "no-nodes" / name).unlink()
    places = [str(tmp_path / "run"), str(tmp_path / "run.json"), str(tmp_path / "back")]
    assert run_words(["pack", places[0], "--out", places[1]]) == 0
    assert run_words(["unpack", places[1], "--out", places[2]]) == 0
    capsys.readouterr()
    assert run_words([*words, "--out", places[2]]) == 0
    assert "started with other versions" not in capsys.readouterr().err
    back = contents(tmp_path / "back")
    for name in expected:
        if "timing" not in name and not name.endswith("curves.svg"):
            assert back[name] == expected[name], name


def test_the_same_command_continues_a_search(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    words = ["search", *SMALL, "--hidden", "2", "2", "--trials"]
    assert run_words([*words, "3", "--out", str(tmp_path / "whole")]) == 0
    assert run_words([*words, "1", "--out", str(tmp_path / "run")]) == 0
    pack(tmp_path / "run", tmp_path / "run.json")
    unpack(tmp_path / "run.json", tmp_path / "back")
    assert run_words([*words, "3", "--out", str(tmp_path / "back")]) == 0
    for name in ("trials.json", "best.toml", "search.json"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


# Refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../run.json", "/run.json", "a/../../run.json", "a//run.json", "./run.json", "", ".",
        "..", "a/", "..\\run.json", "C:run.json", "run\x00.json", "run\n.json", "\ud800.json",
    ],
)  # fmt: skip
def test_a_name_that_leaves_the_folder_is_refused_before_anything_is_written(
    name: str, tmp_path: Path
) -> None:
    entry = {"json": {}}
    file = archive(tmp_path / "a.json", {"run.json": entry, name: entry})
    with pytest.raises(DataError, match="is not a valid file name inside a run folder"):
        unpack(file, tmp_path / "deep" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("files", "splits", "message"),
    [
        ([], [], "is not a packed RUN_DIR"),
        ({}, {}, "is not a packed RUN_DIR"),
        ({"a": 3}, [], "'a' is not a valid entry"),
        ({"a": {}}, [], "'a' is not a valid entry"),
        ({"a": {"json": 1, "text": []}}, [], "'a' is not a valid entry"),
        ({"a": {"__class__": 1}}, [], "layout '__class__' is unknown"),
        ({"a": {"text": "abc"}}, [], "must be a list of lines"),
        ({"a": {"text": [3]}}, [], "'a' is not a valid entry"),
        ({"a": {"text": ["\ud800"]}}, [], "'a' is not a valid entry"),
        ({"a": {"splits": 0}}, [], "no splits with number 0"),
        ({"a": {"splits": -1}}, [[]], "no splits with number -1"),
        ({"a": {"splits": True}}, [[], []], "no splits with number True"),
        ({"a": {"splits": 0}}, [3], "'a' is not a valid entry"),
        ({"a": {"splits": 0}}, [[3]], "'a' is not a valid entry"),
        ({"a": {"splits": 0}}, [[{}]], "'a' is not a valid entry"),
        ({"a": {"splits": 0}}, [[{"graphs": "3", "validation": [], "test": []}]], "whole number"),
        ({"a": {"splits": 0}}, [[{"graphs": 2, "validation": [[]], "test": []}]], "not a valid"),
        ({"a": {"json": 1}, "a/b": {"json": 1}}, [], "'a/b' cannot be a file of a run"),
        ({"fold-01.checkpoint": {"text": []}}, [], "cannot be a file of a run"),
    ],
)  # fmt: skip
def test_what_pack_has_not_written_is_refused_in_one_sentence(
    files: Any, splits: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = archive(tmp_path / "a.json", files, splits)
    line = refused(["unpack", str(file), "--out", str(tmp_path / "out")], capsys)
    assert message in line
    assert str(file) in line
    assert not (tmp_path / "out").exists()


def test_a_small_file_cannot_fill_memory_or_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold = {"validation": [], "test": []}
    for counts in ([10**15], [10**15, -(10**15)], [10**6] * 100):
        folds = [{"graphs": count, **fold} for count in counts]
        with pytest.raises(DataError, match=r"splits\.json"):
            unpack(archive(tmp_path / "a.json", {"splits.json": {"splits": 0}}, [folds]), tmp_path)
    monkeypatch.setattr("cell_attention.evaluation.archive._LARGEST", 10_000)
    files = {f"{number}/splits.json": {"splits": 0} for number in range(100)}
    with pytest.raises(DataError, match="at most 10,000 characters"):
        unpack(archive(tmp_path / "a.json", files, [[{"graphs": 100, **fold}]]), tmp_path)


def test_other_files_and_folders_are_refused_in_one_sentence(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = archive(tmp_path / "newer.json", {}, format=2)
    older = archive(tmp_path / "older.json", {}, format=0)
    deep = tmp_path / "deep.json"
    deep.write_text('{"format": 1, "splits": [], "files": ' + "[" * 100_000)
    (tmp_path / "text.json").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "run.json").write_bytes(b"\xff")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "run.json").write_text("{}")
    (tmp_path / "link" / "away").symlink_to(runs)
    packed, plain, out = str(runs / "plain.json"), str(runs / "plain"), str(tmp_path / "out")
    for words, message in (
        (["unpack", str(newer), "--out", out], "format 2 is newer than 1"),
        (["unpack", str(older), "--out", out], "is not a packed RUN_DIR"),
        (["unpack", str(deep), "--out", out], "not a complete JSON file"),
        (["unpack", str(tmp_path / "text.json"), "--out", out], "not a complete JSON file"),
        (["unpack", f"{plain}/run.json", "--out", out], "is not a packed RUN_DIR"),
        (["unpack", f"{plain}/splits.json", "--out", out], "must hold one JSON object"),
        (["unpack", f"{plain}/timing.json", "--out", out], "is not a packed RUN_DIR"),
        (["unpack", plain, "--out", out], "there is no such file"),
        (["unpack", packed, "--out", plain], "must be a new or empty folder"),
        (["unpack", packed, "--out", packed], "must be a new or empty folder"),
        (["pack", str(tmp_path / "empty"), "--out", f"{out}.json"], "is not a RUN_DIR"),
        (["pack", out, "--out", f"{out}.json"], "there is no such folder"),
        (["pack", plain, "--out", out], "must end in .json"),
        (["pack", plain, "--out", f"{plain}/a.json"], "is inside the folder to pack"),
        (["pack", plain, "--out", f"{out}/a.json"], "does not exist"),
        (["pack", str(tmp_path / "binary"), "--out", f"{out}.json"], "is not a text"),
        (["pack", str(tmp_path / "link"), "--out", f"{out}.json"], "neither a file nor a folder"),
        (["report", str(newer)], "format 2 is newer than 1"),
        (["report", out], "is neither a RUN_DIR nor a packed RUN_DIR"),
    ):  # fmt: skip
        assert message in refused(words, capsys), words
    assert not list(tmp_path.glob("out*"))


def test_an_empty_folder_may_be_unpacked_to(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    unpack(runs / "plain.json", tmp_path / "out")
    with pytest.raises(InputError, match="must be a new or empty folder"):
        unpack(runs / "plain.json", tmp_path / "out")


# Read --------------------------------------------------------------------------------------------


def test_report_reads_a_packed_run_as_it_reads_the_folder(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = []
    for ending in ("", ".json"):
        names = [str(runs / f"{name}{ending}") for name in ("plain", "fair")]
        assert run_words(["report", *names, "--protocol", "per_fold_best"]) == 0
        tables.append(capsys.readouterr().out)
        assert [summary(Path(name)).label for name in names] == ["plain", "fair"]
    assert tables[0] == tables[1]
    assert "plain" in tables[0]


def test_what_is_wrong_in_a_packed_run_is_told_with_the_name_of_its_file(
    runs: Path, tmp_path: Path
) -> None:
    record = json.loads((runs / "plain.json").read_text())
    record["files"]["result.json"] = {"json": {"format": 1, "protocols": {"paper": 3}}}
    file = archive(tmp_path / "a.json", record["files"], record["splits"])
    with pytest.raises(
        DataError, match=r"a\.json.result\.json: not a valid result of a run"
    ) as found:
        summary(file)
    assert str(file) in str(found.value)
    del record["files"]["run.json"]
    file = archive(tmp_path / "b.json", record["files"], record["splits"])
    with pytest.raises(SourceNotFoundError, match=r"b\.json is not a RUN_DIR: run.json is missing"):
        summary(file)


def test_the_temporary_folder_of_a_packed_run_is_gone_afterwards(runs: Path) -> None:
    with run_folder(runs / "plain.json") as folder:
        assert (folder / "result.json").is_file()
        assert folder != runs / "plain"
    assert not folder.exists()
    with run_folder(runs / "plain") as folder:
        assert folder == runs / "plain"
    assert folder.exists()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_results_unpack_to_folders_that_say_the_same(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    unpack(file, folder)
    pack(folder, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()
    if (folder / "run.json").is_file():
        assert said(summary(file)) == said(summary(folder))
        assert summary(file).label == file.stem
    else:
        assert file.stem.endswith(("-ablation", "-search"))
        inner = [summary(path.parent) for path in folder.glob("*/run.json")]
        assert len(inner) >= 7
