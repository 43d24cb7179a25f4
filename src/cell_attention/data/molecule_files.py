"""Files of molecules: a .csv whose first column is SMILES, or a .smi with one per line."""

import csv
import gzip
import io
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from cell_attention.data.dataset import GraphSet, OnError, Progress
from cell_attention.data.molecules import FEATURISER, molecule_graphs, parse_smiles
from cell_attention.data.tables import UNREADABLE
from cell_attention.errors import DataError, SourceNotFoundError


def read_molecules(path: Path, on_error: OnError, progress: Progress | None = None) -> GraphSet:
    """The molecules of a file (also gzipped); further columns of a .csv are numbers to predict.

    A row that cannot be read is an error that names it, unless such rows are to be skipped.
    """
    rows = _rows(path)
    width = len(rows[0][1]) if rows else 1
    values: list[list[float]] = []
    bad: list[int] = []

    def molecules() -> Iterator[Any]:
        for done, (line, row) in enumerate(rows, start=1):
            fault, molecule, numbers = _read_row(row, width)
            if fault is None:
                values.append(numbers)
                yield molecule
            elif on_error == "skip":
                bad.append(line)
            else:
                raise DataError(
                    f"{path}, line {line}: {fault}; on_error='skip' (--on-error skip) leaves it out"
                )
            if progress is not None and (done % 100 == 0 or done == len(rows)):
                progress(done, len(rows))

    graphs = molecule_graphs(molecules())
    if not graphs.num_complexes:
        raise DataError(f"{path}: there is no molecule in it")
    targets, class_names = _targets(values)
    notes = (f"{len(bad)} rows left out, the first on line {bad[0]}",) if bad else ()
    return GraphSet(path.name, replace(graphs, targets=targets), class_names, notes, FEATURISER)


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """(line, cells) of every row that is not blank; of a .csv without its header."""
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file")
    try:
        zipped = path.suffix.lower() == ".gz"
        raw = gzip.decompress(path.read_bytes()) if zipped else path.read_bytes()
        text = raw.decode("utf-8-sig")
    except (*UNREADABLE, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a readable text file ({error})") from None
    lines = text.split("\n")
    if ".csv" not in path.name.lower():
        return [(line, row.split()[:1]) for line, row in enumerate(lines, 1) if row.strip()]
    dialect = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=dialect)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}") from None
    if rows and rows[0][1][0].strip() and parse_smiles(rows[0][1][0].strip()) is not None:
        first = rows[0][1][0]
        raise DataError(f"{path}, line 1: a header is expected, got the molecule {first!r}")
    return rows[1:]


def _read_row(row: list[str], width: int) -> tuple[str | None, Any, list[float]]:
    """What is wrong with a row, or None; its molecule; its numbers, NaN where a cell is blank."""
    if len(row) != width:
        return f"{width} cells are expected, got {len(row)}", None, []
    smiles = row[0].strip()
    if len(smiles.split()) > 1:
        return f"SMILES hold no spaces, got {smiles!r:.60}", None, []
    molecule = parse_smiles(smiles)
    if molecule is None or not smiles:
        return f"RDKit cannot read {row[0]!r}", None, []
    try:
        values = [float(cell) if cell.strip() else math.nan for cell in row[1:]]
    except ValueError as error:
        return str(error), None, []
    if any(map(math.isinf, values)):
        return "every value must be finite or blank", None, []
    return None, molecule, values


def _targets(values: list[list[float]]) -> tuple[torch.Tensor | None, tuple[str, ...]]:
    """Classes where one column holds only 0 and 1, values otherwise."""
    table = torch.tensor(values)
    if table.size(1) == 0:
        return None, ()
    if table.size(1) == 1 and bool(((table == 0) | (table == 1)).all()):
        return table[:, 0].to(torch.int64), ("0", "1")
    return table, ()


def read_smiles(path: Path) -> list[str]:
    """The SMILES of a file, unchecked."""
    return [row[0] for _, row in _rows(path)]
