"""Files and folders: written completely or not at all, checked when read, locked while in use."""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cell_attention.errors import DataError, InputError

if TYPE_CHECKING:
    from torch import Tensor


UNREADABLE = (
    OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError
)  # fmt: skip
"""What Python raises on damaged, encrypted or unknown archives, beside what the system says."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end that file replaces `path` in one step."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        with naming(path):
            with unfinished.open("rb") as written:
                os.fsync(written.fileno())
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in an error of the system that does not, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def is_unfinished(path: Path) -> bool:
    """Whether this is a temporary file of `replacing`, from a running or a killed process."""
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
        unfinished.chmod(mode)  # safetensors makes files private; ours get the usual mode


@contextmanager
def open_tensors(path: Path) -> Iterator[Any]:
    """Open a safetensors file, memory-mapped; by a link if its name is not UTF-8, which safetensors
    does not take.
    """
    from safetensors import safe_open

    if _is_unicode(str(path)):
        with safe_open(path, framework="pt") as file:
            yield file
        return
    with TemporaryDirectory(prefix="cell-attention-") as folder:
        link = Path(folder) / "tensors"
        link.symlink_to(path.resolve())
        with safe_open(link, framework="pt") as file:
            yield file


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_writable(path: Path, source: str = "") -> None:
    """Refuse an output that cannot be written or would replace the input, before any work."""
    if path.exists() and Path(source).exists() and path.samefile(source):
        raise InputError(f"out {path} is the source and would be replaced; name another file")
    if path.exists() and not path.is_file():
        raise InputError(f"out must be a file, but {path} is not a regular file; name another")
    if not path.resolve().parent.is_dir():
        raise InputError(
            f"out {path}: the folder {path.resolve().parent} does not exist; create it first"
        )


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes; raise InputError if another one holds the lock. The
    lock ends with this process.
    """
    if os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InputError(
            f"{folder}: another cell-attention process is using this folder; wait, or name another"
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(handle)


def read_versioned(path: Path, newest: int, remedy: str = "") -> dict[str, Any]:
    """Read a JSON object from a file of ours; refuse a format newer than `newest`."""
    record = read_json(path, remedy)
    found = record.get("format")
    if type(found) is not int:
        raise DataError(f"{path}: the entry 'format' is missing or not a whole number{remedy}")
    if found > newest:
        raise DataError(
            f"{path}: format {found} is newer than {newest}, the newest that this version of "
            "cell-attention reads; upgrade it"
        )
    return record


def read_json(path: Path, remedy: str = "") -> dict[str, Any]:
    """Read a JSON object from a file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a complete JSON file ({error}){remedy}") from None
    if not isinstance(record, dict):
        raise DataError(f"{path}: must hold one JSON object{remedy}")
    return record
