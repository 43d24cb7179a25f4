"""Your own Python files that register layers and models: loaded once, here and in every worker."""

import hashlib
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from cell_attention.errors import DataError, InputError, SourceNotFoundError

PREFIX = "cell_attention_plugin_"
"""How the names of modules begin that are loaded here."""

_loaded: dict[str, str] = {}
"""The SHA-256 of every file, in the order in which they were loaded."""


def load_plugins(files: str | Path | Iterable[str | Path]) -> None:
    """Run Python files that call `register_model`, `register_pooling` and the like.

    Worker processes load the same files. A file runs with all rights of this program: name only
    files that you trust. Nothing that a model or a run folder holds is ever loaded this way.
    """
    listed = [files] if isinstance(files, str | Path) or not isinstance(files, Iterable) else files
    for file in listed:
        if not isinstance(file, str | Path):
            raise InputError(f"files must be paths of Python files, got {file!r:.60}")
        path = Path(file).resolve()
        if str(path) in _loaded:
            continue
        if not path.is_file() or path.suffix != ".py":
            raise SourceNotFoundError(f"{file}: there is no such Python file (.py)")
        digest = file_digest(path)
        if not _is_imported(path):
            _run(file, path)
        _loaded[str(path)] = digest


def _is_imported(path: Path) -> bool:
    """Whether the program has imported this file itself, which registered its classes."""
    homes = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return any(home and home.endswith(path.name) and Path(home).resolve() == path for home in homes)


def _run(file: str | Path, path: Path) -> None:
    # A module name of its own, so that classes of the file can be sent to worker processes and no
    # other file of the same name takes its place.
    name = f"{PREFIX}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise DataError(f"{file}: this file cannot be loaded as a Python module")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise DataError(f"{file}: {type(error).__name__}: {error}") from error


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def loaded_plugins() -> tuple[tuple[str, str], ...]:
    """Return the files that were loaded in this process, each with its SHA-256."""
    return tuple(_loaded.items())


def load_same(plugins: Iterable[tuple[str, str]], modules: Iterable[str]) -> str:
    """Load in a worker what another process has loaded: files, and modules by their names.

    Return why the first module that cannot be imported here cannot be, or "".
    """
    reason = ""
    for file, digest in plugins:
        load_plugins([file])
        if _loaded[str(Path(file).resolve())] != digest:
            raise DataError(f"{file}: the file has changed since the command was started")
    for name in modules:
        try:
            import_module(name)
        except Exception as error:
            text = f"a worker cannot import {name} ({type(error).__name__}: {error})"
            reason = reason or f"{text}; load its file with load_plugins"
    return reason


def plugin_line(error: BaseException) -> str:
    """Say in which line of a plugin an error arose: "FILE.py, line 7: "; "" if in none."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in _loaded:
            found = f"{Path(frame.f_code.co_filename).name}, line {line}: "
    return found
