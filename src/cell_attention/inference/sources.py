"""Files of molecules as one sequence of parts: rows as they are written, in order, never all at
once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cell_attention.data.file_format import Columns, FileFormat
from cell_attention.data.molecules.files import MoleculeFile, Row, RowReader
from cell_attention.errors import CellAttentionError, DataError, MoleculeError
from cell_attention.inference.chunks import Chunk, read_chunk
from cell_attention.inference.model_folder import Model
from cell_attention.inference.shard_options import AT_ONCE
from cell_attention.progress import Progress

ShardKey = tuple[int, int]
"""The number of a source, and that of a shard of it."""


@dataclass(frozen=True)
class Part:
    """Rows that are computed together; any process can read them."""

    reader: RowReader
    rows: tuple[Row, ...]
    shard: ShardKey = (0, 0)
    ends_shard: bool = False
    """Whether the shard is complete with it."""
    ends_source: bool = False

    def read(self, model: Model) -> Chunk:
        """Read, featurise and lift the rows."""
        return read_chunk(model, self.reader, self.rows)


@dataclass(frozen=True)
class MoleculeSources:
    """Files of molecules with the same columns, which are read one after the other."""

    paths: tuple[Path, ...]
    columns: Columns = Columns()  # noqa: RUF009 - frozen, so sharing one is safe
    file_format: FileFormat = FileFormat()  # noqa: RUF009 - the same
    usual: str = ""
    """The name of the column of molecules in the training data."""

    def __str__(self) -> str:
        count = len(self.paths)
        return str(self.paths[0]) if count == 1 else f"{count:,} files"

    def open(self, number: int) -> MoleculeFile:
        """Open one of the files."""
        return MoleculeFile(self.paths[number], self.columns, self.file_format, usual=self.usual)

    def require_molecules(self) -> None:
        """Refuse the first row of any file that cannot be read."""
        for number, path in enumerate(self.paths):
            file = self.open(number)
            for row in file.rows:
                try:
                    file.reader.molecule(row)
                except MoleculeError as error:
                    raise DataError(f"{path}, {file.reader.place} {row.line}: {error}") from None

    def parts(
        self,
        first: MoleculeFile,
        rows_per_shard: int = 0,
        *,
        finished: Mapping[ShardKey, bool] | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Part]:
        """Yield all rows but those of finished shards.

        first: the first file, opened. rows_per_shard: a multiple of AT_ONCE; 0: one shard a file.
        finished: which shards are finished, and whether each was the last of its source.
        """
        shown, finished = progress or Progress(), finished or {}
        remarks = {first.remark}
        sizes = [path.stat().st_size for path in self.paths]
        with shown.reading(str(self)) as report:
            done = 0
            for number in range(len(self.paths)):
                if _is_finished(number, finished):
                    continue
                file = self.open(number) if number else first
                self._check(file, first)
                if file.remark not in remarks:
                    remarks.add(file.remark)
                    shown.remark(f"{self.paths[number]}: {file.remark}")
                for part in shard_parts(number, file, rows_per_shard):
                    done += len(part.rows)
                    if part.shard in finished:
                        continue
                    share = sum(sizes[:number]) + sizes[number] * file.share()
                    report(done, max(done, round(done * sum(sizes) / max(share, 1))))
                    yield part

    def _check(self, file: MoleculeFile, first: MoleculeFile) -> None:
        if file.header != first.header:
            raise DataError(
                f"{file.path}: its columns ({', '.join(file.header)}) are not those of "
                f"{first.path} ({', '.join(first.header)})"
            )


def _is_finished(number: int, finished: Mapping[ShardKey, bool]) -> bool:
    """Whether all shards of a source are finished, so that it need not be read again."""
    own = {shard: last for (source, shard), last in finished.items() if source == number}
    return any(last and own.keys() >= {*range(shard)} for shard, last in own.items())


def shard_parts(number: int, file: MoleculeFile, rows_per_shard: int) -> Iterator[Part]:
    """Yield the parts of one source; shards never go beyond it."""
    rows, done = iter(file.rows), 0
    part = tuple(islice(rows, AT_ONCE))
    while part:
        shard, done = done // (rows_per_shard or done + 1), done + len(part)
        full = rows_per_shard > 0 and done % rows_per_shard == 0
        try:
            following = tuple(islice(rows, AT_ONCE))
        except (CellAttentionError, OSError):
            # What stands before the damage is complete in itself.
            yield Part(file.reader, part, (number, shard), ends_shard=full)
            raise
        last = not following
        yield Part(file.reader, part, (number, shard), full or last, last)
        part = following


def require_some(name: object, rows: int, read: int) -> None:
    """Refuse a source without a single molecule; read: how many of its rows are molecules."""
    if rows and not read:
        raise DataError(f"{name}: none of {rows:,} rows is a valid molecule; check smiles_column")
