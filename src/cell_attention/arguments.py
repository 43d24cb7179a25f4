"""`checked`: refuse arguments of a wrong type in one sentence that names the argument."""

import inspect
from collections.abc import Callable
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
