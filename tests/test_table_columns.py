"""Columns of tables: the one of the molecules, those to predict, and what a model remembers."""

import csv
import io
import json
import os
import sys
from pathlib import Path

import pytest

from cell_attention import CellComplex, load_model, predict
from cell_attention.cli.entry import run
from cell_attention.data.file_format import Columns, FileFormat
from cell_attention.data.molecules.files import MoleculeFile
from cell_attention.data.molecules.molecule_column import molecule_column
from cell_attention.data.molecules.molecule_set import read_molecules
from cell_attention.data.molecules.tables import is_molecule_name
from cell_attention.data.molecules.target_columns import chosen_targets
from cell_attention.data.targets import read_targets
from cell_attention.errors import DataError, InputError

CHAINS = ["C" * n + "O" * (n % 3 > 0) for n in range(1, 31)]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("columns")
    rows = "".join(f"m{n},{text},{n / 2}\n" for n, text in enumerate(CHAINS))
    (place / "t.csv").write_text(f"name,cpd,y\n{rows}")
    words = ["train", str(place / "t.csv"), "--out", str(place / "m"), "--hidden", "2", "--heads",
             "1", "--epochs", "1", "--quiet"]  # fmt: skip
    assert run(words) == 0
    return place / "m"


@pytest.mark.parametrize(
    ("header", "row", "column"),
    [
        (["y", "SMILES"], ["1", "CC"], "SMILES"),
        (["smiles", "canonical_smiles", "inchi"], ["CC", "CC", "InChI=1S/CH4/h1H4"], "smiles"),
        (["mol", "smiles"], ["ethane", "CC"], "smiles"),
        (["Molecule", "Structure"], ["aspirin", "CC(=O)O"], "Structure"),
        (["Ligand SMILES", "target"], ["CC", "NO"], "Ligand SMILES"),
        (["structure", "code"], ["unknown", "c1ccccc1"], "code"),
        (["CanonicalSmiles", "y"], ["CC", "1"], "CanonicalSmiles"),
        (["x", "y"], ["CC", "1"], "x"),
        (["y", "x"], ["2", "C=C"], "x"),
        (["smiles"], ["nonsense"], "smiles"),
    ],
)
def test_the_column_of_molecules_is_found(header: list[str], row: list[str], column: str) -> None:
    place, _ = molecule_column(Path("t.csv"), header, [row])
    assert header[place] == column


def test_a_word_that_could_be_a_molecule_is_not_one_for_certain() -> None:
    words = [["1", text, "2"] for text in ("NO", "CC", "NO", "NO")]
    with pytest.raises(DataError, match="no column holds molecules"):
        molecule_column(Path("t.csv"), ["y", "site", "z"], words)
    chains = [["1", text, "2"] for text in ("CO", "CC", "CCO", "CCC")]
    assert molecule_column(Path("t.csv"), ["y", "site", "z"], chains)[0] == 1
    assert not any(map(is_molecule_name, ["id", "inchikey", "molecular weight", "mol_id", ""]))


def test_several_columns_of_molecules_are_a_question() -> None:
    for header in (["smiles", "SMILES"], ["mol", "structure"], ["educt", "product"]):
        with pytest.raises(
            InputError, match="hold molecules; choose one with smiles_column"
        ) as is_:
            molecule_column(Path("t.csv"), header, [["C=C", "CC=O"]])
        assert all(repr(name) in str(is_.value) for name in header)


def chosen(**columns: list[str]) -> tuple[list[str], str]:
    """The names of the targets among some columns, and what is said."""
    rows = list(zip(*columns.values(), strict=True))
    places, notes = chosen_targets(
        Path("t.csv"), list(columns), rows, candidates=range(len(columns)), task="auto"
    )
    return [list(columns)[place] for place in places], " ".join(notes)


