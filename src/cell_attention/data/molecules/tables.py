"""Tables of cells: delimited text, workbooks (.xlsx) and .parquet; a header, then rows."""

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from cell_attention._files import UNREADABLE
from cell_attention.data.contents import read_text, require_regular
from cell_attention.data.file_format import FileFormat
from cell_attention.data.molecules.molecule_column import SAMPLE, is_molecule_name
from cell_attention.errors import DataError, InputError

LONGEST_CELL = 2**31 - 1
"""Python's reader takes cells of up to 131,072 characters unless it is told otherwise."""

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
"""Of a sheet, in Excel."""

Line = tuple[int, tuple[str, ...]]
"""Number of a line from 1, and its cells as written."""

_COMMENT = re.compile(r"#[^\r\n]*(\r\n|\r|\n|$)")
_STATED_DELIMITER = re.compile(r'"?sep=([^\w\s]|\t)"?\r?\n', re.IGNORECASE)
"""A first line that tells Excel the delimiter."""
_FIRST_LINE = re.compile(r"[^\r\n]*")


@dataclass(frozen=True)
class Table:
    """The header of a table, and its rows that are not blank, which can be read once."""

    header: tuple[str, ...]
    line: int
    """Line of the header."""
    rows: Iterator[Line]
    total: int
    """Approximate number of rows."""


def read_table(path: Path, kind: str, file_format: FileFormat) -> Table:
    """Read a table; `kind` is the ending of its name."""
    if kind in ("xlsx", "parquet"):
        require_regular(path)
        lines = (_workbook if kind == "xlsx" else _parquet)(path, file_format)
        total = 0
    else:
        text = read_text(path, file_format)
        lines, total = _delimited(path, text, "\t" if kind == "tsv" else ","), text.count("\n")
    rows = ((line, cells) for line, cells in lines if any(cell.strip() for cell in cells))
    line, header = next(rows, (0, ()))
    header = tuple(name.strip() for name in header)
    width = len(header)
    return Table(header, line, ((line, _trimmed(cells, width)) for line, cells in rows), total)


def _trimmed(cells: tuple[str, ...], width: int) -> tuple[str, ...]:
    """Drop blank cells beyond the header, which a delimiter at the end of every line makes."""
    while len(cells) > width and not cells[-1].strip():
        cells = cells[:-1]
    return cells


def _delimited(path: Path, text: str, usual: str) -> Iterator[Line]:
    """Yield the lines of a delimited text; comments before the table may hold its header."""
    comments, start = [], 0
    while found := _COMMENT.match(text, start):
        comments.append(found[0].strip("# \t\r\n"))
        start = found.end()
        if start == len(text):
            break
    chosen = None if comments else _STATED_DELIMITER.match(text)
    start = chosen.end() if chosen else start
    first = _FIRST_LINE.match(text, start)
    stated = _stated_header(comments, first[0] if first else "", usual)
    delimiter = _delimiter(stated or (first[0] if first else ""), usual)
    delimiter = chosen[1] if chosen else delimiter
    width = 0
    if stated:
        names = next(csv.reader([stated], delimiter=delimiter))
        width = len(names)
        yield len(comments), tuple(names)
    # Strict: a quote that is never closed would swallow the rows after it.
    reader = csv.reader(io.StringIO(text[start:], newline=""), delimiter=delimiter, strict=True)
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


def _parquet(path: Path, file_format: FileFormat) -> Iterator[Line]:
    """Yield the header and the rows of a .parquet file."""
    parquet = _package("pyarrow.parquet", path)
    try:
        with parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            _require_size(path, sum(group.total_byte_size for group in groups), file_format)
            yield 1, tuple(file.schema_arrow.names)
            line = 2
            for batch in file.iter_batches(batch_size=4096):
                columns = [column.to_pylist() for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    yield line, tuple(map(_written, cells))
                    line += 1
    except DataError:
        raise
    except (*UNREADABLE, ValueError, TypeError) as error:
        raise DataError(f"{path}: not a readable .parquet file ({_short(error)})") from None


def _short(error: Exception) -> str:
    """Return what a package says, in one line."""
    return " ".join(str(error).split())[:200]


def _require_size(path: Path, size: int, file_format: FileFormat) -> None:
    limit = file_format.most_bytes(path.stat().st_size)
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
