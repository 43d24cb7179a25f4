"""Text files read block by block: unpacked, bounded, decoded with advice, cut into lines.

No more than a block and a line are in memory, however long the file is.
"""

import codecs
import gzip
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from cell_attention._files import UNREADABLE
from cell_attention.data.file_format import PACKED, FileFormat, require_regular
from cell_attention.errors import DataError, InputError

AT_ONCE = 1 << 18
"""Bytes of a block."""
HEAD = 4096
"""Bytes of the beginning that tell a wrong encoding."""


class TextFile:
    """A text file whose lines can be read as often as needed."""

    def __init__(self, path: Path, file_format: FileFormat) -> None:
        require_regular(path)
        self.path, self.format = path, file_format
        self.size = path.stat().st_size
        self.done = 0
        """Bytes of the file, as it is packed, that the last reading has taken."""

    def share(self) -> float:
        """Return which share of the file was read."""
        return min(1.0, self.done / max(self.size, 1))

    def require_bounded(self) -> None:
        """Refuse a packed file that unpacks to too much, before anything is made of its lines."""
        if self.path.suffix.lower() in PACKED:
            for _ in self._blocks():
                pass

    def lines(self) -> Iterator[str]:
        """Yield every line with its line break as it is written; the last line gets one if it has
        none. There is no byte-order mark.
        """
        kept: list[str] = []
        for text in self._decoded():
            # A line break may be cut in two, so a \r at the end waits for what follows.
            waiting = kept and kept[-1].endswith("\r")
            kept.append(text)
            if waiting or "\n" in text or "\r" in text:
                *whole, last = io.StringIO("".join(kept), newline="")
                kept = [last]
                if last.endswith("\n"):
                    whole, kept = [*whole, last], []
                yield from whole
        if last := "".join(kept):
            yield last if last.endswith(("\n", "\r")) else last + "\n"

    def plain_lines(self) -> Iterator[str]:
        """Yield every line without its line break."""
        return (line.rstrip("\r\n") for line in self.lines())

    def _decoded(self) -> Iterator[str]:
        """Yield the text block by block; no block is empty."""
        decoder: Any = None
        head, read, lines = b"", 0, 0
        for block in self._blocks():
            if decoder is None:
                head, decoder = block[:HEAD], self._decoder(block)
            left = decoder.getstate()[0]
            start, line = read - len(left), lines - left.count(b"\n") + 1
            text = self._decode(decoder, block, head=head, start=start, line=line)
            if not read:
                text = text.removeprefix("\ufeff")
                if self.format.encoding is None and "\x00" in text[:200] and (hint := _hint(head)):
                    raise DataError(f"{self.path}, line 1: not UTF-8 text (zero bytes){hint}")
            read, lines = read + len(block), lines + block.count(b"\n")
            if text:
                yield text
        if decoder is not None:
            left = decoder.getstate()[0]
            start, line = read - len(left), lines - left.count(b"\n") + 1
            if text := self._decode(decoder, b"", head=head, start=start, line=line):
                yield text

    def _decoder(self, block: bytes) -> Any:
        """Return a decoder; without a byte-order mark UTF-16 and UTF-32 are in this machine's
        order.
        """
        name = codecs.lookup(self.format.encoding or "utf-8").name
        width = {"utf-16": 2, "utf-32": 4}.get(name)
        marks = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE
        if width and block[:width] not in marks:
            name += "-le" if sys.byteorder == "little" else "-be"
        return codecs.getincrementaldecoder(name)()

    def _decode(self, decoder: Any, block: bytes, *, head: bytes, start: int, line: int) -> str:
        """Decode a block; start, line: of the first byte that is not decoded yet."""
        try:
            text: str = decoder.decode(block, not block)
        except (UnicodeError, ValueError) as error:
            where = error.start if isinstance(error, UnicodeDecodeError) else 0
            if isinstance(error, UnicodeDecodeError):
                line += error.object.count(b"\n", 0, where)
            name = "UTF-8" if self.format.encoding is None else self.format.encoding
            hint = "" if self.format.encoding is not None else _hint(head, block)
            raise DataError(
                f"{self.path}, line {line}: not {name} text (byte {start + where}){hint}"
            ) from None
        return text

    def _blocks(self) -> Iterator[bytes]:
        """Yield the unpacked bytes; refuse more than the format allows."""
        suffix, size, self.done = self.path.suffix.lower(), 0, 0
        limit = self.format.max_bytes or self.size + AT_ONCE
        if suffix in PACKED:
            limit = self.format.most_bytes(self.size, streamed=True)
        try:
            with self.path.open("rb") as file:
                unpacked = _unpacked(file, suffix, self.path)
                while block := bytes(unpacked.read(AT_ONCE)):
                    size, self.done = size + len(block), file.tell()
                    if size > limit:
                        raise DataError(
                            f"{self.path}: more than {limit:,} bytes when it is read; max_bytes "
                            "allows more"
                        )
                    yield block
        except UNREADABLE as error:
            raise DataError(f"{self.path}: not a readable text file ({error})") from None


def _unpacked(file: BinaryIO, suffix: str, path: Path) -> Any:
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=file)
    if suffix != ".zst":
        return file
    try:
        import pyarrow
    except ImportError:
        raise InputError(
            f"{path}: reading .zst needs pyarrow: pip install 'cell-attention[tables]'"
        ) from None
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")


def _hint(head: bytes, block: bytes = b"") -> str:
    """Advise another encoding if the bytes look like one; head: those that the file begins with."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "; it begins like UTF-16: try encoding=utf-16"
    zeros = head[0::2].count(0), head[1::2].count(0)
    if 3 * max(zeros) > len(head) // 2:
        order = "be" if zeros[0] > zeros[1] else "le"
        return f"; it looks like UTF-16: try encoding=utf-16-{order}"
    try:
        block.decode("cp1252")
    except UnicodeDecodeError:
        return ""
    return "; it looks like Windows-1252: try encoding=cp1252" if 0 not in head else ""
