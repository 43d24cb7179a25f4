"""Records of an .sdf: a molecule block, then fields."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

_FIELD = re.compile(r"<(.*)>")

Record = tuple[int, str, tuple[str, ...]]
"""Number of a record from 1, its block, and its cells: the title and every field."""


def read_records(
    lines: Callable[[], Iterable[str]],
) -> tuple[tuple[str, ...], Iterator[Record]]:
    """Records end with a line $$$$; after the block come fields `> <NAME>`, lines, a blank line.

    lines: reads the file from its beginning; it is read twice, first for the names of the fields,
        so that no more than a record is in memory.
    """

    def records() -> Iterator[tuple[str, dict[str, str]]]:
        return map(_record, _records(lines()))

    names = tuple(dict.fromkeys(name for _, fields in records() for name in fields))

    def listed() -> Iterator[Record]:
        for number, (block, fields) in enumerate(records(), 1):
            title = block.split("\n", 1)[0].strip()
            yield number, block, (title, *(fields.get(name, "") for name in names))

    return ("title", *names), listed()


def _records(written: Iterable[str]) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in chain(written, [""]):
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
