"""Arguments and configurations: what they must be, and how configurations are kept as JSON.

A check is one sentence that names the argument, the rule and the value. A record of a configuration
stays what it was when fields are added later.
"""

import inspect
import json
import math
from collections.abc import Callable
from dataclasses import asdict, field, fields
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from cell_attention.errors import InputError

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

_WORDS: dict[type, str] = {
    int: "a whole number", float: "a number", bool: "True or False", str: "a text", Path: "a path",
}  # fmt: skip
_NUMBERS: dict[Any, Any] = {int: Integral, float: Real}
"""What counts as a number: also those of numpy, but neither True nor False."""


def checked(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Check every argument against the classes and choices of its annotation; arguments with any
    other annotation, such as a Mapping, are left to the function.
    """
    signature = inspect.signature(function)
    kinds = cache(lambda: get_type_hints(function))

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            kind = kinds().get(name, Any)
            members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
            plain = all(isinstance(one, type) or get_origin(one) is Literal for one in members)
            fits = any(
                value in get_args(one)
                if get_origin(one) is Literal
                else isinstance(value, _NUMBERS.get(one, one))
                and not (one in _NUMBERS and isinstance(value, bool))
                for one in (members if plain and Any not in members else ())
            )
            if plain and Any not in members and not fits:
                raise InputError(f"{name} must be {_rule(members)}, got {value!r:.60}")
        return function(*args, **kwargs)

    return call


def _rule(members: tuple[Any, ...]) -> str:
    words = [_word(one) for one in members if one is not NoneType]
    return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def _word(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(repr, get_args(kind)))}"
    return _WORDS.get(kind, f"a {kind.__name__}")


_kinds = cache(get_type_hints)
"""The types of the fields of a configuration, by name."""


def require_choice(name: str, value: object, kind: Any) -> None:
    """Refuse a value that is not one of the choices of a Literal."""
    choices = get_args(kind)
    require(name, value in choices, f"be one of {', '.join(map(repr, choices))}", repr(value))


def check_kinds(config: Any) -> None:
    """Check every field against its type: a misspelt choice must be an error."""
    for name, kind in _kinds(config.__class__).items():
        value = getattr(config, name)
        if get_origin(kind) is Literal:
            require_choice(name, value, kind)
        elif get_origin(kind) is tuple:
            inner, words = get_args(kind)[0], {int: "whole numbers", str: "names"}
            right = isinstance(value, tuple) and all(type(entry) is inner for entry in value)
            require(name, right, f"be a tuple of {words[inner]}", repr(value))
        elif kind is float:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            require(name, number, "be a number", repr(value))
            require(name, math.isfinite(value), "be finite", value)
        else:
            words = {int: "be a whole number", bool: "be true or false", str: "be a name"}
            require(name, type(value) is kind, words[kind], repr(value))


def require_size(name: str, value: int, most: int = 10**6) -> None:
    """Refuse a size below one, or beyond what any machine can hold."""
    require(name, value >= 1, "be at least 1", value)
    require(name, value <= most, f"be at most {most:,}", value)


def require(name: str, rule: bool, text: str, value: object) -> None:
    """Raise InputError with the name and the value, unless the rule holds."""
    if not rule:
        raise InputError(f"{name} must {text}, got {value}")


UNSET: Any = object()


def later(before: Any, default: Any = UNSET, design: str = "") -> Any:
    """Declare a field that came later: records without it mean the value `before`.

    design: the only design that reads this field; records of other designs do not have it, and
    mean its default.
    """
    usual = before if default is UNSET else default
    return field(default=usual, metadata={"before": before, "design": design})


def completed(cls: type[Any], record: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a JSON record with those of the fields that came later."""
    known = {entry.name: entry for entry in fields(cls) if "before" in entry.metadata}
    missing = {name: entry.metadata["before"] for name, entry in known.items()}
    design = record.get("design", missing.get("design"))
    unread = {name for name, entry in known.items() if entry.metadata["design"] not in ("", design)}
    missing |= {name: known[name].default for name in unread}
    return {**missing, **tuples(record)}


def record_of(config: Any) -> dict[str, Any]:
    """Return a configuration as JSON. Fields that came later are left out where a record without
    them means the same: a configuration keeps its record, and thereby its digest.
    """
    record: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    design = getattr(config, "design", None)
    for entry in fields(config):
        if "before" in entry.metadata:
            unread = entry.metadata["design"] not in ("", design)
            implied = entry.default if unread else entry.metadata["before"]
            if implied == getattr(config, entry.name):
                del record[entry.name]
    return record


def tuples(record: dict[str, Any]) -> dict[str, Any]:
    """Replace lists by tuples, which the fields of a configuration need."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
