"""How a file of data is written, how large it may be, and its content: only regular files, unpacked
up to a limit, decoded with advice. Imports nothing that is slow.
"""

import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from cell_attention.errors import DataError, InputError, SourceNotFoundError

Decimal = Literal[".", ","]

OnError = Literal["fail", "skip", "report"]
"""How to treat rows that cannot be read: raise an error, leave them out and count them, or leave
them out and list each."""

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx")
MOLECULE_FILES = (*TABLES, ".smi", ".sdf")
MOLECULE_FILE = re.compile(
    r".*\.((csv|tsv|txt|smi|sdf)(\.(gz|zst))?|parquet|xlsx)", re.IGNORECASE | re.DOTALL
)
"""The name of a file of molecules."""

MISSING = ("", "nan", "na", "n/a", "#n/a", "<na>", "none", "null", "-")
"""Texts of a cell that says nothing, in lower case."""

NO_DESCRIPTORS = ("none", "morgan")
"""Words of `Columns.descriptors` for none of RDKit's."""
COUNTED = ("morgan", "both")
"""Words of `Columns.descriptors` that turn on the counts of surroundings, which are what Morgan
counts and a branch of the network (`NetworkConfig.counts`); "both" is "rdkit" beside them."""
USUAL_DESCRIPTORS = ("rdkit",)
"""The descriptors of a network that reads them: they cost a third of a millisecond a molecule."""

Kind = Literal["classes", "labels", "values"]
"""Kind of targets: one of several classes, zeros and ones with gaps, or numbers."""
AskedTask = Literal["auto", "classification", "regression"]
"""What a user may ask for instead of a kind."""


@dataclass(frozen=True)
class FileFormat:
    """How the files of a source are written, and how large they may be."""

    encoding: str | None = None
    """Encoding of a text file of molecules, such as cp1252 or utf-16; by default UTF-8."""
    decimal: Decimal = "."
    """The decimal sign of numbers in a file of molecules."""
    max_bytes: int | None = None
    """Largest number of bytes that a file may have, unpacked if it is compressed. By default a
    compressed file may unpack to 64 MiB, or to 200 times its size; an archive or a workbook, which
    is held in memory, to at most 1 GiB."""

    def __post_init__(self) -> None:
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.decimal not in (".", ","):
            raise InputError(f"decimal must be '.' or ',', got {self.decimal!r}")
        most = self.max_bytes
        if most is not None and (type(most) is not int or most < 1):
            raise InputError(f"max_bytes must be a whole number of at least 1, got {most!r:.40}")

    def most_bytes(self, packed: int, *, streamed: bool = False) -> int:
        """Return how many bytes a file of `packed` bytes may unpack to.

        streamed: whether it is read piece by piece, and never held in memory as a whole.
        """
        if self.max_bytes is not None:
            return self.max_bytes
        most = max(64 << 20, 200 * packed)
        return most if streamed else min(1 << 30, most)


def _check_encoding(encoding: str) -> None:
    """Refuse a name that is not an encoding of text."""
    try:
        "a".encode(encoding)
    except (LookupError, ValueError, TypeError):
        raise InputError(
            f"encoding must be the name of a text encoding, such as cp1252, got {encoding!r:.40}"
        ) from None


PACKED = (".gz", ".zst")
"""Endings of compressed text files."""


def unpacked(name: str) -> str:
    """Return the name of a file without the ending of its compression."""
    return name[: name.rindex(".")] if name.lower().endswith(PACKED) else name


def is_molecule_file(source: str | Path) -> bool:
    """Whether the name of a source is that of a file of molecules."""
    return MOLECULE_FILE.fullmatch(str(source)) is not None


@dataclass(frozen=True)
class Columns:
    """The columns of a table of molecules by role; None chooses them by their order."""

    smiles: str | None = None
    """Column of the molecules; by default found by its name, then by its cells."""
    targets: tuple[str, ...] | None = None
    """Columns to predict; by default all others of a table that can be targets, none of an .sdf."""
    split: str | None = None
    """Column that says train, validation or test."""
    task: AskedTask = "auto"
    """Kind of targets; "auto" takes zeros and ones, and texts, as classes."""
    descriptors: Sequence[str] | None = None
    """Descriptors of whole molecules that become `complex_features`: "rdkit", a quick set of
    RDKit's, "rdkit-all", "none", or columns of the table; by default what the model reads."""

    def __post_init__(self) -> None:
        for name in ("smiles", "split"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, str):
                raise InputError(f"{name} must be the name of a column, got {given!r:.60}")
        for name in ("targets", "descriptors"):
            given = getattr(self, name)
            if not isinstance(given, Sequence | None) or any(
                not isinstance(one, str) for one in given or ()
            ):
                raise InputError(f"{name} must be a tuple of names, got {given!r:.60}")
        if isinstance(self.descriptors, str):
            object.__setattr__(self, "descriptors", (self.descriptors,))
        if self.descriptors is not None:
            object.__setattr__(self, "descriptors", tuple(self.descriptors))
            if "none" in self.descriptors and len(self.descriptors) > 1:
                raise InputError(f"descriptors 'none' stands alone, got {self.descriptors}")
        if isinstance(self.targets, str):
            raise InputError(f"targets must be a tuple of names, got the text {self.targets!r}")
        if self.targets is not None:
            object.__setattr__(self, "targets", tuple(self.targets))
        if self.task not in get_args(AskedTask):
            known = ", ".join(map(repr, get_args(AskedTask)))
            raise InputError(f"task must be one of {known}, got {self.task!r}")


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
    if not path.is_file():
        if kind := special_kind(path):
            raise DataError(f"{path}: not a regular file but {kind}")
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
