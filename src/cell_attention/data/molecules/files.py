"""Files of molecules: tables with a header, .smi with one per line, .sdf; also compressed.

A file is read row by row, and never held in memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from rdkit import Chem

from cell_attention.data.file_format import TABLES, Columns, Decimal, FileFormat, unpacked
from cell_attention.data.molecules.molecule import read_block, read_molecule
from cell_attention.data.molecules.records import read_records
from cell_attention.data.molecules.tables import Line, read_table
from cell_attention.data.text_file import TextFile
from cell_attention.errors import InputError, MoleculeError


@dataclass(frozen=True)
class Row:
    """One row of a file: the molecule as written, and all cells."""

    line: int
    """Line in the file, counted from 1; in an .sdf the number of the record."""
    text: str
    """SMILES, InChI or the molecule block of an .sdf."""
    cells: tuple[str, ...]
    """All cells in the order of the header, as written."""


@dataclass(frozen=True)
class RowReader:
    """Reads the molecules of rows, also in another process than that which reads the file."""

    path: Path
    header: tuple[str, ...]
    """Names of the columns."""
    place: str
    """What a row of the file is called: "line", or "record" of an .sdf."""
    decimal: Decimal = "."

    def molecule(self, row: Row) -> Chem.Mol:
        """Read the molecule of a row with RDKit; raise `MoleculeError` if that fails."""
        if len(row.cells) != len(self.header):
            raise MoleculeError(f"{len(self.header)} cells are expected, got {len(row.cells)}")
        if self.place == "record":
            return read_block(row.text)
        return read_molecule(row.text)

    def column(self, flag: str, name: str) -> int:
        """Look up the index of a column in the header."""
        count = self.header.count(name)
        if count != 1:
            fault = "not unique" if count else f"not a column; it has {', '.join(self.header)}"
            raise InputError(f"{self.path}: {flag} {name!r} is {fault}")
        return self.header.index(name)

    def numbers(self, row: Row, names: Sequence[str]) -> list[float]:
        """Return the cells of these columns as numbers; NaN for a cell that is not one."""
        from cell_attention.data.molecules.target_columns import plain_number
        from cell_attention.data.targets import cell_number

        cells = [row.cells[self.column("descriptors", name)] for name in names]
        return [cell_number(plain_number(cell.strip(), self.decimal)) for cell in cells]


class MoleculeFile:
    """An open file of molecules: its header, and its rows one by one.

    A row is not checked before `molecule` reads it; no row is lost.
    usual: the name of the column of molecules in the training data, for a table.
    """

    def __init__(
        self,
        path: Path,
        columns: Columns = Columns(),  # noqa: B008 - frozen, so sharing one is safe
        file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
        *,
        usual: str = "",
    ) -> None:
        TextFile(path, file_format).require_bounded()
        kind = unpacked(path.name.lower()).rpartition(".")[2]
        self.path, self._columns, self.remark = path, columns, ""
        self._decimal = file_format.decimal
        self.is_table = f".{kind}" in TABLES
        self.molecules: str = ""
        """The name of the column of molecules of a table."""
        self.share: Callable[[], float]
        """Which share of the file has been read; 0 if that is not known."""
        self.reader: RowReader
        self.rows: Iterator[Row]
        """Every row that is not blank, once."""
        if self.is_table:
            self.rows = self._table(kind, file_format, usual)
        else:
            self.rows = self._text(kind, file_format)
        stated = columns.split
        self.split = None if stated is None else self.reader.column("split_column", stated)

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.reader.header

    def expected(self, done: int) -> int:
        """Estimate the number of rows, of which `done` were read; `done` if nothing is known."""
        return max(done, round(done / (self.share() or 1.0)))

    def _read_by(self, header: tuple[str, ...], place: str = "line") -> None:
        self.reader = RowReader(self.path, header, place, self._decimal)

    def _table(self, kind: str, file_format: FileFormat, usual: str) -> Iterator[Row]:
        """Open a table, and find its column of molecules."""
        table, stated = read_table(self.path, kind, file_format), self._columns.smiles
        self.share = table.share
        self._read_by(table.header)
        first: list[Line] = []
        if stated is not None and table.header:
            place = self.reader.column("smiles_column", stated)
        elif usual and table.header.count(usual) == 1:
            place = table.header.index(usual)
        else:
            from cell_attention.data.molecules import molecule_column as by_content

            first = list(islice(table.rows, by_content.SAMPLE))
            by_content.require_header(self.path, table.line, table.header)
            cells = [row for _, row in first]
            place, self.remark = by_content.molecule_column(self.path, table.header, cells)
        self.molecules = table.header[place] if table.header else ""
        return (
            Row(line, cells[place].strip() if place < len(cells) else "", cells)
            for line, cells in chain(first, table.rows)
        )

    def _text(self, kind: str, file_format: FileFormat) -> Iterator[Row]:
        """Open an .sdf or .smi file."""
        if self._columns.smiles is not None:
            raise InputError(
                f"{self.path}: smiles_column is for .csv files and other tables, "
                f"got {self._columns.smiles!r}"
            )
        file = TextFile(self.path, file_format)
        self.share = file.share
        if kind == "sdf":
            header, records = read_records(file.plain_lines)
            self._read_by(header, "record")
            return (Row(*record) for record in records)
        self._read_by(("smiles", "name"))
        return _smi(file.plain_lines())

    def targets(self) -> tuple[int, ...]:
        """Return the indices of the columns that may be predicted; each may be named once."""
        columns = self._columns
        if columns.targets is not None:
            for name in columns.targets:
                taken = (self.molecules, columns.split, *(columns.descriptors or ()))
                if columns.targets.count(name) > 1 or name in taken:
                    raise InputError(f"{self.path}: target_columns {name!r} is named twice")
            return tuple(self.reader.column("target_columns", name) for name in columns.targets)
        if not self.is_table:
            return ()
        # A column without a name is the index that pandas writes.
        taken = (columns.split, self.molecules, "", *(columns.descriptors or ()))
        chosen = tuple(i for i, name in enumerate(self.header) if name not in taken)
        for place in chosen:
            self.reader.column("target_columns", self.header[place])  # refuses a duplicate name
        return chosen


def _smi(lines: Iterable[str]) -> Iterator[Row]:
    for line, written in enumerate(lines, 1):
        first, *rest = written.split(maxsplit=1) or [""]
        if first and not (line == 1 and first.lower() in ("smiles", "smi")):
            yield Row(line, first, (first, rest[0].strip() if rest else ""))


def read_smiles(path: Path) -> list[str]:
    """Read the molecules of a file as text, unchecked."""
    return [row.text for row in MoleculeFile(path).rows]