def test_identifiers_and_texts_are_left_out_and_named() -> None:
    values = ["1.5", "2.5", "0.5", "7", "NA", "9"]
    counted, falling = list("123456"), list("654321")
    assert chosen(y=values, CompoundID=falling, text=list("abcdef"))[0] == ["y"]
    assert "'CompoundID'" in chosen(y=values, CompoundID=falling)[1]
    assert "'text'" in chosen(y=values, text=list("abcdef"))[1]
    assert chosen(y=values, z=counted)[0] == ["y"]
    assert chosen(y=values, z=falling) == (["y", "z"], "")
    assert chosen(y=values, index=falling)[0] == ["y"]
    assert chosen(refractive_index=values, acid=falling)[0] == ["refractive_index", "acid"]
    assert chosen(z=counted)[0] == []
    assert chosen(y=[">10", "<5", "~3", "7", "8", "9.5"], cas=["50-00-0"] * 6)[0] == ["y"]
    assert chosen(a=["0", "1"] * 3, b=["1", "0"] * 3)[0] == ["a", "b"]
    assert chosen(a=["0"] * 6, b=values)[0] == ["a", "b"]


def test_a_named_column_is_learned_whatever_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles,id,Class,y\nCC,1,0,2.5\nCCC,2,1,3.5\n")
    with pytest.raises(InputError, match="'Class' holds classes and 'y' values"):
        read_molecules(path)
    assert read_molecules(path, columns=Columns(targets=("id", "y"))).target_names == ("id", "y")
    assert read_molecules(path, columns=Columns(task="regression")).target_names == ("Class", "y")


@pytest.mark.parametrize("gap", ["", "NA", "n/a", "None", "NULL", "NaN", "-", "<NA>", "#N/A"])
def test_gaps_are_missing_values_in_numbers_and_in_classes(gap: str) -> None:
    numbers = read_targets("t.csv", ("y",), [["1.5"], [gap], ["2"]])
    assert (numbers.kind, numbers.blank, numbers.faults) == ("values", (1,), {})
    texts = read_targets("t.csv", ("y",), [["yes"], [gap], ["no"], ["no"]])
    assert (texts.class_names, texts.blank) == (("no", "yes"), (1,))


