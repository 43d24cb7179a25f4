"""Every row of docs/files.md: its input is written and read, and its words are looked for."""

import gzip
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cell_attention import CellComplex, load_dataset
from cell_attention.cli.entry import run
from cell_attention.data.file_format import FileFormat
from cell_attention.errors import DataError, InputError
from test_tu import FILES, write

PAGE = Path(__file__).parents[1] / "docs" / "files.md"
Case = Callable[[Path], list[str]]
CASES: dict[str, Case] = {}


def rows() -> dict[str, str]:
    """The rows of all tables of the page: what is given, and what happens."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 2 and cells[0] not in ("input", "---"):
            found[cells[0]] = cells[1]
    return found


def case(name: str) -> Callable[[Case], Case]:
    """Register the writer of a row's input, which returns the words of the command line."""

    def add(writer: Case) -> Case:
        CASES[name] = writer
        return writer

    return add


def archive(path: Path, stem: str, files: dict[str, str] = FILES) -> list[str]:
    with zipfile.ZipFile(path, "a") as packed:
        for name, text in files.items():
            packed.writestr(f"{stem}_{name}.txt", text)
    return ["lift", str(path)]


@case("archive with `NAME//NAME_A.txt`, as the TU collection has them")
def _(folder: Path) -> list[str]:
    return archive(folder / "NAME.zip", "NAME//NAME")


@case("archive with `NAME/raw/NAME_A.txt`")
def _(folder: Path) -> list[str]:
    return archive(folder / "NAME.zip", "NAME/raw/NAME")


@case("archive with `NAME_A.txt` and no folder")
def _(folder: Path) -> list[str]:
    return archive(folder / "NAME.zip", "NAME")


@case("archive made on a Mac, with `__MACOSX/._NAME_A.txt`")
def _(folder: Path) -> list[str]:
    archive(folder / "NAME.zip", "__MACOSX/NAME/._NAME", {"A": "\x00\x05"})
    return archive(folder / "NAME.zip", "NAME/NAME")


@case("archive with two sets")
def _(folder: Path) -> list[str]:
    archive(folder / "NAME.zip", "ONE/ONE")
    return archive(folder / "NAME.zip", "TWO/TWO")


@case("archive with a link in it")
def _(folder: Path) -> list[str]:
    words = archive(folder / "NAME.zip", "NAME/NAME", FILES | {"graph_labels": ""})
    link = zipfile.ZipInfo("NAME/NAME_graph_attributes.txt")
    with zipfile.ZipFile(folder / "LINK.zip", "w") as packed, zipfile.ZipFile(words[1]) as old:
        for name in old.namelist():
            if "graph_labels" not in name:
                packed.writestr(name, old.read(name))
        link.external_attr = 0o120777 << 16
        packed.writestr(link, "/etc/passwd")
    return ["lift", str(folder / "LINK.zip")]


@case("archive that unpacks to far more than its size")
def _(folder: Path) -> list[str]:
    with zipfile.ZipFile(folder / "NAME.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in FILES.items():
            packed.writestr(f"NAME/NAME_{name}.txt", "1\n" * (40 << 20) if name == "A" else text)
    return ["lift", str(folder / "NAME.zip")]


@case("folder with a FIFO in it")
def _(folder: Path) -> list[str]:
    os.mkfifo(write(folder / "TOY", FILES) / "TOY_graph_attributes.txt")
    return ["lift", str(folder / "TOY")]


@case("folder with a table that is a link to a device")
def _(folder: Path) -> list[str]:
    (write(folder / "TOY", FILES) / "TOY_node_attributes.txt").symlink_to("/dev/zero")
    return ["lift", str(folder / "TOY")]


@case("folder with a table that is a link to nothing")
def _(folder: Path) -> list[str]:
    (write(folder / "TOY", FILES) / "TOY_node_attributes.txt").symlink_to(folder / "nowhere")
    return ["lift", str(folder / "TOY")]


@case("`CELL_ATTENTION_DATA` that is no folder")
def _(folder: Path) -> list[str]:
    os.environ["CELL_ATTENTION_DATA"] = "/no/such/place"
    return ["lift", "NOTHING"]


@case("`.csv.gz` that unpacks to far more than its size")
def _(folder: Path) -> list[str]:
    (folder / "m.csv.gz").write_bytes(gzip.compress(b"smiles\n" + b"C\n" * (40 << 20)))
    return ["lift", str(folder / "m.csv.gz")]


@case("`.csv` larger than `--max-bytes`")
def _(folder: Path) -> list[str]:
    (folder / "m.csv").write_text("smiles,y\nCC,1\nCCC,0\n")
    return ["lift", str(folder / "m.csv"), "--max-bytes", "10"]


@case("`.csv` that is a FIFO")
def _(folder: Path) -> list[str]:
    os.mkfifo(folder / "m.csv")
    return ["lift", str(folder / "m.csv")]


@case("`.csv` that is a folder")
def _(folder: Path) -> list[str]:
    (folder / "m.csv").mkdir()
    return ["lift", str(folder / "m.csv")]


def test_the_page_has_a_row_for_every_case_and_no_other() -> None:
    assert set(rows()) == set(CASES)


@pytest.mark.parametrize("name", rows())
def test_what_the_page_says_happens(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELL_ATTENTION_DATA", "")  # put back what a case changes
    happens, words = rows()[name], CASES[name](tmp_path)
    code = run(words)
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    if happens.startswith("refused"):
        assert code == 2
        assert len(shown.err.splitlines()) == 1
    else:
        assert code == 0, shown.err
    for words_of_it in re.findall(r"`([^`]+)`", happens):
        assert words_of_it in shown.out + shown.err


def test_archives_of_every_layout_have_the_same_graphs(
    tmp_path: Path, assert_equal: Callable[[CellComplex, CellComplex], None]
) -> None:
    plain = load_dataset(write(tmp_path / "plain", FILES))
    for number, stem in enumerate(("T//T", "T/raw/T", "T/T", "T", "./T/T")):
        assert_equal(load_dataset(archive(tmp_path / f"{number}.zip", stem)[1]), plain)


def test_max_bytes_is_the_limit_of_what_is_unpacked(tmp_path: Path) -> None:
    words = archive(tmp_path / "T.zip", "T/T")
    size = sum(len(text) for text in FILES.values())
    assert len(load_dataset(words[1], file_format=FileFormat(max_bytes=size))) == 2
    with pytest.raises(DataError, match="unpacks to more than"):
        load_dataset(words[1], file_format=FileFormat(max_bytes=size - 1))
    packed = tmp_path / "m.csv.gz"
    packed.write_bytes(gzip.compress(b"smiles,y\nCC,1\nCCC,0\n"))
    targets = load_dataset(packed, file_format=FileFormat(max_bytes=20)).targets
    assert torch.equal(targets, torch.tensor([1, 0]))
    with pytest.raises(DataError, match="more than 19 bytes"):
        load_dataset(packed, file_format=FileFormat(max_bytes=19))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"encoding": "klingon"}, "encoding must be the name of a text encoding"),
        ({"encoding": "rot13"}, "encoding must be the name of a text encoding"),
        ({"decimal": ";"}, "decimal must be '.' or ','"),
        ({"max_bytes": 0}, "max_bytes must be at least 1, got 0"),
    ],
)
def test_a_format_that_is_none_is_refused(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FileFormat(**wrong)  # type: ignore[arg-type]
