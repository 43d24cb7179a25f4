"""Tables of cells: a header, then rows; delimited text is read here."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cell_attention.data.file_format import FileFormat, read_text, require_regular
from cell_attention.errors import DataError

LONGEST_CELL = 2**31 - 1
"""Python's reader takes cells of up to 131,072 characters unless it is told otherwise."""

Line = tuple[int, tuple[str, ...]]
"""Number of a line from 1, and its cells as written."""

_COMMENT = re.compile(r"#[^\r\n]*(\r\n|\r|\n|$)")
_STATED_DELIMITER = re.compile(r'"?sep=([^\w\s]|\t)"?\r?\n', re.IGNORECASE)
"""A first line that tells Excel the delimiter."""
_FIRST_LINE = re.compile(r"[^\r\n]*")


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
        from cell_attention.data.molecules.spreadsheets import parquet_lines, workbook_lines

        require_regular(path)
        lines = (workbook_lines if kind == "xlsx" else parquet_lines)(path, file_format)
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
    stated = _stated_header(comments, first[0] if first else "", usual) if comments else ""
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


def is_molecule_name(name: str) -> bool:
    """Whether a column of this name usually holds molecules."""
    words = re.findall("[a-z]+", name.lower())
    return "_".join(words) in NAMES or any(word.endswith("smiles") for word in words)
