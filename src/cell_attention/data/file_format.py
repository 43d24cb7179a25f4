"""How a file is written, and how large it may be; imports nothing that is slow."""

from dataclasses import dataclass
from typing import Literal

from cell_attention.errors import InputError

Decimal = Literal[".", ","]


@dataclass(frozen=True)
class FileFormat:
    """How the files of a source are written, and how large they may be."""

    encoding: str | None = None
    """Encoding of a text file of molecules, such as cp1252 or utf-16; by default UTF-8."""
    decimal: Decimal = "."
    """The decimal sign of numbers in a file of molecules."""
    max_bytes: int | None = None
    """Largest number of bytes that a file may have, unpacked if it is compressed. By default a
    compressed file may unpack to 1 GiB, and beyond 64 MiB to 200 times its size."""

    def __post_init__(self) -> None:
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.decimal not in (".", ","):
            raise InputError(f"decimal must be '.' or ',', got {self.decimal!r}")
        if self.max_bytes is not None and self.max_bytes < 1:
            raise InputError(f"max_bytes must be at least 1, got {self.max_bytes}")

    def most_bytes(self, packed: int) -> int:
        """Return how many bytes an archive of `packed` bytes may unpack to."""
        if self.max_bytes is not None:
            return self.max_bytes
        return min(1 << 30, max(64 << 20, 200 * packed))


def _check_encoding(encoding: str) -> None:
    """Refuse a name that is not an encoding of text."""
    try:
        "a".encode(encoding)
    except (LookupError, ValueError):
        raise InputError(
            f"encoding must be the name of a text encoding, such as cp1252, got {encoding!r:.40}"
        ) from None
