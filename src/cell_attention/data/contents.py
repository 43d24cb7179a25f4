"""The content of a file: only regular files, and no more than a limit."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from cell_attention.errors import DataError, SourceNotFoundError

AT_ONCE = 1 << 20
"""Bytes that are unpacked before the limit is checked again."""


_SPECIAL = {
    stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}  # fmt: skip


def special_kind(path: Path) -> str:
    """Name the kind of a FIFO, socket or device, which may never end; empty for other files."""
    try:
        return _SPECIAL.get(stat.S_IFMT(os.stat(path).st_mode), "")  # noqa: PTH116 - follows links
    except OSError:
        return ""


def require_regular(path: Path) -> None:
    """Refuse a path that is not a regular file or a link to one, before it is opened."""
    if kind := special_kind(path):
        raise DataError(f"{path}: not a regular file but {kind}")
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file" + (", a folder" * path.is_dir()))


def read_limited(read: Callable[[int], bytes], path: object, limit: int) -> bytes:
    """Read at most `limit` bytes by the method of an open file; `path` is its name in the error."""
    parts: list[bytes] = []
    size = 0
    while part := read(AT_ONCE):
        size += len(part)
        if size > limit:
            raise DataError(
                f"{path}: more than {limit:,} bytes when it is read; max_bytes allows more"
            )
        parts.append(part)
    return b"".join(parts)
