"""The rows of a source, computed in this process or in several, in order; into a folder of shards
on request.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cell_attention._version import __version__
from cell_attention.api.outputs import AnyModel
from cell_attention.errors import InputError
from cell_attention.inference.chunks import Chunk
from cell_attention.inference.computed import Computed, Counts, RowTask, compute_part
from cell_attention.inference.model_folder import CONFIG, Model, save_model
from cell_attention.inference.prediction_table import require_free
from cell_attention.inference.rows import OpenedRows
from cell_attention.inference.selection import Selection
from cell_attention.inference.shard_files import ShardLayout
from cell_attention.inference.shard_folder import ShardFolder
from cell_attention.inference.shard_options import ShardOptions
from cell_attention.inference.sources import Part, require_some
from cell_attention.parallel.engine import results
from cell_attention.progress import Progress


def computed_rows(
    model: Model,
    opened: OpenedRows,
    task: RowTask,
    *,
    origin: AnyModel,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Iterator[tuple[Part | Chunk, Computed]]:
    """Yield all rows chunk by chunk with what was computed for them.

    origin: the model as it was given, which other processes load. jobs: number of processes; 0 is
    one per core.
    """
    if opened.sources is None or opened.first is None:
        if jobs != 1:
            raise InputError(f"jobs must be 1 for a source that is not files, got {jobs}")
        yield from ((chunk, task(model, chunk)) for chunk in opened.chunks)
        return
    rows = found = 0
    parts = opened.sources.parts(opened.first, progress=progress)
    with _folder_of(origin) as folder:
        for part, computed in _computed(model, folder, parts, task, jobs):
            rows, found = rows + len(part.rows), found + len(computed.cells)
            yield part, computed
    require_some(opened.sources, rows, found)


def write_shards(
    out: str | Path,
    model: Model,
    opened: OpenedRows,
    task: RowTask,
    *,
    origin: AnyModel,
    asked: dict[str, Any],
    selection: Selection,
    made: dict[str, bool] | None,
    notes: tuple[str, ...],
    skip_bad: bool,
    safe: bool,
    shards: ShardOptions,
    jobs: int,
    progress: Progress | None,
) -> Counts:
    """Compute the rows of all shards that are not finished, and return the counts of all.

    asked: the options that the rows depend on. made: the new columns and whether they hold
    numbers; None takes those of the first rows. notes: the columns after them.
    """
    sources, first = opened.sources, opened.first
    if sources is None or first is None:
        raise InputError(f"out {out}: a folder of shards needs files of molecules as its source")
    with _folder_of(origin) as folder:
        question = {
            **asked, "version": __version__, "format": shards.format, "safe_csv": safe,
            "model": hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest(),
            "rows_per_shard": shards.rows_per_shard,
        }  # fmt: skip
        with ShardFolder.begin(Path(out), question, sources, fresh=shards.fresh) as run:
            parts = sources.parts(first, shards.rows_per_shard, dict(run.finished), progress)
            pairs = _computed(model, folder, parts, task, jobs)
            if made is None:
                begin = next(pairs, None)
                made = begin[1].made if begin else {}
                pairs = chain([begin] if begin else [], pairs)
            layout = ShardLayout(
                (*opened.header, *made, *notes),
                frozenset(name for name, numeric in made.items() if numeric),
                shards.format, len(opened.header), safe,
            )  # fmt: skip
            require_free(opened.header, layout.header[layout.width :])
            run.write(pairs, layout, selection, skip_bad=skip_bad)
            run.finish(layout, selection)
            return run.counts


def _computed(
    model: Model, folder: Path, parts: Iterable[Part], task: RowTask, jobs: int
) -> Iterator[tuple[Part, Computed]]:
    if jobs == 1:
        for part in parts:
            yield part, task(model, part.read(model))
        return
    if jobs < 0:
        raise InputError(f"jobs must not be negative, got {jobs}")
    items = ((str(folder), task, part) for part in parts)
    for (_, _, part), computed in results(compute_part, items, name="part", jobs=jobs):
        yield part, computed


@contextmanager
def _folder_of(origin: AnyModel) -> Iterator[Path]:
    """Yield the folder of a model; one in memory is saved for as long as it is needed."""
    if not isinstance(origin, Model):
        yield Path(origin).resolve()
        return
    with TemporaryDirectory(prefix="cell-attention-") as folder:
        save_model(Path(folder), origin)
        yield Path(folder)
