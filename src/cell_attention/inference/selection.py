"""Which rows of a table are kept: those that fulfil conditions, and of these the best."""

import heapq
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from cell_attention.errors import InputError
from cell_attention.inference.computed import Cells

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": ge, "<=": le, "!=": ne, "==": eq, ">": gt, "<": lt, "=": eq,
}  # fmt: skip
_OPERATOR = re.compile("|".join(_OPERATORS))
_NOT_RANKED = re.compile(r"(^|_)(low|high|spread|nearest_similarity)$")
"""The ends of prediction columns that are not predictions themselves."""


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a number or, for = and !=, with a text."""

    column: int
    operator: str
    value: str

    @classmethod
    def of(cls, text: str, header: Sequence[str]) -> "Condition":
        """Read a condition such as `COLUMN>0.5`; the name of a column may hold such signs too."""
        for found in _OPERATOR.finditer(text):
            name, value = text[: found.start()].strip(), text[found.end() :].strip()
            if name not in header:
                continue
            if found[0] not in ("=", "==", "!=") and math.isnan(_number(value)):
                raise InputError(f"filter must compare with a number, got {text!r}")
            return cls(_column("filter", name, header), found[0], value)
        raise InputError(
            f"filter must be COLUMN>NUMBER, or with <, >=, <=, = or !=, of a column of the output "
            f"({', '.join(header)}); got {text!r}"
        )

    def holds(self, cells: Cells) -> bool:
        """Whether a row fulfils it; a blank cell never does."""
        cell = cells[self.column].strip()
        if not cell:
            return False
        compare, left, right = _OPERATORS[self.operator], _number(cell), _number(self.value)
        if not math.isnan(right):
            return not math.isnan(left) and compare(left, right)
        return compare(cell, self.value)


@dataclass(frozen=True)
class Selection:
    """The rows that are kept."""

    conditions: tuple[Condition, ...] = ()
    top: int | None = None
    """How many of the best rows are kept; None keeps all."""
    column: int = 0
    """The column by which they are ranked."""
    lowest: bool = False
    """Whether the lowest values are the best."""

    @classmethod
    def of(
        cls,
        header: Sequence[str],
        made: Sequence[str],
        *,
        filters: Sequence[str],
        top: int | None,
        rank_by: str | None,
        lowest: bool,
    ) -> "Selection":
        """Check what was asked; made: the columns of numbers that are predicted."""
        stated = (filters,) if isinstance(filters, str) else filters
        conditions = tuple(Condition.of(text, header) for text in stated)
        if top is None:
            if rank_by is not None or lowest:
                raise InputError("rank_by and lowest need top, the number of rows to keep")
            return cls(conditions)
        if top < 1:
            raise InputError(f"top must be at least 1, got {top}")
        if rank_by is None:
            rank_by = _only([name for name in made if not _NOT_RANKED.search(name)])
        return cls(conditions, top, _column("rank_by", rank_by, header), lowest)

    def kept(self, rows: Iterable[Cells]) -> Iterable[Cells]:
        """Return the rows that fulfil all conditions."""
        return (row for row in rows if all(one.holds(row) for one in self.conditions))

    def best(self, rows: Iterable[Cells]) -> list[Cells]:
        """Return the best rows, the best first; of equal ones that which comes first. Rows without
        a number are never among them.
        """
        sign = 1.0 if self.lowest else -1.0
        ranked = ((sign * _number(row[self.column]), row) for row in rows)
        numbers = ((value, place, row) for place, (value, row) in enumerate(ranked))
        known = (one for one in numbers if not math.isnan(one[0]))
        return [row for _, _, row in heapq.nsmallest(self.top or 0, known)]

    def chosen(self, rows: Iterable[Cells]) -> Iterable[Cells]:
        """Return the rows that are kept of a whole table."""
        kept = self.kept(rows)
        return kept if self.top is None else self.best(kept)


def _number(cell: str) -> float:
    """Read a number; NaN if it is none."""
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _column(flag: str, name: str, header: Sequence[str]) -> int:
    count = list(header).count(name)
    if count != 1:
        fault = "not unique" if count else f"not a column; the output has {', '.join(header)}"
        raise InputError(f"{flag} {name!r} is {fault}")
    return list(header).index(name)


def _only(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise InputError(
            f"top needs rank_by, because there are several predictions: {', '.join(names)}"
        )
    return names[0]
