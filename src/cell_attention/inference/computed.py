"""What a model computes for rows of a source: the cells of new columns, and numbers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from cell_attention.data.molecules.files import Row
from cell_attention.inference.chunks import Chunk
from cell_attention.inference.model_folder import Model, load_model
from cell_attention.inference.prediction import fingerprints
from cell_attention.inference.sources import Part

Cells = tuple[str, ...]


@dataclass(frozen=True)
class Computed:
    """What was computed for the rows of a chunk; it can be sent between processes."""

    made: dict[str, bool]
    """The new columns, and whether they hold numbers or words."""
    cells: list[tuple[str, ...]]
    """The cells of every complex."""
    values: np.ndarray[Any, Any]
    """(complexes, ·) the numbers behind them."""
    place: tuple[int | None, ...]
    """Complex of every row; None if it has none."""
    reasons: tuple[str, ...]
    """Why a row has no complex; empty if it has one."""
    warnings: Sequence[str] | None
    """What is unusual in every row; None if there is no such column."""


class RowTask(Protocol):
    """Something to compute for every row."""

    def __call__(self, model: Model, chunk: Chunk) -> Computed:
        """Compute it for the rows of a chunk."""


@dataclass(frozen=True)
class Fingerprinting:
    """The readout vector of every row."""

    def __call__(self, model: Model, chunk: Chunk) -> Computed:
        """Compute the vectors of a chunk."""
        vectors = fingerprints(model, chunk.complexes).numpy()
        cells = [tuple(f"{value:.7g}" for value in vector) for vector in vectors.tolist()]
        made = {f"h{number}": True for number in range(vectors.shape[1])}
        return Computed(made, cells, vectors, chunk.place, chunk.reasons, None)


def compute_part(job: tuple[str, RowTask, Part], report: Any = None) -> Computed:
    """Compute a part by the model of a folder, in any process; job: the folder, task and part."""
    folder, task, part = job
    model = _model(folder)
    return task(model, part.read(model))


@lru_cache(maxsize=1)
def _model(folder: str) -> Model:
    """Load the model once per process."""
    return load_model(folder)


@dataclass
class Counts:
    """Counts of rows."""

    rows: int = 0
    predicted: int = 0
    """Rows with a prediction or vector."""
    warned: int = 0
    unread: int = 0
    """Rows that could not be read, also if they are left out."""

    def add(self, other: "Counts") -> None:
        """Add other counts."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def lines(
        self, rows: Sequence[Row], found: Computed, width: int, *, skip_bad: bool
    ) -> Iterator[tuple[tuple[str, ...], int | None]]:
        """Yield the cells of every row and the place of its complex, and count them.

        width: number of columns of the source. skip_bad: whether to leave out unread rows.
        """
        empty = ("",) * len(found.made)
        warnings = found.warnings or [""] * len(rows)
        for row, place, reason, warning in zip(
            rows, found.place, found.reasons, warnings, strict=True
        ):
            self.unread += place is None
            if place is None and skip_bad:
                continue
            self.rows += 1
            self.predicted += place is not None
            self.warned += bool(warning)
            made = empty if place is None else found.cells[place]
            noted = (reason,) if found.warnings is None else (warning, reason)
            yield (*padded(row.cells, width), *made, *noted), place


def padded(cells: tuple[str, ...], width: int) -> tuple[str, ...]:
    """Return as many cells as the header has: fill up with blanks, join surplus cells."""
    if len(cells) <= width:
        return (*cells, *("",) * (width - len(cells)))
    return (*cells[: width - 1], " ".join(cells[width - 1 :]))


_FORMULA = re.compile(r"\s*(?![+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|-$)[=+\-@]")
"""The beginning of a cell that a spreadsheet takes as a formula; a number is none."""


def harmless(cells: Sequence[str]) -> Cells:
    """Put an apostrophe before the cells that a spreadsheet would run."""
    return tuple(f"'{cell}" if _FORMULA.match(cell) else cell for cell in cells)
