"""Thousands of mutated files: each ends in an answer for every row, or in one line that says why.

`make test-fuzz` runs ten thousand of them.
"""

import csv
import gzip
import hashlib
import io
import random
import re
import shutil
import time
import tracemalloc
import zipfile
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import pytest

from cell_attention import load_dataset
from cell_attention.cli.entry import run as run_words
from cell_attention.data.file_format import FileFormat
from cell_attention.data.molecules.files import MoleculeFile
from cell_attention.data.molecules.molecule import read_molecule
from cell_attention.errors import CellAttentionError, MoleculeError
from cell_attention.inference.chunks import molecule_chunks as chunks
from cell_attention.inference.model_folder import WEIGHTS, load_model
from test_tu import FILES

PARTS = 10
"""Tests that share the work, so that they can run side by side."""
SECONDS = 10.0

SEEDS = [
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "C[C@H](N)C(=O)O", "[Na+].[Cl-]",
    "F/C=C/F", "c1ccc2c(c1)ccc3c2ccc4c5ccccc5ccc43", "C1CC2CCC1C2", "[2H]C([2H])[2H]",
    "O=[N+]([O-])c1ccccc1", "C->[Cu]", "*C", "CC>>CO", "C%12CCCCC%12", "[13CH4]", "C" * 80,
    "InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3", "C12C3C4C1C5C2C3C45", "[Fe+2]", "B1OB1", "P(=O)(O)(O)O",
]  # fmt: skip
PIECES = [
    *"CNOSPFIBrclnos()[]=#$:/\\@+-.%0123456789*>~,;\"'\t \n\x00é\u2028",
    "[nH]", "c1ccccc1", "(((", ")))", "C1CCC1", "%99", "[C@@H]", "\r\n", "\r", '"', '""', ",,",
    "$$$$", "> <x>", "M  END", "nan", "1e999", "InChI=", "[999C]", "=" * 50, "1" * 40,
]  # fmt: skip

BLOCK = """title
  made

  3  3  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0
    1.0000    0.0000    0.0000 C   0  0
    2.0000    0.0000    0.0000 O   0  0
  1  2  1  0
  2  3  1  0
  1  3  1  0
M  END
> <y>
1.5

$$$$
"""


def mutated(text: str, draw: random.Random) -> str:
    """A few pieces of the text deleted, doubled, swapped or put in."""
    for _ in range(draw.choice([0, 1, 1, 2, 3, 8])):
        place = draw.randrange(len(text) + 1)
        end = min(len(text), place + draw.choice([1, 1, 2, 5, 20]))
        middle = draw.choice(["", text[place:end] * 2, draw.choice(PIECES), text[place:end][::-1]])
        text = text[:place] + middle + text[end:]
    return text


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fuzz")
    rows = [f"{'C' * n}O,{n % 2}" for n in range(1, 41)]
    (place / "t.csv").write_text("\n".join(["smiles,y", *rows]) + "\n")
    words = ["train", str(place / "t.csv"), "--out", str(place / "m"), "--hidden", "2", "--heads",
             "1", "--epochs", "1", "--quiet"]  # fmt: skip
    assert run_words(words) == 0
    return place / "m"


@pytest.mark.parametrize("part", range(PARTS))
def test_texts_are_molecules_or_have_a_reason(part: int, pytestconfig: pytest.Config) -> None:
    draw = random.Random(part)
    read = reasons = 0
    for _ in range(pytestconfig.getoption("--fuzz") // PARTS):
        text = mutated(draw.choice(SEEDS), draw)
        began = time.monotonic()
        reason = ""
        try:
            read += read_molecule(text).GetNumAtoms() > 0
        except MoleculeError as error:
            reason = str(error)
            reasons += 1
        assert "\n" not in reason
        assert time.monotonic() - began < SECONDS, text
    assert read + reasons == pytestconfig.getoption("--fuzz") // PARTS
    assert read > 0
    assert reasons > 0


def counted(kind: str, text: str) -> int | None:
    """Rows of a file, counted without the reader; None where quotes make that hard."""
    lines = re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))
    full = [line for line in lines if line.strip()]
    if kind == "smi":
        return len(full)
    if kind == "csv":
        if '"' in text or (full[:1] and full[0].startswith("#")):  # a comment may be the header
            return None
        # Separators alone are a blank row too; the first line says which one separates.
        separator = max(",;\t", key=lines[0].count)
        full = [line for line in full if line.replace(separator, "").strip()]
        return max(0, len(full) - 1)
    records = re.split(r"^\$\$\$\$.*$", "\n".join(lines), flags=re.MULTILINE)
    return len(records) - (not records[-1].strip())


