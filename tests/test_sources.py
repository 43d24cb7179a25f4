"""Where data are looked for, the bundled set, and files of molecules."""

import gzip
import io
import urllib.request
import zipfile
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from cell_attention import CellAttentionWarning, load_dataset
from cell_attention.data.sources import BUNDLED, known_names, read_source
from cell_attention.data.tu import download
from cell_attention.errors import DataError, SourceNotFoundError


def test_the_bundled_set_is_byte_for_byte_the_published_one(data_dir: Path) -> None:
    with zipfile.ZipFile(BUNDLED["MUTAG"]) as bundle:
        names = bundle.namelist()
        assert len(names) == 5
        for name in names:
            published = data_dir / "TUDataset" / "MUTAG" / "raw" / Path(name).name
            assert bundle.read(name) == published.read_bytes()


def test_the_bundled_set_needs_no_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELL_ATTENTION_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert known_names() == BUNDLED
    assert load_dataset("MUTAG").num_polygons == 538


def test_an_unknown_name_is_fetched_once_and_then_found_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELL_ATTENTION_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for stem, text in {"A": "1,2\n2,1\n", "graph_indicator": "1\n1\n", "graph_labels": "0\n", "node_labels": "0\n0\n"}.items():  # fmt: skip # noqa: E501
            archive.writestr(f"FAR/FAR_{stem}.txt", text)
    asked = []

    def answer(address: str, timeout: float) -> io.BytesIO:
        asked.append(address)
        return io.BytesIO(packed.getvalue())

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    with pytest.warns(CellAttentionWarning, match="FAR is not on this machine: downloading http"):
        assert load_dataset("FAR").num_edges == 1
    assert load_dataset("FAR").num_edges == 1
    assert len(asked) == 1
    assert asked[0].endswith("/FAR.zip")


def test_when_all_fails_the_message_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fail(address: str, timeout: float) -> None:
        raise OSError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    with pytest.warns(CellAttentionWarning), pytest.raises(SourceNotFoundError) as caught:
        load_dataset("MUTAGG")
    for part in ("'MUTAGG'", "no network", "Did you mean MUTAG?", "data_dir=", "MUTAGG/raw"):
        assert part in str(caught.value)
    assert list((tmp_path / "cell-attention").iterdir()) == []


@pytest.mark.parametrize("name", ["no/such/place", "nothing.zip", "nothing.csv", "nothing.smi.gz"])
def test_a_path_that_does_not_exist_is_named(name: str) -> None:
    with pytest.raises(SourceNotFoundError, match="no such file"):
        load_dataset(name)


