"""Every row of docs/files.md: its input is written and read, and its words are looked for."""

import gzip
import os
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from cell_attention import CellAttentionWarning, CellComplex, NetworkConfig, load_dataset
from cell_attention.cli.entry import run
from cell_attention.data.file_format import FileFormat
from cell_attention.data.molecules.files import MoleculeFile
from cell_attention.errors import DataError, InputError
from learning import complaints
from test_honest_weights import SMALL, changed, made, rewritten
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


GAPS = {"graph_indicator": "2\n2\n2\n2\n5\n5\n", "graph_labels": "7\n-1\n3\n3\n7\n"}
ATTRIBUTES = {"node_attributes": "".join(f"{n}.5, -{n}\n" for n in range(6))}


@case("edge labels, and no edge in any graph")
def _(folder: Path) -> list[str]:
    return ["lift", str(write(folder / "TOY", FILES | {"A": "", "edge_labels": ""}))]


@case("graphs without nodes: numbers left out in `NAME_graph_indicator.txt`")
def _(folder: Path) -> list[str]:
    return ["lift", str(write(folder / "TOY", FILES | GAPS))]


@case("numbers left out, and fewer targets than the last number")
def _(folder: Path) -> list[str]:
    return ["lift", str(write(folder / "TOY", FILES | GAPS | {"graph_labels": "1\n2\n"}))]


@case("node labels and node attributes")
def _(folder: Path) -> list[str]:
    return ["lift", str(write(folder / "TOY", FILES | ATTRIBUTES))]


@case("node attributes alone")
def _(folder: Path) -> list[str]:
    return ["lift", str(write(folder / "TOY", FILES | ATTRIBUTES | {"node_labels": None}))]


@case("neither")
def _(folder: Path) -> list[str]:
    return ["lift", str(write(folder / "TOY", FILES | {"node_labels": None}))]


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


ROWS = [
    ("CCO", 0.5),
    ("CCCO", 1.5),
    ("c1ccccc1", 2.5),
    ("CC(=O)O", 3.5),
    ("CCN", 4.5),
    ("CCC#N", 0.1),
]


def table(folder: Path, *columns: str, **cells: list[object]) -> list[str]:
    """A table with a molecule and a value per row, and more columns; `columns` is their order."""
    listed = {"smiles": [row[0] for row in ROWS], "y": [row[1] for row in ROWS], **cells}
    lines = [",".join(columns)]
    lines += [",".join(str(listed[one][i]) for one in columns) for i in range(len(ROWS))]
    (folder / "m.csv").write_text("\n".join(lines) + "\n")
    return ["lift", str(folder / "m.csv")]


def written(folder: Path, name: str, content: str | bytes, *flags: str) -> list[str]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return ["lift", str(path), *flags]


PLAIN = "smiles,y\n" + "".join(f"{text},{value}\n" for text, value in ROWS)
NAMES = ["ethanol", "propanol", "benzene", "acetic acid", "ethylamine", "nitrile"]


@case("`name,smiles,y`")
def _(folder: Path) -> list[str]:
    return table(folder, "name", "smiles", "y", name=NAMES)


@case("index of pandas before the molecules")
def _(folder: Path) -> list[str]:
    return table(folder, "", "smiles", "y", **{"": list(range(6))})


@case("molecules in a column of any name")
def _(folder: Path) -> list[str]:
    return table(folder, "nr", "cpd", "y", nr=list(range(6)), cpd=[row[0] for row in ROWS])


@case("molecules beside a column of words such as NO and CC")
def _(folder: Path) -> list[str]:
    cells = {"site": ["NO", "CC", "NO", "CC", "I", "NO"], "cpd": [row[0] for row in ROWS]}
    return table(folder, "site", "y", "cpd", **cells)  # type: ignore[arg-type]


@case("two columns of molecules")
def _(folder: Path) -> list[str]:
    cells = [row[0] for row in ROWS]
    return table(folder, "educt", "product", "y", educt=cells, product=cells)


@case("no column of molecules")
def _(folder: Path) -> list[str]:
    return table(folder, "a", "y", a=NAMES)


@case("table without a header")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", PLAIN.removeprefix("smiles,y\n"))


@case("FreeSolv as published: comments, the names of the columns in one of them, semicolons")
def _(folder: Path) -> list[str]:
    names = (
        "compound id (and file prefix); SMILES; iupac name (or alternative); experimental value "
        "(kcal/mol); experimental uncertainty (kcal/mol); experimental reference; text notes."
    )
    rows = "".join(
        f"mobley_{7 * i}; {text}; {NAMES[i]}; {-value}; {0.6 + i}; 10.1/ct{i}; a note; and one;\n"
        for i, (text, value) in enumerate(ROWS)
    )
    return written(folder, "database.txt", f"# Hydration free energies, v0.5\n# {names}\n{rows}")


@case("column named like an identifier (id, index, CID, CAS) with whole numbers or texts")
def _(folder: Path) -> list[str]:
    return table(folder, "smiles", "CID", "y", CID=[702, 1031, 241, 176, 6341, 7854])


