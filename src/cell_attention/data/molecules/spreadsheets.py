"""Tables in workbooks (.xlsx) and .parquet files, line by line."""

import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from cell_attention._files import UNREADABLE
from cell_attention.data.file_format import FileFormat
from cell_attention.data.molecules.molecule_column import SAMPLE
from cell_attention.data.molecules.tables import Line, Share, is_molecule_name
from cell_attention.errors import DataError, InputError

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
"""Of a sheet, in Excel."""


def workbook_lines(path: Path, file_format: FileFormat, share: Share) -> Iterator[Line]:
    """Yield the rows of the first sheet that names a column of molecules, else of the first one."""
    openpyxl = _package("openpyxl", path)
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        _require_size(path, size, file_format)
        with path.open("rb") as file:  # which openpyxl does not close
            sheets = openpyxl.load_workbook(file, read_only=True, data_only=True).worksheets
            sheet = next(filter(_names_molecules, sheets), sheets[0])
            width = next(filter(None, map(len, _sheet_rows(sheet, MOST_COLUMNS, SAMPLE))), 0)
            # One cell more, so that one beyond all names is an error and not lost.
            for line, cells in enumerate(_sheet_rows(sheet, width + 1, MOST_ROWS + 1), 1):
                if line > MOST_ROWS:
                    raise DataError(
                        f"{path}: there is a row beyond {MOST_ROWS:,}, the last of Excel"
                    )
                share.done = line  # how many there are, no sheet says reliably
                yield line, (*cells, *("",) * (width - len(cells)))
    except DataError:
        raise
    except (*UNREADABLE, ValueError, TypeError, AttributeError, IndexError, SyntaxError) as error:
        raise DataError(f"{path}: not a readable workbook ({_short(error)})") from None


def _sheet_rows(sheet: Any, width: int, count: int) -> Iterator[tuple[str, ...]]:
    """Yield the first cells of the first rows of a sheet, up to the last that is not empty. It does
    not matter what the sheet says of its own size, which may be wrong, nor where it says that its
    cells are.
    """
    sheet.reset_dimensions()
    for cells in sheet.iter_rows(max_row=count, max_col=width, values_only=True):
        last = next((end for end in range(len(cells), 0, -1) if cells[end - 1] is not None), 0)
        yield tuple(map(_written, cells[:last]))


def _names_molecules(sheet: Any) -> bool:
    """Whether the first row of a sheet has the name of a column of molecules."""
    return any(map(is_molecule_name, next(_sheet_rows(sheet, MOST_COLUMNS, 1), ())))


def parquet_lines(path: Path, file_format: FileFormat, share: Share) -> Iterator[Line]:
    """Yield the header and the rows of a .parquet file."""
    parquet = _package("pyarrow.parquet", path)
    try:
        with parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            size = sum(group.total_byte_size for group in groups)
            _require_size(path, size, file_format, streamed=True)
            share.rows = file.metadata.num_rows
            yield 1, tuple(file.schema_arrow.names)
            line = 2
            for batch in file.iter_batches(batch_size=4096):
                columns = [column.to_pylist() for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    yield line, tuple(map(_written, cells))
                    line += 1
                share.done += batch.num_rows
    except DataError:
        raise
    except (*UNREADABLE, ValueError, TypeError) as error:
        raise DataError(f"{path}: not a readable .parquet file ({_short(error)})") from None


def _short(error: Exception) -> str:
    """Return what a package says, in one line."""
    return " ".join(str(error).split())[:200]


def _require_size(
    path: Path, size: int, file_format: FileFormat, *, streamed: bool = False
) -> None:
    limit = file_format.most_bytes(path.stat().st_size, streamed=streamed)
    if size > limit:
        raise DataError(f"{path}: unpacks to more than {limit:,} bytes; max_bytes allows more")


def _package(name: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = name.split(".")[0]
        raise InputError(
            f"{path}: reading {path.suffix} needs {package}: pip install 'cell-attention[tables]'"
        ) from None


def _written(value: object) -> str:
    """Write the value of a cell as text."""
    return "" if value is None else str(value)
