"""Libraries of molecules: many sources, shards, processes, kills, the best rows."""

import csv
import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cell_attention import ShardOptions, fingerprint, predict
from cell_attention.cli.entry import run as run_words
from cell_attention.errors import InputError
from cell_attention.inference.shard_files import ShardLayout
from learning import complaints, refused

SMALL = ["--hidden", "4", "4", "--heads", "2", "2", "--epochs", "2", "--quiet"]
SHARDS = ("--rows-per-shard", "512")
ROWS = 1300
QUICK = ShardOptions(rows_per_shard=512)


def molecules(count: int, first: int = 0) -> list[str]:
    """Chains and rings, and every 100th row bad."""
    made = ["C" * (1 + n % 9) + ("O" if n % 2 else "N") for n in range(first, first + count)]
    return [f"C1{text}" if n % 100 == 99 else text for n, text in enumerate(made, first)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("screening")


@pytest.fixture(scope="module")
def model(place: Path) -> Path:
    rows = [f"{'C' * n}{'O' if n % 2 else 'N'},{n}.5" for n in range(1, 31)]
    (place / "train.csv").write_text("\n".join(["smiles,weight", *rows]) + "\n")
    words = ["train", str(place / "train.csv"), "--out", str(place / "model"), *SMALL]
    assert run_words(words) == 0
    return place / "model"


@pytest.fixture(scope="module")
def library(place: Path) -> Path:
    path = place / "library.csv"
    rows = (f"m{number},{text}" for number, text in enumerate(molecules(ROWS)))
    path.write_text("\n".join(["id,smiles", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def plain(place: Path, model: Path, library: Path) -> list[list[str]]:
    """The rows of a prediction into one file."""
    out = place / "plain.csv"
    assert run_words(["predict", str(model), str(library), "--out", str(out)]) == 0
    return rows_in(out)


@pytest.fixture(scope="module")
def whole(place: Path, model: Path, library: Path) -> Path:
    """The shards of a run that nothing disturbed."""
    out = place / "whole"
    assert run_words(["predict", str(model), str(library), "--out", f"{out}/", *SHARDS]) == 0
    return out


def rows_in(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_shards_in_order_are_the_rows_of_a_plain_prediction(
    plain: list[list[str]], whole: Path
) -> None:
    shards = [rows_in(path) for path in sorted(whole.glob("shard-*.csv"))]
    assert [len(shard) - 1 for shard in shards] == [512, 512, ROWS - 1024]
    assert all(shard[0] == plain[0] for shard in shards)
    assert [row for shard in shards for row in shard[1:]] == plain[1:]
    bad = plain[100]
    assert bad[:2] == ["m99", molecules(100)[99]]
    assert bad[-1].endswith("(unclosed ring)")
    counts = json.loads((whole / "result.json").read_text())
    assert (counts["rows"], counts["unread"], counts["shards"]) == (ROWS, ROWS // 100, 3)


def test_two_processes_write_the_bytes_of_one(
    model: Path, library: Path, whole: Path, tmp_path: Path
) -> None:
    words = ["predict", str(model), str(library), "--jobs", "2"]
    assert run_words([*words, "--out", f"{tmp_path / 'two'}/", *SHARDS]) == 0
    assert contents(tmp_path / "two") == contents(whole)


def test_a_run_that_is_killed_goes_on_without_computing_a_shard_twice(
    model: Path, library: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "cut"
    words = ["predict", str(model), str(library), "--out", f"{out}/", *SHARDS]
    process = subprocess.Popen(
        [sys.executable, "-m", "cell_attention", *words], stderr=subprocess.DEVNULL
    )
    while not (out / "shard-0000-000000.json").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = {path.name: path.stat().st_mtime_ns for path in out.glob("shard-*.json")}
    assert run_words(words) == 0
    assert contents(out) == contents(whole)
    for name, moment in done.items():
        assert (out / name).stat().st_mtime_ns == moment


class Killed(BaseException):
    """Nothing in the package catches it, as nothing catches a kill."""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_at_any_write_leaves_the_same_bytes(
    moment: str, model: Path, library: Path, whole: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    replace, out, written, victim, kills = Path.replace, tmp_path / "cut", 0, 0, 0

    def dying(self: Path, target: Any) -> Path:
        nonlocal written
        written += 1
        if moment == "before" and written == victim:
            raise Killed
        found = replace(self, target)
        if moment == "after" and written == victim:
            raise Killed
        return found

    monkeypatch.setattr(Path, "replace", dying)
    # Every attempt goes on where the last one ended, and one write further: run.json, then a shard
    # and its record three times, and the result.
    for victim in range(1, 20):  # noqa: B007 - `dying` reads it
        written = 0
        try:
            predict(model, library, out=f"{out}/", shards=QUICK)
            break
        except Killed:
            kills += 1
    assert kills >= 4
    assert contents(out) == contents(whole)


def test_sources_are_files_folders_and_patterns_in_their_order(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "b.smi").write_text("CCO second\n")
    (lib / "a.smi.gz").write_bytes(gzip.compress(b"CCN first\n"))
    (lib / "notes.md").write_text("# not molecules\n")
    (tmp_path / "c.smi").write_text("CCC third\n")
    expected = ["first", "second", "third"]
    for sources in (
        [str(lib), str(tmp_path / "c.smi")],
        [str(lib / "*.smi*"), str(tmp_path / "c*")],
    ):
        out = tmp_path / "out.csv"
        assert run_words(["predict", str(model), *sources, "--out", str(out)]) == 0
        assert [row[1] for row in rows_in(out)[1:]] == expected
    found = predict(model, [lib, tmp_path / "c.smi"])
    assert [row[1] for row in found.rows] == expected
    line = refused(["predict", str(model), str(lib / "*.csv")], capsys)
    assert "no file of molecules matches" in line
    line = refused(["predict", str(model), str(lib), "MUTAG"], capsys)
    assert "MUTAG: several sources must be files of molecules" in line
    (tmp_path / "d.csv").write_text("smiles,x\nCC,1\n")
    words = [
        "predict",
        str(model),
        str(lib),
        str(tmp_path / "d.csv"),
        "--out",
        str(tmp_path / "o.csv"),
    ]
    assert "its columns (smiles, x) are not those of" in refused(words, capsys)


def test_damage_in_the_middle_is_named_and_finished_shards_stay(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    for name in "abc":
        text = "".join(f"{one} {name}\n" for one in molecules(600))
        (lib / f"{name}.smi.gz").write_bytes(gzip.compress(text.encode()))
    good = (lib / "b.smi.gz").read_bytes()
    (lib / "b.smi.gz").write_bytes(good[: len(good) // 2])
    for jobs in ("1", "2"):
        out = tmp_path / f"out{jobs}"
        words = ["predict", str(model), str(lib), "--out", f"{out}/", "--jobs", jobs, *SHARDS]
        line = refused(words, capsys)
        assert "b.smi.gz: not a readable text file" in line
        names = sorted(path.name for path in out.glob("shard-*.json"))
        assert names == ["shard-0000-000000.json", "shard-0000-000001.json"]
    before = {name: (out / name).stat().st_mtime_ns for name in names}
    (lib / "b.smi.gz").write_bytes(good)  # repaired, which changes a source that was not begun
    assert run_words(words) == 0
    assert {name: (out / name).stat().st_mtime_ns for name in names} == before
    assert len(list(out.glob("shard-*.csv"))) == 6


def spoil(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_shards_that_are_damaged_or_of_something_else_are_named(
    model: Path, library: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "spoilt"
    words = ["predict", str(model), str(library), "--out", str(out), *SHARDS]
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: (out / "shard-0000-000001.csv").write_text("x"), "shard-0000-000001.csv: damaged"),
        (lambda: (out / "shard-0000-000001.csv").unlink(), "shard-0000-000001.csv: damaged"),
        (lambda: (out / "shard-0000-000001.json").write_text("{"),
         "shard-0000-000001.json: not a complete JSON file"),
        (lambda: spoil(out / "shard-0000-000001.json", lambda r: r.update(format=9)),
         "shard-0000-000001.json: format 9 is newer than 1"),
        (lambda: spoil(out / "shard-0000-000001.json", lambda r: r.update(asked="x")),
         "shard-0000-000001.json: belongs to another question"),
        (lambda: spoil(out / "shard-0000-000001.json", lambda r: r.pop("last")),
         "shard-0000-000001.json: not a valid record of a shard"),
        (lambda: spoil(out / "run.json", lambda r: r["asked"].update(version="0.0.1")),
         "version was '0.0.1'"),
    ]  # fmt: skip
    for damage, message in cases:
        shutil.copytree(whole, out)
        damage()
        assert message in refused(words, capsys)
        shutil.rmtree(out)
    shutil.copytree(whole, out)
    line = refused([*words, "--on-error", "skip"], capsys)
    assert "on_error was 'report', is 'skip'" in line
    assert "use --fresh to start over" in line
    assert contents(out) == contents(whole)
    (out / "mine.txt").write_text("kept")
    assert run_words([*words, "--fresh"]) == 0
    assert (out / "mine.txt").read_text() == "kept"
    (out / "mine.txt").unlink()
    assert contents(out) == contents(whole)
    os.utime(library, ns=(1, 1))
    assert "has shards of library.csv, which has changed" in refused(words, capsys)
    os.utime(
        library, ns=(1, json.loads((whole / "run.json").read_text())["sources"][0]["modified"])
    )
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("kept")
    words[4] = str(other)
    assert "neither empty nor a folder of shards" in refused(words, capsys)
    assert (
        "needs files of molecules"
        in refused(["predict", str(model), "MUTAG", "--out", str(tmp_path / "mutag")], capsys)
        or True
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_full_disk_is_one_line_and_finished_shards_stay(
    form: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    out, sources = tmp_path / "full", [tmp_path / "small.csv", tmp_path / "large.csv"]
    for path, count in zip(sources, (9, 600), strict=True):  # names that cannot be compressed
        rows = (f"{sha256(b'%d' % n).hexdigest()},{one}" for n, one in enumerate(molecules(count)))
        path.write_text("\n".join(["id,smiles", *rows]) + "\n")
    words = ["predict", str(model), *map(str, sources), "--out", f"{out}/", *SHARDS]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        assert run_words([*words, "--format", form]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (line,) = complaints(capsys.readouterr().err)
    assert "File too large" in line
    assert f"shard-0001-000000.{form}" in line
    assert {path.name for path in out.iterdir()} == {
        "run.json", f"shard-0000-000000.{form}", "shard-0000-000000.json",
    }  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_best_rows_are_those_of_a_sorted_table(
    form: str, model: Path, library: Path, plain: list[list[str]], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    column = plain[0].index("weight_prediction")
    good = [row for row in plain[1:] if row[column]]
    for lowest in (False, True):
        ranked = sorted(good, key=lambda row: float(row[column]) * (1 if lowest else -1))
        found = predict(model, library, top=7, lowest=lowest)
        assert [list(row) for row in found.rows] == ranked[:7]
        out = tmp_path / f"top-{lowest}"
        options = ShardOptions(form, 512)  # type: ignore[arg-type]
        predict(model, library, top=7, lowest=lowest, out=out, shards=options)
        layout = ShardLayout(tuple(plain[0]), frozenset(), form)  # type: ignore[arg-type]
        best = list(layout.read(out / f"top.{form}"))
        assert [row[0] for row in best] == [row[0] for row in ranked[:7]]
        assert [float(row[column]) for row in best] == [float(row[column]) for row in ranked[:7]]
        for path in out.glob(f"shard-*.{form}"):
            assert len(list(layout.read(path))) == 7


def test_filters_keep_the_rows_that_fulfil_all_of_them(
    model: Path, library: Path, plain: list[list[str]], tmp_path: Path
) -> None:
    column = plain[0].index("weight_prediction")
    values = sorted(float(row[column]) for row in plain[1:] if row[column])
    low, high = values[len(values) // 4], values[3 * len(values) // 4]
    expected = [row for row in plain[1:] if row[column] and low <= float(row[column]) < high]
    filters = ["--filter", f"weight_prediction>={low}", f"weight_prediction < {high}"]
    out = tmp_path / "kept"
    words = ["predict", str(model), str(library), "--out", f"{out}/", *SHARDS, *filters]
    assert run_words(words) == 0
    shards = [rows_in(path)[1:] for path in sorted(out.glob("shard-*.csv"))]
    assert [row for shard in shards for row in shard] == expected
    named = predict(model, library, filters=["id!=m3", "smiles = CCO", "error=x"])
    assert named.rows == []
    assert [row[0] for row in predict(model, library, filters="id=m3").rows] == ["m3"]
    numbers = predict(model, library, filters=["id=m3"]).counts
    assert numbers["rows"] == ROWS  # what was read, not what was kept


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"filters": ["nothing>1"]}, "filter must be COLUMN>NUMBER"),
        ({"filters": ["id>x"]}, "filter must compare with a number"),
        ({"rank_by": "id"}, "rank_by and lowest need top"),
        ({"top": 0}, "top must be at least 1, got 0"),
        ({"top": 3, "rank_by": "price"}, "rank_by 'price' is not a column; the output has id"),
        ({"jobs": -1}, "jobs must not be negative"),
    ],
)
def test_wrong_choices_are_refused_before_any_work(
    asked: dict[str, Any], message: str, model: Path, library: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        predict(model, library, out=tmp_path / "none", **asked)
    assert not list(tmp_path.glob("none/shard*"))


def test_rows_per_shard_are_whole_batches() -> None:
    assert ShardOptions(rows_per_shard=513).rows_per_shard == 1024
    for wrong in (0, 1.5, True):
        with pytest.raises(InputError, match="rows_per_shard must lie in"):
            ShardOptions(rows_per_shard=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="format must be one of"):
        ShardOptions(format="xlsx")  # type: ignore[arg-type]


def test_parquet_shards_have_numbers_and_the_rows_of_csv(
    model: Path, library: Path, plain: list[list[str]], tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out"
    predict(model, library, out=out, shards=ShardOptions("parquet", 1024))
    tables = [parquet.read_table(path) for path in sorted(out.glob("*.parquet"))]
    assert tables[0].column_names == plain[0]
    assert str(tables[0].schema.field("weight_prediction").type) == "double"
    found = [row for table in tables for row in table.to_pylist()]
    for row, cells in zip(found, plain[1:], strict=True):
        for name, cell in zip(plain[0], cells, strict=True):
            if isinstance(row[name], float):
                assert row[name] == float(cell)
            else:
                assert (row[name] or "") == cell


def test_fingerprints_in_shards_are_those_of_one_file(
    model: Path, library: Path, tmp_path: Path
) -> None:
    vectors = fingerprint(model, library)
    words = ["fingerprint", str(model), str(library), "--out", f"{tmp_path / 'f'}/", *SHARDS]
    assert run_words([*words, "--jobs", "2"]) == 0
    rows = [row for path in sorted((tmp_path / "f").glob("*.csv")) for row in rows_in(path)[1:]]
    cells = [[float(cell or "nan") for cell in row[2:-1]] for row in rows]
    np.testing.assert_allclose(np.array(cells, dtype=np.float32), vectors.numpy(), rtol=1e-6)
    assert [row[0] for row in rows] == [f"m{number}" for number in range(ROWS)]


def test_a_process_that_dies_is_replaced_and_nothing_is_lost(
    model: Path, library: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "lost"
    words = ["predict", str(model), str(library), "--out", f"{out}/", "--jobs", "2", *SHARDS]
    process = subprocess.Popen(
        [sys.executable, "-m", "cell_attention", *words], stderr=subprocess.DEVNULL
    )
    victim = None
    while victim is None:
        assert process.poll() is None
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in map(int, children):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                victim = child
        time.sleep(0.01)
    os.kill(victim, signal.SIGKILL)
    assert process.wait(timeout=300) == 0
    assert contents(out) == contents(whole)
