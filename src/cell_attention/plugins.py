"""Your own Python files that register layers and models: loaded once, here and in every worker."""

import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from cell_attention.errors import DataError, SourceNotFoundError

_loaded: dict[str, None] = {}
"""Files in the order in which they were loaded."""


def load_plugins(files: Iterable[str | Path]) -> None:
    """Run Python files that call `register_model`, `register_pooling` and the like.

    A file runs with all rights of this program: name only files that you trust. Nothing that a
    model or a run folder holds is ever loaded this way.
    """
    for file in files:
        path = Path(file).resolve()
        if str(path) in _loaded:
            continue
        if not path.is_file() or path.suffix != ".py":
            raise SourceNotFoundError(f"--plugin {file}: there is no such Python file (.py)")
        # A unique module name, so that classes of the file can be sent to worker processes.
        name = f"cell_attention_plugin_{path.stem}"
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise DataError(f"--plugin {file}: this file cannot be loaded as a Python module")
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            raise DataError(f"--plugin {file}: {type(error).__name__}: {error}") from error
        _loaded[str(path)] = None


def loaded_plugins() -> tuple[str, ...]:
    """Return the files that were loaded in this process, for workers to load too."""
    return tuple(_loaded)
