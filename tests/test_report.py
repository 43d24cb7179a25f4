"""`report`: one table from several runs, for people and for programs."""

import csv
import json
from pathlib import Path

import pytest

from cell_attention import CellComplex, load_dataset
from cell_attention.cli.entry import run as run_words
from learning import answer


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def runs(mutag: CellComplex, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    answer(folder / "plain", mutag, epochs=2)
    answer(folder / "fair", mutag, epochs=2, protocol="fair")
    answer(folder / "majority", mutag, model="majority")
    answer(folder / "unfinished", mutag, epochs=1)
    (folder / "unfinished" / "result.json").unlink()
    (folder / "unfinished" / "fold-02.json").unlink()
    return folder


NAMES = ("plain", "fair", "majority", "unfinished")


def test_a_table_has_every_run_with_the_name_of_its_protocol(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = [str(tmp_path / name) for name in ("table.md", "table.csv")]
    assert run_words(["report", *(str(runs / name) for name in NAMES), "--out", *out]) == 0
    printed = capsys.readouterr().out
    results = {
        name: json.loads((runs / name / "result.json").read_text())["protocols"]
        for name in NAMES[:3]
    }
    markdown = (tmp_path / "table.md").read_text().splitlines()
    for row, name in zip(markdown[2:], NAMES[:3], strict=False):
        assert f"{results[name]['fair' if name == 'fair' else 'paper']['mean']:.1f} ±" in row
    assert "not run" in markdown[2]
    assert f"@{results['plain']['paper']['epoch']}" in markdown[2]
    assert "not run" not in markdown[3]
    assert markdown[4].count("no epochs") == 2
    assert "unfinished, 2 of 3 folds" in markdown[5]
    assert "unfinished, 2 of 3 folds" in printed
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["paper_mean"]) == results["plain"]["paper"]["mean"]
    assert rows[0]["fair_mean"] == ""
    assert float(rows[1]["fair_std"]) == results["fair"]["fair"]["std"]
    assert rows[3]["finished_folds"] == "2"
    assert run_words(["report", str(runs / "plain"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["runs"][0]["per_fold_best_mean"] == results["plain"]["per_fold_best"]["mean"]


def test_what_is_no_run_is_one_line(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    for name in ("run.json", "splits.json", "fold-00.json"):
        (tmp_path / "run" / name).write_bytes((runs / "plain" / name).read_bytes())
    (tmp_path / "run" / "result.json").write_text('{"format": 1, "protocols": {"paper": 3}}')
    for words, message in (
        ([str(tmp_path)], "is not a RUN_DIR: run.json is missing"),
        ([str(runs / "plain"), "--out", str(tmp_path / "a.txt")], "must end in .md or .csv"),
        ([str(tmp_path / "run")], "result.json: not a valid result of a run"),
        ([], "needs at least one RUN_DIR"),
    ):
        assert run_words(["report", *words]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
