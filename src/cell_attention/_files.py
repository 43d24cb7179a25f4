"""Files that are whole or not there: written beside their place and moved to it when finished."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; what is there at the end takes the place of `path` in one step."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def is_unfinished(path: Path) -> bool:
    """Whether this is what `replacing` writes to: of a process that was killed, or is at work."""
    return re.fullmatch(r"\..+\.\d+\.part", path.name) is not None


def write_whole(path: Path, text: str) -> None:
    """Write a text file in one step."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_tensors(path: Path, tensors: "dict[str, Tensor]", metadata: dict[str, str]) -> None:
    """Write a safetensors file in one step."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    with replacing(path) as unfinished:
        unfinished.touch()
        mode = unfinished.stat().st_mode
        try:
            save_file(tensors, unfinished, metadata)
        except SafetensorError as error:  # safetensors wraps a full disk in an error of its own
            raise OSError(f"{path}: cannot be written ({error})") from error
        unfinished.chmod(mode)  # safetensors makes files private; ours are like any other
