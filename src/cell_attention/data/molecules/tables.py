"""Tables of cells: a header, then rows; delimited text is read here."""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from cell_attention.data.file_format import FileFormat, require_regular
from cell_attention.data.text_file import TextFile
from cell_attention.errors import DataError

LONGEST_CELL = 2**31 - 1
"""Python's reader takes cells of up to 131,072 characters unless it is told otherwise."""

Line = tuple[int, tuple[str, ...]]
"""Number of a line from 1, and its cells as written."""

_STATED_DELIMITER = re.compile(r'"?sep=([^\w\s]|\t)"?\r?\n', re.IGNORECASE)
"""A first line that tells Excel the delimiter."""


NAMES = frozenset(
    [
        "smi",
        "mol",
        "mols",
        "molecule",
        "molecules",
        "structure",
        "structures",
        "inchi",
        "standard_inchi",
    ]
)
"""Usual names of the column of molecules, beside all that contain the word SMILES."""


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
        from cell_attention.data.molecules.spreadsheets import parquet_lines, workbook_lines

        require_regular(path)
        share = read = Share()
        lines = (workbook_lines if kind == "xlsx" else parquet_lines)(path, file_format, read)
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
    stated = _stated_header(comments, first.rstrip("\r\n"), usual) if comments else ""
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


def is_molecule_name(name: str) -> bool:
    """Whether a column of this name usually holds molecules."""
    words = re.findall("[a-z]+", name.lower())
    return "_".join(words) in NAMES or any(word.endswith("smiles") for word in words)
