"""The code of models and parts that are not built in: what workers import, and its SHA-256."""

import sys
from pathlib import Path

from cell_attention.models.entries import MODELS
from cell_attention.nn.parts import PARTS
from cell_attention.plugins import PREFIX, file_digest, loaded_plugins

_MAIN = ("__main__", "__mp_main__")
"""The script itself: worker processes of this machine run it again, so none has to import it."""


def registering_modules() -> tuple[str, ...]:
    """Return the modules, other than plugins, that define registered models and parts."""
    return tuple(name for name in _modules() if name not in _MAIN and not name.startswith(PREFIX))


def _modules() -> list[str]:
    parts = [entry.implementation for slot in PARTS.values() for entry in slot.values()]
    made = [*parts, *(entry.implementation for entry in MODELS.values())]
    return sorted({one.__module__ for one in made if not isinstance(one, str)})


def code_digests() -> dict[str, str]:
    """Return the SHA-256 of every file with models and parts that are not built in."""
    files = dict(loaded_plugins())
    for name in _modules():
        home = getattr(sys.modules.get(name), "__file__", None)
        if home and Path(home).is_file():
            files.setdefault(str(Path(home).resolve()), file_digest(Path(home)))
    found: dict[str, str] = {}
    for file, digest in sorted(files.items()):  # without folders, which differ between machines
        name = f"plugin {Path(file).name}"
        found[name] = f"{found[name]} {digest}" if name in found else digest
    return found
