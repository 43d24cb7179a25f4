"""How the reference reads the code: lists of arguments, and methods that are functions elsewhere.

Docstrings have a line `name, other: what it is` per argument, as it is read in a terminal; on a
page each becomes an item of a list.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any

import griffe

ENTRY = re.compile(r"^([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*): (.*)$")


class Arguments(griffe.Extension):
    """Rewrite the docstrings of functions and classes; complete the methods of classes."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Those of a function."""
        rewrite(func, {parameter.name for parameter in func.parameters})

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Those of a class: arguments, and attributes that end with an underscore."""
        init = cls.members.get("__init__")
        own = init.parameters if isinstance(init, griffe.Function) else ()
        rewrite(cls, {one.name for one in own} | set(cls.members))

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Those methods that are functions of other modules: `incidence = incidence`."""
        for module in modules(pkg):
            for cls in module.members.values():
                if cls.is_alias or not cls.is_class:
                    continue
                for name, member in list(cls.members.items()):
                    if member.is_attribute and str(member.value) == name in module.members:
                        cls.set_member(name, as_method(module[name].final_target))


def modules(package: griffe.Module) -> Iterator[griffe.Module]:
    """Yield a package and every module in it."""
    yield package
    for module in package.modules.values():
        if not module.is_alias:
            yield from modules(module)


def as_method(function: griffe.Function) -> griffe.Function:
    """Return a function as the method that it becomes in a class: without its first argument."""
    method = copy.copy(function)
    method.parameters = griffe.Parameters(*list(function.parameters)[1:])
    return method


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
