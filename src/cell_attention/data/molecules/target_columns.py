"""The columns of a table that are worth learning, if none is named: not identifiers, not texts
beside numbers; classes beside values are a question for the user.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from cell_attention.data.file_format import MISSING, AskedTask, Decimal
from cell_attention.errors import DataError, InputError

FEWEST = 5
"""Fewer whole numbers than this are not taken as identifiers because they increase."""

_IDENTIFIERS = frozenset(
    ["id", "ids", "cid", "sid", "cas", "casrn", "uid", "uuid", "guid", "inchikey", "rowid", "molid"]
)
_COUNTERS = frozenset(["index", "idx", "no", "nr", "num", "number", "row"])
"""Names of identifiers if all numbers differ; a refractive index is something else."""
_CLASSES = frozenset(
    ["class", "classes", "label", "labels", "active", "activity", "outcome", "category", "toxic"]
)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NUMBER = re.compile(r"[<>=~≤≥ ]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"\d{1,18}")
_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class _Column:
    """What the known cells of a column are."""

    name: str
    known: tuple[str, ...]

    @property
    def numeric(self) -> bool:
        """Whether at least half of the cells are numbers."""
        return 2 * sum(map(_is_number, self.known)) >= len(self.known)

    @property
    def binary(self) -> bool:
        """Whether all are zeros and ones, and both occur."""
        return {_number(cell) for cell in self.known} == {0.0, 1.0}

    @property
    def could_be_binary(self) -> bool:
        """Whether none is anything but zero or one."""
        return {_number(cell) for cell in self.known} <= {0.0, 1.0}

    @property
    def differs(self) -> bool:
        """Whether no two cells are equal."""
        return len(set(self.known)) == len(self.known)

    @property
    def counts(self) -> bool:
        """Whether the cells are increasing whole numbers, as those of an index."""
        if len(self.known) < FEWEST or not all(map(_WHOLE.fullmatch, self.known)):
            return False
        numbers = list(map(int, self.known))
        return all(a < b for a, b in pairwise(numbers))

    @property
    def is_identifier(self) -> bool:
        """Whether the name or the cells are those of an identifier."""
        words = {word.lower() for word in _WORD.findall(self.name)}
        whole = not self.numeric or all(map(_WHOLE.fullmatch, self.known))
        named = whole and bool(words & _IDENTIFIERS)
        counter = whole and self.differs and bool(words) and words <= _COUNTERS
        return named or counter or self.counts


def chosen_targets(
    path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], *,
    candidates: Sequence[int], task: AskedTask,
) -> tuple[tuple[int, ...], tuple[str, ...]]:  # fmt: skip
    """Return the columns to predict, and notes on those that are left out.

    candidates: columns that are not the molecules, not the split, and have a name.
    """
    columns = {place: _Column(header[place], _known(rows, place)) for place in candidates}
    blank = [place for place in candidates if not columns[place].known]
    if len(blank) == len(candidates):
        blank = []  # an error of its own, when the targets are read
    names = [place for place in candidates if columns[place].is_identifier and place not in blank]
    left = [place for place in candidates if place not in (*names, *blank)]
    numbers = [place for place in left if columns[place].numeric]
    texts = [place for place in left if place not in numbers]
    notes = _left_out(columns, names, "identifiers are not learned")
    notes += _left_out(columns, blank, "columns without a value are not learned")
    for place in texts:
        require_decimal(path, header[place], columns[place].known)
    if not numbers:
        if len(texts) > 1:
            raise _several_texts(path, [columns[place] for place in texts])
        return tuple(texts), notes
    binary = [place for place in numbers if columns[place].binary]
    values = [place for place in numbers if not columns[place].could_be_binary]
    if not binary:  # then a column of zeros alone is one of values too
        values = [place for place in numbers if columns[place].known]
    classes = [place for place in texts if _is_class(columns[place])] if values else []
    if values and task == "auto" and (binary or classes):
        first, other = header[(binary + classes)[0]], header[values[0]]
        raise InputError(
            f"{path}: {first!r} holds classes and {other!r} values, which are not learned "
            "together; name the columns to predict with target_columns"
        )
    return tuple(numbers), notes + _left_out(columns, texts, "texts beside numbers are not learned")


def _known(rows: Sequence[Sequence[str]], place: int) -> tuple[str, ...]:
    cells = (row[place].strip() for row in rows)
    return tuple(cell for cell in cells if cell.lower() not in MISSING)


def _left_out(columns: dict[int, _Column], places: Sequence[int], reason: str) -> tuple[str, ...]:
    if not places:
        return ()
    names = [repr(columns[place].name) for place in places]
    listed = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    many = "s" if len(names) > 1 else ""
    return (f"column{many} {listed} left out: {reason} unless named in target_columns",)


def _several_texts(path: Path, columns: Sequence[_Column]) -> DataError:
    best = min(columns, key=lambda column: len(set(column.known)))
    listed = ", ".join(
        f"{column.name!r} ({len(set(column.known)):,} different)" for column in columns[:6]
    )
    return DataError(
        f"{path}: columns {listed} hold texts, and only one column of texts can be learned, as "
        f"classes; name it with target_columns, such as {best.name!r}"
    )


def _is_class(column: _Column) -> bool:
    """Whether a column of texts has the name of classes, and few different texts."""
    words = {word.lower() for word in _WORD.findall(column.name)}
    return bool(words & _CLASSES) and 2 * len(set(column.known)) <= len(column.known)


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _number(cell: str) -> float | None:
    return float(cell) if _is_number(cell) and cell[0] not in "<>=~≤≥ " else None


def plain_number(cell: str, decimal: Decimal) -> str:
    """Return a number with a decimal point; a text that is none stays what it is."""
    if decimal == ".":
        return cell
    text = cell.strip()
    if _COMMA.fullmatch(text):
        return text.replace(",", ".")
    return f"{text} (with a point, not a comma)" if _POINT.fullmatch(text) else cell


def require_decimal(path: Path, name: str, cells: Sequence[str]) -> None:
    """Refuse a column of numbers with decimal commas where points are expected."""
    known = [cell for cell in map(str.strip, cells) if cell.lower() not in MISSING]
    commas = [cell for cell in known if _COMMA.fullmatch(cell)]
    if commas and 2 * sum(_is_number(cell) or cell in commas for cell in known) > len(known):
        raise DataError(
            f"{path}: column {name!r} holds numbers with decimal commas, such as {commas[0]!r:.40};"
            " try decimal=,"
        )
