"""Tables of cells: delimited text, workbooks (.xlsx) and .parquet; a header, then rows."""

import csv
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from cell_attention._files import UNREADABLE
from cell_attention.data.contents import require_regular
from cell_attention.data.file_format import FileFormat
from cell_attention.data.molecules.molecule_column import SAMPLE, is_molecule_name
from cell_attention.data.text_file import TextFile
from cell_attention.errors import DataError, InputError

LONGEST_CELL = 2**31 - 1
"""Python's reader takes cells of up to 131,072 characters unless it is told otherwise."""

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
"""Of a sheet, in Excel."""

Line = tuple[int, tuple[str, ...]]
"""Number of a line from 1, and its cells as written."""

_STATED_DELIMITER = re.compile(r'"?sep=([^\w\s]|\t)"?\r?\n', re.IGNORECASE)
"""A first line that tells Excel the delimiter."""


@dataclass
class Share:
    """Counts the rows of a file that says how many it has."""

    done: int = 0
    rows: int = 0

    def __call__(self) -> float:
        """Return which share was read; 0 if that is not known."""
        return min(1.0, self.done / self.rows) if self.rows else 0.0


@dataclass(frozen=True)
class Table:
    """The header of a table, and its rows that are not blank, which can be read once."""

    header: tuple[str, ...]
    line: int
    """Line of the header."""
    rows: Iterator[Line]
    share: Callable[[], float]
    """Which share of the file has been read so far."""


def read_table(path: Path, kind: str, file_format: FileFormat) -> Table:
    """Read a table; `kind` is the ending of its name."""
    share: Callable[[], float]
    if kind in ("xlsx", "parquet"):
        require_regular(path)
        read = Share()
        if kind == "xlsx":
            lines, share = _workbook(path, file_format), read
        else:
            lines, share = _parquet(path, file_format, read), read
    else:
        file = TextFile(path, file_format)
        lines, share = _delimited(path, file.lines(), "\t" if kind == "tsv" else ","), file.share
    rows = ((line, cells) for line, cells in lines if any(cell.strip() for cell in cells))
    line, header = next(rows, (0, ()))
    header = tuple(name.strip() for name in header)
    width = len(header)
    return Table(header, line, ((line, _trimmed(cells, width)) for line, cells in rows), share)


def _trimmed(cells: tuple[str, ...], width: int) -> tuple[str, ...]:
    """Drop blank cells beyond the header, which a delimiter at the end of every line makes."""
    while len(cells) > width and not cells[-1].strip():
        cells = cells[:-1]
    return cells


def _delimited(path: Path, written: Iterator[str], usual: str) -> Iterator[Line]:
    """Yield the rows of delimited lines; comments before the table may hold its header."""
    comments: list[str] = []
    first = next(written, "")
    while first.startswith("#"):
        comments.append(first.strip("# \t\r\n"))
        first = next(written, "")
    chosen = None if comments else _STATED_DELIMITER.fullmatch(first)
    first = next(written, "") if chosen else first
    stated = _stated_header(comments, first.rstrip("\r\n"), usual)
    delimiter = _delimiter(stated or first.rstrip("\r\n"), usual)
    delimiter = chosen[1] if chosen else delimiter
    width = 0
    if stated:
        names = next(csv.reader([stated], delimiter=delimiter))
        width = len(names)
        yield len(comments), tuple(names)
    # Strict: a quote that is never closed would swallow the rows after it.
    reader = csv.reader(chain([first], written), delimiter=delimiter, strict=True)
    line = before = len(comments) + (chosen is not None)
    while True:
        line = before + reader.line_num + 1
        try:
            cells = _next(reader)
        except csv.Error as error:
            raise DataError(f"{path}, line {line}: {error}") from None
        if cells is None:
            return
        if not (comments and cells and cells[0].startswith("#")):
            yield line, tuple(_joined(cells, width, delimiter) if width else cells)


def _joined(cells: list[str], width: int, delimiter: str) -> list[str]:
    """Join what is beyond the names of a comment: notes, in which delimiters are not quoted."""
    while len(cells) > width and not cells[-1].strip():
        cells = cells[:-1]
    return [*cells[: width - 1], delimiter.join(cells[width - 1 :])] if cells[width:] else cells


def _next(reader: Any) -> list[str] | None:
    """Return the next row; cells may be long, without a change of the limit for other programs."""
    limit = csv.field_size_limit(LONGEST_CELL)
    try:
        cells: list[str] | None = next(reader, None)
        return cells
    finally:
        csv.field_size_limit(limit)


