"""Lists of arguments in docstrings, for the reference: a line `name, other: what it is` per entry.

Docstrings here have them as they are read in a terminal; on a page each becomes an item of a list.
"""

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*): (.*)$")


class Arguments(griffe.Extension):
    """Rewrite the docstrings of functions and classes."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Those of a function."""
        rewrite(func, {parameter.name for parameter in func.parameters})

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Those of a class: arguments, and attributes that end with an underscore."""
        init = cls.members.get("__init__")
        own = init.parameters if isinstance(init, griffe.Function) else ()
        rewrite(cls, {one.name for one in own} | set(cls.members))


def rewrite(found: griffe.Object, names: set[str]) -> None:
    """Make the entries of a docstring the items of a list."""
    if found.docstring is None:
        return
    lines, inside = [], False
    for line in found.docstring.lines:
        entry = ENTRY.match(line)
        words = entry[1].split(", ") if entry else []
        if entry and all(word in names or word.endswith("_") for word in words):
            if not inside:
                lines.append("")
            inside = True
            lines.append(f"- {', '.join(f'`{word}`' for word in words)}: {entry[2]}")
        else:
            inside = inside and line.startswith(" ")
            lines.append(line)
    found.docstring.value = "\n".join(lines)
