"""The rows of a source, computed in this process or in several, in order."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cell_attention.api.outputs import AnyModel
from cell_attention.errors import InputError
from cell_attention.inference.chunks import Chunk
from cell_attention.inference.computed import Computed, RowTask, compute_part
from cell_attention.inference.model_folder import Model
from cell_attention.inference.rows import OpenedRows
from cell_attention.inference.sources import Part, require_some
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
    with folder_of(origin) as folder:
        for part, computed in computed_parts(model, folder, parts, task=task, jobs=jobs):
            rows, found = rows + len(part.rows), found + len(computed.cells)
            yield part, computed
    require_some(opened.sources, rows, found)


def computed_parts(
    model: Model, folder: Path, parts: Iterable[Part], *, task: RowTask, jobs: int
) -> Iterator[tuple[Part, Computed]]:
    """Yield every part with what was computed for it, by `jobs` processes that load the model from
    a folder.
    """
    if jobs == 1:
        for part in parts:
            yield part, task(model, part.read(model))
        return
    if jobs < 0:
        raise InputError(f"jobs must not be negative, got {jobs}")
    from cell_attention.parallel.engine import results  # for several processes only

    items = ((str(folder), task, part) for part in parts)
    for (_, _, part), computed in results(compute_part, items, name="part", jobs=jobs):
        yield part, computed


@contextmanager
def folder_of(origin: AnyModel) -> Iterator[Path]:
    """Yield the folder of a model; one in memory is saved for as long as it is needed."""
    if not isinstance(origin, Model):
        yield Path(origin).resolve()
        return
    with TemporaryDirectory(prefix="cell-attention-") as folder:
        origin.save_pretrained(folder)
        yield Path(folder)
