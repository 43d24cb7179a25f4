"""The content of a file: only regular files, unpacked up to a limit, decoded with advice."""

import gzip
import os
import stat
from collections.abc import Callable
from pathlib import Path

from cell_attention._files import UNREADABLE
from cell_attention.data.file_format import FileFormat
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


def read_content(path: Path, file_format: FileFormat) -> bytes:
    """Read a file; unpack it if its name ends in .gz."""
    require_regular(path)
    try:
        packed = path.stat().st_size
        if path.suffix.lower() == ".gz":
            with gzip.open(path) as unpacked:
                return read_limited(unpacked.read, path, file_format.most_bytes(packed))
        with path.open("rb") as file:
            return read_limited(file.read, path, file_format.max_bytes or packed + AT_ONCE)
    except UNREADABLE as error:
        raise DataError(f"{path}: not a readable text file ({error})") from None


def read_text(path: Path, file_format: FileFormat) -> str:
    """Read a text file; the last line ends in a line break, and there is no byte-order mark."""
    raw = read_content(path, file_format)
    encoding = file_format.encoding or "utf-8"
    try:
        text = raw.decode(encoding).removeprefix("\ufeff")
    except (UnicodeError, ValueError) as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        line = raw.count(b"\n", 0, start) + 1
        name = "UTF-8" if file_format.encoding is None else encoding
        hint = "" if file_format.encoding is not None else _hint(raw)
        raise DataError(f"{path}, line {line}: not {name} text (byte {start}){hint}") from None
    if file_format.encoding is None and "\x00" in text[:200] and (hint := _hint(raw)):
        raise DataError(f"{path}, line 1: not UTF-8 text (zero bytes){hint}")
    return text if text.endswith("\n") or not text else text + "\n"


def _hint(raw: bytes) -> str:
    """Advise another encoding if the bytes look like one."""
    start = raw[:4096]
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "; it begins like UTF-16: try encoding=utf-16"
    zeros = start[0::2].count(0), start[1::2].count(0)
    if 3 * max(zeros) > len(start) // 2:
        order = "be" if zeros[0] > zeros[1] else "le"
        return f"; it looks like UTF-16: try encoding=utf-16-{order}"
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return ""
    return "; it looks like Windows-1252: try encoding=cp1252" if 0 not in start else ""
