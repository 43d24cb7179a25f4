"""One shard: a .csv or .parquet file of rows that appears only when it is complete."""

import csv
import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from cell_attention._files import UNREADABLE, naming, replacing
from cell_attention.errors import DataError, InputError
from cell_attention.inference.computed import Cells, harmless
from cell_attention.inference.shard_options import ShardFormat

ROWS_AT_ONCE = 8192
"""Rows of a group of a .parquet file, which are in memory while it is written."""


@dataclass(frozen=True)
class ShardLayout:
    """The columns of all shards, and how they are written."""

    header: tuple[str, ...]
    numeric: frozenset[str]
    """The new columns that hold numbers; a .parquet file has them as numbers."""
    form: ShardFormat = "csv"
    width: int = 0
    """Number of the columns of the source, which come first."""
    safe: bool = False
    """Whether cells of a .csv that a spreadsheet would run get an apostrophe."""

    def require_package(self, folder: object) -> None:
        """Refuse a format whose package is not installed."""
        if self.form == "parquet":
            _pyarrow(folder)

    @contextmanager
    def writing(self, path: Path) -> "Iterator[ShardWriter]":
        """Open a shard; it appears when the block ends without an error."""
        with replacing(path) as unfinished:
            kind = _ParquetWriter if self.form == "parquet" else _CsvWriter
            with naming(path):
                writer = kind(self, unfinished)
            try:
                yield writer
                with naming(path):
                    writer.close()
            finally:
                writer.abandon()

    def read(self, path: Path) -> Iterator[Cells]:
        """Yield the rows of a shard."""
        if self.form == "csv":
            with path.open(encoding="utf-8", newline="") as file:
                rows = csv.reader(file)
                next(rows, None)
                yield from map(tuple, rows)
            return
        try:
            with _pyarrow(path).parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS_AT_ONCE):
                    columns = [column.to_pylist() for column in batch.columns]
                    yield from (tuple(map(_text, row)) for row in zip(*columns, strict=True))
        except UNREADABLE as error:
            raise DataError(f"{path}: not a readable shard ({error})") from None


class ShardWriter:
    """An open shard."""

    def __init__(self, layout: ShardLayout, path: Path) -> None:
        self.layout = layout

    def write(self, rows: Iterable[Cells]) -> None:
        """Append rows."""
        raise NotImplementedError

    def close(self) -> None:
        """Write what is left."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Close the file, if it is still open, without an error."""


class _CsvWriter(ShardWriter):
    def __init__(self, layout: ShardLayout, path: Path) -> None:
        super().__init__(layout, path)
        self.file = path.open("w", encoding="utf-8", newline="", errors="surrogatepass")
        self.rows = csv.writer(self.file, lineterminator="\n")
        self.write([layout.header])

    def write(self, rows: Iterable[Cells]) -> None:
        self.rows.writerows(map(harmless, rows) if self.layout.safe else rows)

    def close(self) -> None:
        self.file.close()

    def abandon(self) -> None:
        try:
            self.file.close()
        except OSError:  # a full disk, which was raised before
            return


class _ParquetWriter(ShardWriter):
    def __init__(self, layout: ShardLayout, path: Path) -> None:
        super().__init__(layout, path)
        self.arrow = _pyarrow(path)
        kinds = {True: self.arrow.float64(), False: self.arrow.string()}
        names = _unique(layout.header)
        fields = [
            (name, kinds[written in layout.numeric])
            for name, written in zip(names, layout.header, strict=True)
        ]
        self.schema = self.arrow.schema(fields)
        self.held: list[Cells] = []
        self.file = self.arrow.parquet.ParquetWriter(path, self.schema, compression="zstd")

    def write(self, rows: Iterable[Cells]) -> None:
        self.held.extend(rows)
        while len(self.held) >= ROWS_AT_ONCE:
            self._group(self.held[:ROWS_AT_ONCE])
            del self.held[:ROWS_AT_ONCE]

    def _group(self, rows: Sequence[Cells]) -> None:
        columns: list[Any] = []
        for place, field in enumerate(self.schema):
            cells = [row[place] for row in rows]
            numeric = self.layout.header[place] in self.layout.numeric
            columns.append(
                self.arrow.array(list(map(_number, cells)) if numeric else cells, field.type)
            )
        self.file.write_table(self.arrow.table(columns, schema=self.schema))

    def close(self) -> None:
        if self.held:
            self._group(self.held)
            self.held = []
        self.file.close()

    def abandon(self) -> None:
        try:
            self.file.close()
        except OSError:
            return


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pyarrow(path: object) -> Any:
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        raise InputError(
            f"{path}: .parquet needs pyarrow: pip install 'cell-attention[tables]'"
        ) from None


def _unique(names: Sequence[str]) -> list[str]:
    """Number the names of columns that are repeated, which a .parquet file cannot have."""
    found: list[str] = []
    for name in names:
        number, one = 1, name
        while one in found:
            number += 1
            one = f"{name}_{number}"
        found.append(one)
    return found


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


def _text(value: object) -> str:
    """Write the value of a cell as predictions are written."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.7g}"
    return "" if value is None else str(value)