@case("column of whole numbers that increase from row to row")
def _(folder: Path) -> list[str]:
    return table(folder, "smiles", "nr2", "y", nr2=[1, 2, 3, 5, 8, 13])


@case("one column of texts beside numbers")
def _(folder: Path) -> list[str]:
    return table(folder, "smiles", "source", "y", source=list("aabbcc"))


@case("zeros and ones beside other numbers")
def _(folder: Path) -> list[str]:
    return table(folder, "smiles", "Class", "pIC50", Class=[0, 1] * 3, pIC50=[5.5, 6, 7, 8, 5, 6])


@case("a column of texts named `Class` beside numbers")
def _(folder: Path) -> list[str]:
    cells = {"Class": ["in", "out"] * 3, "pIC50": [5.5, 6, 7, 8, 5, 6]}
    return table(folder, "smiles", "Class", "pIC50", **cells)  # type: ignore[arg-type]


@case("two columns of texts")
def _(folder: Path) -> list[str]:
    return table(folder, "smiles", "colour", "kind", colour=NAMES, kind=["a", "b"] * 3)


@case("nothing but identifiers, to `train`")
def _(folder: Path) -> list[str]:
    words = table(folder, "smiles", "CID", CID=[702, 1031, 241, 176, 6341, 7854])
    return ["train", words[1], "--out", str(folder / "model")]


@case("`NA`, `N/A`, `#N/A`, `None`, `null`, `nan`, `-` or nothing as a target")
def _(folder: Path) -> list[str]:
    gaps = ["NA", "N/A", "#N/A", "None", "null", "nan", "-"]
    return written(folder, "m.csv", PLAIN + "".join(f"CC,{gap}\n" for gap in gaps))


@case("`.tsv`")
def _(folder: Path) -> list[str]:
    return written(folder, "m.tsv", PLAIN.replace(",", "\t"))


@case("`.txt` with tabs")
def _(folder: Path) -> list[str]:
    return written(folder, "m.txt", PLAIN.replace(",", "\t"))


@case("`.csv` with semicolons or tabs")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", PLAIN.replace(",", "\t"))


@case("delimiter at the end of every row")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", PLAIN.replace("\n", ";\n").replace(",", ";"))


@case("`.parquet`, with the package pyarrow")
def _(folder: Path) -> list[str]:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"smiles": [row[0] for row in ROWS] + ["CC"], "y": [row[1] for row in ROWS] + [None]}
    parquet.write_table(pyarrow.table(columns), folder / "m.parquet")
    return ["lift", str(folder / "m.parquet")]


@case("`.xlsx`, with the package openpyxl; the first sheet")
def _(folder: Path) -> list[str]:
    book = pytest.importorskip("openpyxl").Workbook()
    for row in [("smiles", "y"), *ROWS, ("CC", None)]:
        book.active.append(row)
    book.create_sheet("other").append(["nothing"])
    book.save(folder / "m.xlsx")
    return ["lift", str(folder / "m.xlsx")]


@case("`.xlsx` with notes in the first sheet and a column `smiles` in the second")
def _(folder: Path) -> list[str]:
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.append(["exported on 1 May"])
    sheet = book.create_sheet("data")
    for row in (("smiles", "y"), ("CCO", 0.5), ("CCN", 1.5)):
        sheet.append(row)
    book.save(folder / "m.xlsx")
    return ["lift", str(folder / "m.xlsx")]


def respelt(folder: Path, old: bytes, new: bytes) -> list[str]:
    """A workbook with other words in its sheet."""
    book, path = pytest.importorskip("openpyxl").Workbook(), folder / "m.xlsx"
    for row in (("smiles", "y"), ("CCO", 0.5), ("CCN", 1.5), ("CCC", 2.5)):
        book.active.append(row)
    book.save(folder / "whole.xlsx")
    with zipfile.ZipFile(folder / "whole.xlsx") as whole, zipfile.ZipFile(path, "w") as packed:
        for name in whole.namelist():
            text = whole.read(name)
            assert (old in text) == name.endswith("sheet1.xml")
            packed.writestr(name, text.replace(old, new))
    return ["lift", str(path)]


@case("`.xlsx` that states a wrong size of its sheet")
def _(folder: Path) -> list[str]:
    return respelt(folder, b'ref="A1:B4"', b'ref="A1"')


@case("`.xlsx` with a row far below the last of Excel")
def _(folder: Path) -> list[str]:
    return respelt(folder, b'<row r="4"', b'<row r="9000000000"')


@case("first line `sep=;`, which tells Excel the delimiter")
def _(folder: Path) -> list[str]:
    # The commas in the names would win the count.
    return written(folder, "m.csv", "sep=;\r\nsmiles;a,b,c,d;y\r\nCCO;n;0.5\r\nCCN;m;1.5\r\n")


@case("column without any value")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", "name,smiles,y\n,CCO,0.5\nNA,CCN,1.5\n")