def test_decimal_commas_give_the_numbers_that_points_give(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles;y\nCC;-0,25\nCCC;1e-3\nCCCC;7\nCCO;,5\n")
    found = read_molecules(path, file_format=FileFormat(decimal=",")).graphs.targets
    assert found is not None
    assert found.flatten().tolist() == pytest.approx([-0.25, 1e-3, 7.0, 0.5])


def test_a_model_remembers_the_column_of_its_molecules(model_dir: Path, tmp_path: Path) -> None:
    assert load_model(model_dir).provenance["molecule_column"] == "cpd"
    source = tmp_path / "new.csv"
    source.write_text("smiles,cpd\nnonsense,CCO\n[Q],CCC\n")
    assert predict(model_dir, source).counts["predicted"] == 2
    assert predict(model_dir, source, smiles_column="cpd").counts["predicted"] == 2
    other = tmp_path / "other.csv"
    other.write_text("n,Structure\n1,CCO\n2,CC=O\n")
    assert predict(model_dir, other).counts["predicted"] == 2


def test_metrics_know_the_decimal_sign(model_dir: Path, tmp_path: Path) -> None:
    source = tmp_path / "new.csv"
    source.write_text("cpd;y\nCCO;1,5\nCCC;2,5\nCCCC;9,5\n")
    found = predict(model_dir, source, file_format=FileFormat(decimal=",")).metrics
    points = tmp_path / "points.csv"
    points.write_text(source.read_text().replace(",", "."))
    assert found == predict(model_dir, points).metrics
    assert found["rows"] == 3


@pytest.mark.parametrize("on_error", ["report", "skip"])
def test_more_unreadable_than_readable_rows_are_an_error_after_the_predictions(
    on_error: str, model_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "new.csv", tmp_path / "out.csv"
    words = ["predict", str(model_dir), str(source), "--on-error", on_error, "--out", str(out)]
    source.write_text("cpd\nCC\n((\nCCC\n))\n")
    assert run(words) == 0
    source.write_text("cpd\nCC\n((\n))\n")
    capsys.readouterr()
    assert run(words) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("2 of 3 rows cannot be read, more than half; check --smiles-column")
    rows = list(csv.reader(io.StringIO(out.read_text())))
    assert len(rows) == (4 if on_error == "report" else 2)


@pytest.mark.parametrize(
    ("name", "package"), [("m.xlsx", "openpyxl"), ("m.parquet", "pyarrow.parquet")]
)
def test_a_missing_package_is_named(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"needs (openpyxl|pyarrow): pip install"):
        read_molecules(tmp_path / name)


def test_a_long_cell_does_not_change_the_limit_of_other_programs(tmp_path: Path) -> None:
    path, limit = tmp_path / "t.csv", csv.field_size_limit()
    path.write_text(f"smiles,note\nCC,{'a' * 200_000}\nCCC,b\n")
    rows = list(MoleculeFile(path).rows)
    assert [len(row.cells[1]) for row in rows] == [200_000, 1]
    assert csv.field_size_limit() == limit


def test_the_lines_after_comments_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("# made by hand\n#\nsmiles,y\nCC,1.5\n# a remark\nC1CC,2\n")
    with pytest.raises(DataError, match="line 6: RDKit cannot read 'C1CC'"):
        read_molecules(path)
    path.write_text("#smiles,y\nCC,1.5\nCCC,2\n")
    assert read_molecules(path).target_names == ("y",)


def test_a_table_is_the_same_in_every_form(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = [n / 2 for n in range(30)]
    text = "smiles,y\n" + "".join(f"{a},{b}\n" for a, b in zip(CHAINS, values, strict=True))
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "t.tsv").write_text(text.replace(",", "\t"))
    parquet.write_table(pyarrow.table({"smiles": CHAINS, "y": values}), tmp_path / "t.parquet")
    expected = read_molecules(tmp_path / "t.csv").graphs.targets
    for name in ("t.tsv", "t.parquet"):
        found = read_molecules(tmp_path / name)
        assert expected is not None
        assert found.graphs.targets is not None
        assert found.graphs.targets.tolist() == expected.tolist()
        assert found.molecules is not None
        assert found.molecules.lines == tuple(range(2, 32))


ODD = b"m\xfe\xe2\x80\xae.csv"
"""A file name with a byte that is not UTF-8, and one that turns the direction of a text."""


def test_a_name_that_is_no_text_is_a_name_in_every_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{text},{n % 2}\n" for n, text in enumerate(CHAINS))
    (tmp_path / os.fsdecode(ODD)).write_text(f"smiles,y\n{rows}")
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(ODD)
    folder = f"{name.removesuffix('.csv')}-model"
    small = ["--hidden", "2", "--heads", "1", "--epochs", "1", "--quiet"]
    for words in (
        ["lift", name, "--out", f"{name}.safetensors"],
        ["train", name, *small],
        ["train", name, *small],  # loads what is there
        ["predict", folder, name, "--out", f"{name}.p.csv"],
        ["predict", folder, name, "--json"],
        ["fingerprint", folder, name, "--out", f"{name}.npy"],
        ["explain", folder, name, "--out", f"{name}.html", "--top", "1", "--no-faithfulness"],
        ["crossval", name, "--model", "majority", "--folds", "3", "--out", f"{name}-run"],
        ["report", f"{name}-run"],
        ["pack", f"{name}-run", "--out", f"{name}.json"],
        ["unpack", f"{name}.json", "--out", f"{name}-again"],
    ):
        assert run(words) == 0, words
        shown = capsys.readouterr()
        assert "\u202e" not in shown.out + shown.err
        (shown.out + shown.err).encode()  # no half of a character
        if "--json" in words:
            assert json.loads(shown.out)["source"] == name
    assert len(CellComplex.load(tmp_path / f"{name}.safetensors")) == len(CHAINS)
    assert run(["lift", f"no{name}"]) == 2
    assert r"nom\xfe\u202e.csv: no such file" in capsys.readouterr().err


def test_cells_like_formulas_are_quoted_on_request(model_dir: Path, tmp_path: Path) -> None:
    cells = ["=1+1", "+cmd", "-x", "@a", " =2", "-1.5", "+3e-2", "a=b", "", "-", "=C"]
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("cpd,note\n" + "".join(f"CCO,{cell}\n" for cell in cells))
    for safe, expected in (
        (False, cells),
        (True, ["'=1+1", "'+cmd", "'-x", "'@a", "' =2", "-1.5", "+3e-2", "a=b", "", "-", "'=C"]),
    ):
        words = ["--safe-csv"] if safe else []
        for verb in ("predict", "fingerprint"):
            assert run([verb, str(model_dir), str(source), "--out", str(out), *words]) == 0
            written = csv.DictReader(io.StringIO(out.read_text()))
            assert [row["note"] for row in written] == expected
