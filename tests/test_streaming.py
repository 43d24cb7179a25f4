"""Files are read row by row: the same rows however the blocks fall, and memory that stays small."""

import gzip
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cell_attention import FileFormat
from cell_attention.data import text_file
from cell_attention.data.molecules.files import MoleculeFile
from cell_attention.data.text_file import TextFile
from cell_attention.errors import DataError

PLAIN = FileFormat()


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(st.sampled_from("aé€\n\r\U0001f600"), max_size=30),
    encoding=st.sampled_from([None, "utf-16", "utf-16-le", "utf-8-sig"]),
    block=st.integers(4, 9),
)
def test_lines_do_not_depend_on_where_blocks_are_cut(
    text: str, encoding: str | None, block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "m.smi"
    path.write_bytes(text.encode(encoding or "utf-8"))
    whole = text
    whole = whole if whole.endswith(("\n", "\r")) or not whole else whole + "\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "AT_ONCE", block)
        file = TextFile(path, FileFormat(encoding=encoding))
        lines = list(file.lines())
    assert "".join(lines) == whole
    broken = whole.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert [line.rstrip("\r\n") for line in lines] == broken[: len(lines)]
    assert len(lines) == len(broken) - 1
    assert file.share() == float(path.stat().st_size > 0)


@pytest.mark.parametrize("block", [4, 1 << 20])
def test_a_wrong_byte_is_named_by_its_line_and_place_in_any_block(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.smi"
    path.write_bytes("CCO é\nCC\n".encode() + b"CCC \xff\nC\n")
    monkeypatch.setattr(text_file, "AT_ONCE", block)
    with pytest.raises(DataError, match=r"m\.smi, line 3: not UTF-8 text \(byte 14\)"):
        list(TextFile(path, PLAIN).lines())


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".smi", ".sdf"])
def test_memory_does_not_grow_with_the_file(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {
        "csv": ("smiles,note\n", "CCCCCCCCCCO," + "x" * 80 + "\n"),
        "smi": ("", "CCCCCCCCCCO " + "x" * 80 + "\n"),
        "sdf": ("", "\n\n\n  0  0\nM  END\n> <note>\n" + "x" * 80 + "\n\n$$$$\n"),
    }
    head, row = rows[ending.split(".")[1]]

    monkeypatch.setattr(text_file, "AT_ONCE", 1 << 14)

    def peak(count: int) -> int:
        path = tmp_path / f"{count}{ending}"
        content = (head + row * count).encode()
        path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
        tracemalloc.start()
        try:
            assert sum(1 for _ in MoleculeFile(path, file_format=FileFormat(max_bytes=10**9)).rows)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    small, large = peak(1_000), peak(8_000)
    assert large < 1.1 * small
    assert large < 600_000 < 8_000 * len(row)


def test_zstd_is_read_as_gzip_is_and_damage_is_named(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    content = b"smiles,y\n" + b"CCO,1\nCCCO,2\n" * 500
    packed = pyarrow.compress(content, codec="zstd", asbytes=True)
    path, plain = tmp_path / "m.csv.zst", tmp_path / "m.csv"
    path.write_bytes(packed)
    plain.write_bytes(content)
    assert list(MoleculeFile(path).rows) == list(MoleculeFile(plain).rows)
    path.write_bytes(packed[:-3])
    with pytest.raises(DataError, match=r"m\.csv\.zst: not a readable text file"):
        list(MoleculeFile(path).rows)


def test_how_much_of_a_file_was_read_is_known_on_the_way(tmp_path: Path) -> None:
    path = tmp_path / "m.smi"
    path.write_text("CCO name\n" * 500_000)
    file = MoleculeFile(path)
    for done, _ in enumerate(file.rows, 1):
        if done == 300_000:
            break
    assert file.expected(done) == pytest.approx(500_000, rel=0.3)