@case("decimal commas beside a column of names")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", "name;smiles;y\nethanol;CCO;0,5\nother;CCN;1,5\n")


@case("`.xlsx` that is no workbook")
def _(folder: Path) -> list[str]:
    pytest.importorskip("openpyxl")
    return written(folder, "m.xlsx", PLAIN)


@case("`.parquet` that is none")
def _(folder: Path) -> list[str]:
    pytest.importorskip("pyarrow")
    return written(folder, "m.parquet", PLAIN)


COMMAS = PLAIN.replace(",", ";").replace(".", ",")


@case("decimal commas")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", COMMAS)


@case("decimal commas, with `--decimal ,`")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", COMMAS, "--decimal", ",")


@case("decimal points, with `--decimal ,`")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", COMMAS + "CC;1.500\n", "--decimal", ",")


@case("cell of more than 131,072 characters")
def _(folder: Path) -> list[str]:
    return table(folder, "smiles", "note", "y", note=["long " * 40_000] + [""] * 5)


@case("quote that is never closed")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", 'smiles,y\nCC,1\n"CCO,2\nCCC,3\n')


ACCENT = "smiles,name,y\nCC,é,1.5\nCCC,è,2.5\n".replace("CC,é,1.5\n", "CC,e,1\nC,é,1.5\n")


@case("Windows-1252")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", "smiles,y\nCC,1\nCCC,é\n".encode("cp1252"))


@case("Windows-1252, with `--encoding cp1252`")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", ACCENT.encode("cp1252"), "--encoding", "cp1252")


@case("UTF-16 with a byte-order mark")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", PLAIN.encode("utf-16"))


@case("UTF-16 without a byte-order mark")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", PLAIN.encode("utf-16-le"))


@case("UTF-16, with `--encoding utf-16`")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", PLAIN.encode("utf-16"), "--encoding", "utf-16")


@case("UTF-8 with a byte-order mark")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", "\ufeff" + PLAIN)


@case("encoding that does not exist")
def _(folder: Path) -> list[str]:
    return written(folder, "m.csv", PLAIN, "--encoding", "klingon")


ODD = os.fsdecode(b"m\xfe\xe2\x80\xae.csv")


@case("name of a file that is not UTF-8, or turns the direction of a text")
def _(folder: Path) -> list[str]:
    return written(folder, ODD, PLAIN)


@case("such a name of a file that does not exist")
def _(folder: Path) -> list[str]:
    return ["lift", str(folder / ODD)]


def model_dir(folder: Path, **spoiled: torch.Tensor) -> list[str]:
    """A small model, with other weights in the place of its own."""
    tensors = load_file(made(folder / "m") / "model.safetensors")
    rewritten(folder / "m", {**tensors, **spoiled})
    return ["predict", str(folder / "m"), "MUTAG"]


@case("MODEL_DIR whose `config.json` has other sizes than its weights")
def _(folder: Path) -> list[str]:
    words = model_dir(folder)
    changed(folder / "m", network={**asdict(NetworkConfig(**SMALL)), "hidden": [3000, 3000]})
    return words


@case("MODEL_DIR with whole numbers as weights")
def _(folder: Path) -> list[str]:
    return model_dir(folder, **{"head.1.weight": torch.ones(2, 4, dtype=torch.int32)})


@case("MODEL_DIR with a weight that is NaN or infinite")
def _(folder: Path) -> list[str]:
    return model_dir(folder, **{"head.1.weight": torch.full((2, 4), torch.inf)})


@case("MODEL_DIR whose weights are cut short")
def _(folder: Path) -> list[str]:
    words, weights = model_dir(folder), folder / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    return words


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
        assert len(complaints(shown.err)) == 1
    else:
        assert code == 0, shown.err
    for words_of_it in re.findall(r"`([^`]+)`", happens):
        assert words_of_it in shown.out + shown.err


def test_no_sheet_makes_a_row_wider_than_its_cells(tmp_path: Path) -> None:
    # 10,000 rows of 16,000 cells each would be a gigabyte.
    path = tmp_path / "m.xlsx"
    respelt(tmp_path, b'r="B4"', b'r="WQJ4"')
    tracemalloc.start()
    with pytest.warns(CellAttentionWarning, match="1 molecule without a target is left out"):
        assert len(load_dataset(path)) == 2
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


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
        ({"max_bytes": 0}, "max_bytes must be a whole number of at least 1, got 0"),
    ],
)
def test_a_format_that_is_none_is_refused(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FileFormat(**wrong)  # type: ignore[arg-type]


def test_what_unpacks_to_too_much_is_refused_before_a_row_of_it_is_read(tmp_path: Path) -> None:
    packed = tmp_path / "m.csv.gz"
    packed.write_bytes(gzip.compress(b"smiles\n" + b"C\n" * (33 << 20)))
    with pytest.raises(DataError, match="more than 67,108,864 bytes"):
        MoleculeFile(packed)