def _delimiter(line: str, usual: str) -> str:
    """Return the delimiter that is most frequent in a line."""
    return max((usual, ",", ";", "\t"), key=line.count)


def _stated_header(comments: list[str], first: str, usual: str) -> str:
    """Return the comment that names the columns, as in FreeSolv; empty if the table has a header
    of its own.
    """
    if any(map(is_molecule_name, first.split(_delimiter(first, usual)))):
        return ""
    for comment in reversed(comments):
        delimiter = _delimiter(comment, usual)
        names = comment.split(delimiter)
        width = len(first.rstrip(delimiter).split(delimiter))
        if any(map(is_molecule_name, names)) and 1 < len(names) <= width + 2:
            return comment
    return ""


def _workbook(path: Path, file_format: FileFormat) -> Iterator[Line]:
    """Yield the rows of the first sheet that names a column of molecules, else of the first one."""
    openpyxl = _package("openpyxl", path)
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        _require_size(path, size, file_format)
        with path.open("rb") as file:  # which openpyxl does not close
            sheets = openpyxl.load_workbook(file, read_only=True, data_only=True).worksheets
            sheet = next(filter(_names_molecules, sheets), sheets[0])
            width = next(filter(None, map(len, _sheet_rows(sheet, MOST_COLUMNS, SAMPLE))), 0)
            # One cell more, so that one beyond all names is an error and not lost.
            for line, cells in enumerate(_sheet_rows(sheet, width + 1, MOST_ROWS + 1), 1):
                if line > MOST_ROWS:
                    raise DataError(
                        f"{path}: there is a row beyond {MOST_ROWS:,}, the last of Excel"
                    )
                yield line, (*cells, *("",) * (width - len(cells)))
    except DataError:
        raise
    except (*UNREADABLE, ValueError, TypeError, AttributeError, IndexError, SyntaxError) as error:
        raise DataError(f"{path}: not a readable workbook ({_short(error)})") from None


def _sheet_rows(sheet: Any, width: int, count: int) -> Iterator[tuple[str, ...]]:
    """Yield the first cells of the first rows of a sheet, up to the last that is not empty. It does
    not matter what the sheet says of its own size, which may be wrong, nor where it says that its
    cells are.
    """
    sheet.reset_dimensions()
    for cells in sheet.iter_rows(max_row=count, max_col=width, values_only=True):
        last = next((end for end in range(len(cells), 0, -1) if cells[end - 1] is not None), 0)
        yield tuple(map(_written, cells[:last]))


def _names_molecules(sheet: Any) -> bool:
    """Whether the first row of a sheet has the name of a column of molecules."""
    return any(map(is_molecule_name, next(_sheet_rows(sheet, MOST_COLUMNS, 1), ())))


def _parquet(path: Path, file_format: FileFormat, share: Share) -> Iterator[Line]:
    """Yield the header and the rows of a .parquet file."""
    parquet = _package("pyarrow.parquet", path)
    try:
        with parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            size = sum(group.total_byte_size for group in groups)
            _require_size(path, size, file_format, streamed=True)
            share.rows = file.metadata.num_rows
            yield 1, tuple(file.schema_arrow.names)
            line = 2
            for batch in file.iter_batches(batch_size=4096):
                columns = [column.to_pylist() for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    yield line, tuple(map(_written, cells))
                    line += 1
                share.done += batch.num_rows
    except DataError:
        raise
    except (*UNREADABLE, ValueError, TypeError) as error:
        raise DataError(f"{path}: not a readable .parquet file ({_short(error)})") from None


def _short(error: Exception) -> str:
    """Return what a package says, in one line."""
    return " ".join(str(error).split())[:200]


def _require_size(
    path: Path, size: int, file_format: FileFormat, *, streamed: bool = False
) -> None:
    limit = file_format.most_bytes(path.stat().st_size, streamed=streamed)
    if size > limit:
        raise DataError(f"{path}: unpacks to more than {limit:,} bytes; max_bytes allows more")


def _package(name: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = name.split(".")[0]
        raise InputError(
            f"{path}: reading {path.suffix} needs {package}: pip install 'cell-attention[tables]'"
        ) from None


def _written(value: object) -> str:
    """Write the value of a cell as text."""
    return "" if value is None else str(value)
