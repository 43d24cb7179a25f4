"""Packages that import a module only when one of its names is first used."""

from importlib import import_module
from typing import Any


def load_lazily(package: str, homes: dict[str, str], name: str) -> Any:
    """Import a name of a package from its module `homes[name]`."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(homes[name], package), name)
