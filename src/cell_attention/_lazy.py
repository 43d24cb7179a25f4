"""Packages that import a module only when one of its names is first used."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: dict[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """Return a module-level `__getattr__` and `__all__`; `homes[name]` is the module of a name."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], package), name)

    return load, sorted(homes)