@pytest.mark.parametrize("part", range(PARTS))
def test_files_lose_no_row(
    part: int, model_dir: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    draw, model = random.Random(100 + part), load_model(model_dir)
    files = max(1, pytestconfig.getoption("--fuzz") // PARTS)
    refused = 0
    for number in range(files):
        kind = ("csv", "smi", "sdf")[number % 3]
        rows = [draw.choice(SEEDS[:15]) for _ in range(draw.randrange(1, 5))]
        if kind == "sdf":
            text = BLOCK * len(rows)
        else:
            text = "".join(f"{row},{draw.random():.2f}\n" for row in rows)
            text = f"smiles,y\n{text}" if kind == "csv" else text.replace(",", " ")
        written = mutated(text, draw)
        path = tmp_path / f"f.{kind}"
        path.write_bytes(written.encode("utf-8", "surrogatepass"))
        began, complaint = time.monotonic(), str(path)
        try:
            listed = [row.line for row in MoleculeFile(path).rows]
            answered = []
            for chunk in chunks(model, MoleculeFile(path)):
                for row, place, reason in zip(chunk.rows, chunk.place, chunk.reasons, strict=True):
                    assert (place is None) == bool(reason)
                    answered.append(row.line)
            assert answered == listed
            expected = counted(kind, written)
            assert expected is None or len(listed) == expected
        except CellAttentionError as error:
            refused, complaint = refused + 1, str(error)
        assert str(path) in complaint
        assert time.monotonic() - began < SECONDS, written
    assert refused < files


@pytest.mark.parametrize("part", range(PARTS))
def test_the_command_line_ends_in_one_line_or_in_predictions(
    part: int, model_dir: Path, tmp_path: Path, pytestconfig: pytest.Config,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    draw = random.Random(200 + part)
    for _ in range(max(1, pytestconfig.getoption("--fuzz") // 500)):
        rows = "".join(f"{draw.choice(SEEDS)},{draw.randrange(2)}\n" for _ in range(4))
        path = tmp_path / "f.csv"
        path.write_bytes(mutated(f"smiles,y\n{rows}", draw).encode("utf-8", "surrogatepass"))
        code = run_words(["predict", str(model_dir), str(path)])
        said = capsys.readouterr()
        assert code in (0, 2)
        complaints = [line for line in said.err.splitlines() if not line.startswith("note: ")]
        assert len(complaints) == (code == 2)
        if code == 0 or "more than half" in complaints[0]:
            listed = sum(1 for _ in MoleculeFile(path).rows)
            assert len(list(csv.reader(io.StringIO(said.out)))) == listed + 1


def damaged(content: bytes, draw: random.Random) -> bytes:
    """A few bytes of a file changed, doubled, dropped or put in, or its end cut off."""
    for _ in range(draw.choice([0, 1, 1, 2, 3, 8])):
        place = draw.randrange(len(content) + 1)
        end = min(len(content), place + draw.choice([1, 1, 2, 5, 20, 200]))
        middle = draw.choice(
            [b"", content[place:end] * 2, draw.randbytes(end - place), draw.choice(PIECES).encode()]
        )
        content = content[:place] + middle + content[end:]
    return content[: draw.randrange(len(content) + 1)] if draw.random() < 0.1 else content


def zipped(draw: random.Random) -> bytes:
    """A TU set in an archive, its texts damaged now and then, in folders of any name."""
    packed = io.BytesIO()
    stem = draw.choice(["T//T", "T/raw/T", "T/T", "T", "../T", "/T", "T/../T"])
    with zipfile.ZipFile(packed, "w", draw.choice([0, zipfile.ZIP_DEFLATED])) as archive:
        for name, text in FILES.items():
            found = mutated(text, draw) if draw.random() < 0.2 else text
            archive.writestr(f"{stem}_{name}.txt", found)
    return packed.getvalue()


TABLE = "id,{},y\n" + "".join(f"{n},{text},{n / 7}\n" for n, text in enumerate(SEEDS[:11]))


def listed_table(draw: random.Random) -> bytes:
    """A table with any separator, names, comments and encoding."""
    text = TABLE.format(draw.choice(["smiles", "SMILES", "cpd", "mol", ""]))
    text = text.replace(",", draw.choice([",", ";", "\t"]))
    text = draw.choice(["", "# a comment\n", "#", "\ufeff"]) + mutated(text, draw)
    return text.encode(draw.choice(["utf-8", "utf-8", "utf-16", "cp1252", "utf-16-le"]), "replace")


def workbook(kind: str) -> bytes:
    """A small .xlsx or .parquet."""
    made = io.BytesIO()
    rows = [(text, n / 7) for n, text in enumerate(SEEDS[:11])]
    if kind == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in [("smiles", "y"), *rows]:
            book.active.append(row)
        book.save(made)
    else:
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"smiles": [row[0] for row in rows], "y": [row[1] for row in rows]}
        parquet.write_table(pyarrow.table(columns), made)
    return made.getvalue()


def damaged_inside(book: bytes, draw: random.Random) -> bytes:
    """A workbook with one of its texts damaged, which the compression would hide."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(made, "w") as new:
        names = old.namelist()
        chosen = draw.choice([name for name in names if "sheet" in name])
        for name in names:
            content = old.read(name)
            new.writestr(name, damaged(content, draw) if name == chosen else content)
    return made.getvalue()


@pytest.mark.filterwarnings("ignore")  # what was repaired, and what the packages say
@pytest.mark.parametrize("kind", ["zip", "csv", "tsv", "txt", "csv.gz", "xlsx", "parquet"])
def test_damaged_files_are_read_or_refused_in_one_line(
    kind: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    draw, path = random.Random(kind), tmp_path / f"f.{kind}"
    whole = workbook(kind) if kind in ("xlsx", "parquet") else b""
    read = load_dataset("MUTAG")[:0].num_complexes  # compiles the kernels, which takes a while
    before = getrusage(RUSAGE_SELF).ru_maxrss
    for _ in range(pytestconfig.getoption("--fuzz-files")):
        content = damaged_inside(whole, draw) if kind == "xlsx" else whole
        content = content or (zipped(draw) if kind == "zip" else listed_table(draw))
        if kind == "csv.gz":
            content = gzip.compress(content)
        path.write_bytes(content if draw.random() < 0.3 else damaged(content, draw))
        size, began = FileFormat(max_bytes=1 << 20), time.monotonic()
        tracemalloc.start()
        complaint = path.name
        try:
            graphs = load_dataset(path, on_error="skip", file_format=size)
            read += len(graphs) > 0
        except CellAttentionError as error:
            complaint = str(error)
        assert "\n" not in complaint
        assert path.name in complaint
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert time.monotonic() - began < SECONDS, content
        assert most < 100 << 20, content
    # Kilobytes that the process has ever held, with what the packages take for themselves.
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 1 << 20
    assert read > 0


def test_damaged_model_folders_are_read_or_refused_in_one_line(
    model_dir: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    draw, refused = random.Random(7), 0
    config, weights = ((model_dir / name).read_bytes() for name in ("config.json", WEIGHTS))
    folder = tmp_path / "m"
    shutil.copytree(model_dir, folder)
    length = 8 + int.from_bytes(weights[:8], "little")
    for number in range(max(30, pytestconfig.getoption("--fuzz") // PARTS)):
        text, spoiled = config.decode(), weights
        if number % 2:  # the header, with a digest that fits
            header = mutated(weights[8:length].decode(), draw).encode("utf-8", "surrogatepass")
            size = (
                len(header) if draw.random() < 0.8 else draw.getrandbits(draw.choice([8, 20, 60]))
            )
            spoiled = size.to_bytes(8, "little") + header + weights[length:]
            digest = hashlib.sha256(spoiled).hexdigest()
            text = re.sub(r'("weights_sha256": ")[0-9a-f]+', rf"\g<1>{digest}", text)
        else:
            text = mutated(text, draw)
        (folder / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        (folder / WEIGHTS).write_bytes(spoiled)
        began, complaint = time.monotonic(), ""
        try:
            load_model(folder)
        except CellAttentionError as error:
            refused, complaint = refused + 1, str(error)
        assert "\n" not in complaint
        assert time.monotonic() - began < SECONDS
    assert refused