def test_a_table_of_molecules_gives_complexes_and_targets(tmp_path: Path) -> None:
    table = tmp_path / "mols.csv"
    table.write_text("\ufeffsmiles;active\nc1ccccc1;1\n\nCCO;0\n")
    complexes = load_dataset(table)
    assert complexes.targets is not None
    assert complexes.targets.tolist() == [1, 0]
    assert read_source(table).class_names == ("0", "1")
    packed = tmp_path / "mols.csv.gz"
    packed.write_bytes(gzip.compress(b"smiles,a,b\nCC,1.5,\nCCC,,2\n"))
    values = load_dataset(packed).targets
    assert values is not None
    assert torch.equal(values.nan_to_num(-1), torch.tensor([[1.5, -1.0], [-1.0, 2.0]]))
    loud = tmp_path / "LOUD.CSV"
    loud.write_text("smiles\nCC\n")
    assert load_dataset(loud).num_edges == 1
    lines = tmp_path / "mols.smi"
    lines.write_text("CC ethane\nC1CC1\tcyclopropane\n")
    assert load_dataset(lines).num_polygons == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smiles,y\nCC,1\nC1CC,0\n", "line 3: RDKit cannot read 'C1CC'"),
        ("smiles,y\nCC,1\n,0\n", "line 3: there is no molecule"),
        ("smiles,y\nCC,1\nCCC,yes\n", "line 3: 'yes' in column 'y' is not a number"),
        (
            "smiles,y\nCC,1\nC1CC,0\nC(C,1\n",
            r"unclosed ring\) \(and 1 more row\); on_error=report",
        ),
        (
            "smiles,n,z\nCC,ethane,a\nCCC,propane,a\n",
            r"columns 'n' \(2 different\), 'z' \(1 different\) hold texts",
        ),
        ("smiles,y\nCC,1\nCCC\n", "line 3: 2 cells are expected, got 1"),
        ("smiles y\nCC 1\n", "line 2: a SMILES must not contain spaces"),
        ("smiles,y\nCC,1\nCCC,inf\n", "line 3: 'inf' in column 'y' is not a number"),
        ("smiles,y\nCC,1e39\n", "line 2: '1e39' in column 'y' does not fit into 32 bits"),
        ('smiles,y\n"' + "C" * 200_000, "line 2: unexpected end of data"),
        ("CCO,1\nCCC,0\n", "line 1: a header is expected, got the molecule 'CCO'"),
        ("smiles,y\n", "there is no molecule in it"),
        ("", "there is no molecule in it"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(text: str, message: str, tmp_path: Path) -> None:
    table = tmp_path / "mols.csv"
    table.write_text(text)
    with pytest.raises(DataError, match=message):
        load_dataset(table)


def test_damaged_archives_are_named(tmp_path: Path) -> None:
    packed = tmp_path / "mols.csv.gz"
    packed.write_bytes(gzip.compress(b"smiles\nCC\n")[:-12] + b"\xff" * 12)
    with pytest.raises(DataError, match=r"mols.csv.gz: not a readable text file"):
        load_dataset(packed)


def test_a_download_that_is_not_an_archive_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", lambda *a, **k: io.BytesIO(b"<html>"))
    refused = pytest.raises(SourceNotFoundError, match="the downloaded file is not a zip file")
    with pytest.warns(CellAttentionWarning), refused:
        load_dataset("FAR")
    assert list((tmp_path / "cell-attention").iterdir()) == []


class Endless:
    """An answer that never ends, one byte at a time."""

    headers: ClassVar[dict[str, str]] = {}

    def __enter__(self) -> "Endless":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def read(self, size: int) -> bytes:
        return b"x"


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [("SECONDS", 0.05, "not complete after 0 seconds"), ("LARGEST", 1000, "more than 1,000 bytes")],
)
def test_a_download_that_never_ends_is_given_up(
    limit: str, value: float, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", lambda *a, **k: Endless())
    monkeypatch.setattr(download, limit, value)
    with pytest.warns(CellAttentionWarning), pytest.raises(SourceNotFoundError, match=message):
        load_dataset("FAR")
    assert list((tmp_path / "cell-attention").iterdir()) == []


def test_a_misspelt_data_folder_is_named_before_anything_is_downloaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CELL_ATTENTION_DATA", "/no/such/place")
    monkeypatch.delattr(urllib.request, "urlopen")
    message = "CELL_ATTENTION_DATA is /no/such/place: no such folder"
    for name in ("MUTAG", "FAR"):
        with pytest.raises(SourceNotFoundError, match=message):
            load_dataset(name)


def test_a_user_without_a_home_still_lifts(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert load_dataset("MUTAG").num_complexes == 188


def test_bad_rows_are_left_out_on_request_and_counted(tmp_path: Path) -> None:
    table = tmp_path / "mols.csv"
    table.write_text("smiles,y\nCC,1\nC1CC,0\nCCC,0\n")
    kept = read_source(table, on_error="skip")
    assert kept.graphs.num_complexes == 2
    with pytest.warns(CellAttentionWarning, match="1 row left out, the first on line 3"):
        assert load_dataset(table, on_error="skip").num_complexes == 2
    assert kept.notes == ("1 row left out, the first on line 3",)


def test_what_was_assumed_while_reading_reaches_the_caller(tmp_path: Path) -> None:
    for stem, text in {"A": "1,2\n", "graph_indicator": "1\n1\n", "graph_labels": "0\n"}.items():
        (tmp_path / f"T_{stem}.txt").write_text(text)
    with pytest.warns(CellAttentionWarning) as caught:
        load_dataset(tmp_path)
    assert {warning.filename for warning in caught} == {__file__}


def test_progress_runs_from_the_first_row_to_the_last(tmp_path: Path) -> None:
    table = tmp_path / "mols.csv"
    table.write_text("smiles,y\n" + "CC,1\n" * 450)
    seen: list[tuple[int, int]] = []
    read_source(table, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == [100, 200, 300, 400, 450]
    assert seen[-1] == (450, 450)


def test_progress_through_large_tables_ends_at_their_size(data_dir: Path) -> None:
    seen: list[tuple[int, int]] = []
    read_source("NCI1", data_dir, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert len(seen) >= 5
    assert seen[-1][0] >= 0.9 * seen[-1][1]
