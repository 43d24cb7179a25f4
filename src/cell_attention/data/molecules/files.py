"""Files of molecules: .csv with a header, .smi with one per line, .sdf; also gzipped."""

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rdkit import Chem

from cell_attention._files import UNREADABLE
from cell_attention.data.dataset import Columns
from cell_attention.data.molecules.molecule import MoleculeError, read_block, read_molecule
from cell_attention.errors import DataError, InputError, SourceNotFoundError

MOLECULE_COLUMNS = ("smiles", "smi", "inchi", "mol", "molecule", "structure", "canonical_smiles")
"""Usual names of the column of molecules, which are not molecules themselves."""
_FIELD = re.compile(r"<(.*)>")


@dataclass(frozen=True)
class Row:
    """One row of a file: the molecule as written, and all cells."""

    line: int
    """Line in the file, counted from 1; in an .sdf the number of the record."""
    text: str
    """SMILES, InChI or the molecule block of an .sdf."""
    cells: tuple[str, ...]
    """All cells in the order of the header, as written."""


class MoleculeFile:
    """An open file of molecules: its header, and its rows one by one.

    A row is not checked before `molecule` reads it; no row is lost. With `text` the content is
    given and nothing is read; the path then only names it.
    """

    def __init__(
        self,
        path: Path,
        columns: Columns = Columns(),  # noqa: B008 - frozen
        *,
        text: str | None = None,
    ) -> None:
        self.path = path
        text = _text(path) if text is None else _ended(text.removeprefix("\ufeff"))
        kind = path.name.lower().removesuffix(".gz").rsplit(".", 1)[-1]
        self.place = "record" if kind == "sdf" else "line"
        self.rows: Iterator[Row]
        """Every row that is not blank, once."""
        if kind != "csv":
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            if columns.smiles is not None:
                raise InputError(f"{path}: smiles_column is for .csv files, got {columns.smiles!r}")
        if kind == "sdf":
            self.header, self.rows = _sdf(text)
        elif kind == "smi":
            self.header, self.rows = ("smiles", "name"), _smi(text)
        else:
            self.header, self.rows = _csv(path, text, columns)
        self.total = text.count("$$$$") if kind == "sdf" else text.count("\n")
        """Approximate number of rows."""
        self._kind, self._columns = kind, columns
        self.split = None if columns.split is None else self.column("split_column", columns.split)

    def molecule(self, row: Row) -> Chem.Mol:
        """Read the molecule of a row with RDKit; raise `MoleculeError` if that fails."""
        if len(row.cells) != len(self.header):
            raise MoleculeError(f"{len(self.header)} cells are expected, got {len(row.cells)}")
        if self.place == "record":
            return read_block(row.text)
        return read_molecule(row.text)

    def column(self, flag: str, name: str) -> int:
        """Look up the index of a column in the header."""
        return _place(self.path, self.header, flag=flag, name=name)

    def targets(self) -> tuple[int, ...]:
        """Return the indices of the columns to predict; each may be named once."""
        kind, columns = self._kind, self._columns
        molecules = columns.smiles or next(iter(self.header), None) if kind == "csv" else None
        if columns.targets is not None:
            for name in columns.targets:
                if columns.targets.count(name) > 1 or name in (molecules, columns.split):
                    raise InputError(f"{self.path}: target_columns {name!r} is named twice")
            return tuple(self.column("target_columns", name) for name in columns.targets)
        if kind != "csv":
            return ()
        # A column without a name is the index that pandas writes.
        taken = {columns.split, molecules, ""}
        chosen = tuple(i for i, name in enumerate(self.header) if name not in taken)
        for place in chosen:
            self.column("target_columns", self.header[place])  # refuses a duplicate name
        return chosen


def _text(path: Path) -> str:
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file" + (", a folder" * path.is_dir()))
    try:
        zipped = path.suffix.lower() == ".gz"
        raw = gzip.decompress(path.read_bytes()) if zipped else path.read_bytes()
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8 text (byte {error.start})") from None
    except UNREADABLE as error:
        raise DataError(f"{path}: not a readable text file ({error})") from None
    return _ended(text)


def _ended(text: str) -> str:
    """Return a text whose last line ends."""
    return text if text.endswith("\n") or not text else text + "\n"


def _place(path: Path, header: Sequence[str], *, flag: str, name: str) -> int:
    count = header.count(name)
    if count != 1:
        fault = "not unique" if count else f"not a column; it has {', '.join(header)}"
        raise InputError(f"{path}: {flag} {name!r} is {fault}")
    return header.index(name)


def _smi(text: str) -> Iterator[Row]:
    for line, written in enumerate(text.split("\n"), 1):
        first, *rest = written.split(maxsplit=1) or [""]
        if first and not (line == 1 and first.lower() in ("smiles", "smi")):
            yield Row(line, first, (first, rest[0].strip() if rest else ""))


def _csv(path: Path, text: str, columns: Columns) -> tuple[tuple[str, ...], Iterator[Row]]:
    first = text.split("\n", 1)[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    # Strict: a quote that is never closed would swallow the rows after it.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)

    def listed() -> Iterator[tuple[int, tuple[str, ...]]]:
        line = 1
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield line, tuple(row)
                line = reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}, line {line}: {error}") from None

    rows = listed()
    line, header = next(rows, (0, ()))
    header = tuple(name.strip() for name in header)
    place = _place(path, header, flag="smiles_column", name=columns.smiles) if columns.smiles else 0
    named = header and header[0].lower() in MOLECULE_COLUMNS
    if header and columns.smiles is None and not named and _is_molecule(header[0]):
        raise DataError(
            f"{path}, line {line}: a header is expected, got the molecule {header[0]!r}"
        )
    return header, (
        Row(line, row[place].strip() if place < len(row) else "", row) for line, row in rows
    )


def _is_molecule(text: str) -> bool:
    try:
        read_molecule(text)
    except MoleculeError:
        return False
    return True


def _sdf(text: str) -> tuple[tuple[str, ...], Iterator[Row]]:
    """Records end with a line $$$$; after the block come fields `> <NAME>`, lines, a blank line."""
    records = [_record(lines) for lines in _records(text)]
    names = tuple(dict.fromkeys(name for _, fields in records for name in fields))

    def listed() -> Iterator[Row]:
        for number, (block, fields) in enumerate(records, 1):
            title = block.split("\n", 1)[0].strip()
            cells = (title, *(fields.get(name, "") for name in names))
            yield Row(number, block, cells)

    return ("title", *names), listed()


def _records(text: str) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("$$$$"):
            yield lines
            lines = []
        else:
            lines.append(line)
    if any(line.strip() for line in lines):
        yield lines


def _record(lines: list[str]) -> tuple[str, dict[str, str]]:
    """Return the block, and the fields by name; values of a duplicate name are joined as
    lines.
    """
    start = next((i for i, line in enumerate(lines) if line.startswith(">")), len(lines))
    found: dict[str, list[str]] = {}
    name: str | None = None
    for line in lines[start:]:
        if name is None and line.startswith(">"):
            stated = _FIELD.search(line)
            name = stated[1].strip() if stated else line.strip("> ").strip()
            found.setdefault(name, [])
        elif name is not None and line.strip():
            found[name].append(line.rstrip())
        else:
            name = None  # a blank line ends a field
    fields = {name: "\n".join(values) for name, values in found.items()}
    return "\n".join(lines[:start]) + "\n", fields


def read_smiles(path: Path) -> list[str]:
    """Read the molecules of a file as text, unchecked."""
    return [row.text for row in MoleculeFile(path).rows]
