"""Tables of numbers in text files, read fast; errors name the file and the line."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cell_attention._files import UNREADABLE
from cell_attention.data.dataset import Progress
from cell_attention.data.tu.archive import ZipEntry, ZipFolder
from cell_attention.errors import DataError

Folder = Path | ZipFolder

CHUNK = 100_000
"""Lines between two reports of progress."""
LARGE = 4_000_000
"""Progress is not shown for tables with fewer bytes than this."""

_INTEGER = re.compile(r"[ \t]*[+-]?[0-9]{1,19}[ \t]*")


class Tables:
    """The files PREFIX_NAME.txt of a folder: one row per line, comma-separated numbers."""

    def __init__(self, folder: Folder, prefix: str, progress: Progress | None = None) -> None:
        self.folder, self.prefix = folder, prefix
        self._progress, self._done, self._total = progress, 0, 0
        if isinstance(folder, Path):
            self._total = sum(path.stat().st_size for path in folder.glob(f"{prefix}_*.txt"))

    def path(self, name: str) -> Path | ZipEntry:
        """Return the path of a table, whether it exists or not."""
        return self.folder / f"{self.prefix}_{name}.txt"

    def exists(self, name: str) -> bool:
        """Whether the table exists."""
        return self.path(name).is_file()

    def integers(self, name: str, columns: int | None = None) -> NDArray[np.int64]:
        """Read (rows, columns) whole numbers; any fixed number of columns if `columns` is None."""
        table: NDArray[np.int64] = self._read(name, columns, np.dtype(np.int64))
        return table

    def floats(self, name: str) -> NDArray[np.float64]:
        """Read (rows, columns) finite numbers."""
        table: NDArray[np.float64] = self._read(name, None, np.dtype(np.float64))
        with np.errstate(over="ignore"):  # too large for float32 becomes infinite, refused below
            wrong = ~np.isfinite(table.astype(np.float32)).all(axis=1)
        if wrong.any():
            text = "every value must be finite and fit into 32 bits"
            raise self.fault(name, int(wrong.argmax()), text)
        return table

    def fault(self, name: str, row: int, text: str) -> DataError:
        """Return an error about row `row` (from 0) of a table."""
        return DataError(f"{self.path(name)}, line {row + 1}: {text}")

    def check_rows(self, name: str, rows: int, *, expected: int, reason: str) -> None:
        """Refuse a table whose number of lines does not match another table."""
        if rows != expected:
            raise DataError(f"{self.path(name)} has {rows} lines, but {reason} {expected}")

    def _read(self, name: str, columns: int | None, dtype: np.dtype[np.generic]) -> Any:
        lines = self._lines(name)
        if not lines:
            return np.empty((0, columns or 1), dtype)
        width = columns if columns is not None else lines[0].count(",") + 1
        parts = []
        for first in range(0, len(lines), CHUNK):
            chunk = lines[first : first + CHUNK]
            try:
                part = np.loadtxt(chunk, dtype=dtype, delimiter=",", ndmin=2, comments=None)
            except ValueError:
                part = np.empty((0, 0), dtype)
            if part.shape != (len(chunk), width):
                self._complain(name, lines, width=width, dtype=dtype)
            parts.append(part)
            self._advance(sum(map(len, chunk)) + len(chunk))
        return np.concatenate(parts)

    def _advance(self, size: int) -> None:
        self._done += size
        if self._progress is not None and self._total > LARGE:
            self._progress(min(self._done, self._total), self._total)

    def _lines(self, name: str) -> list[str]:
        path = self.path(name)
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            raise DataError(f"{path} is missing") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not a text file (byte {error.start})") from None
        except UNREADABLE as error:
            raise DataError(f"{path}: cannot be read ({error})") from None
        lines = text.replace("\r\n", "\n").split("\n")
        while lines and not lines[-1].strip():
            lines.pop()
        return lines

    def _complain(
        self, name: str, lines: list[str], *, width: int, dtype: np.dtype[np.generic]
    ) -> None:
        """Raise an error on the first bad line, which the fast reader does not identify."""
        kind = "whole number" if dtype == np.int64 else "number"
        for row, line in enumerate(lines):
            values = line.split(",")
            if not line.strip():
                raise self.fault(name, row, "the line is empty")
            if len(values) != width:
                raise self.fault(name, row, f"{width} values are expected, got {len(values)}")
            for value in values:
                if not _is_number(value, dtype):
                    raise self.fault(name, row, f"{value.strip()[:40]!r} is not a {kind}")
        raise DataError(f"{self.path(name)}: not a table of {kind}s")


def _is_number(value: str, dtype: np.dtype[np.generic]) -> bool:
    if dtype == np.int64:
        return _INTEGER.fullmatch(value) is not None and abs(int(value)) < 2**63
    try:
        float(value)
    except ValueError:
        return False
    return "_" not in value
