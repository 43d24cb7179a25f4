"""The rows of a source, computed into a folder of shards."""

import hashlib
from itertools import chain
from pathlib import Path
from typing import Any

from cell_attention._version import __version__
from cell_attention.api.computed_rows import computed_parts, folder_of
from cell_attention.api.outputs import AnyModel
from cell_attention.errors import InputError
from cell_attention.inference.computed import Counts, RowTask
from cell_attention.inference.model_folder import CONFIG, Model
from cell_attention.inference.prediction_table import require_free
from cell_attention.inference.rows import OpenedRows
from cell_attention.inference.selection import Selection
from cell_attention.inference.shard_files import ShardLayout
from cell_attention.inference.shard_folder import ShardFolder
from cell_attention.inference.shard_options import ShardOptions
from cell_attention.progress import Progress


def write_shards(
    out: str | Path,
    model: Model,
    opened: OpenedRows,
    *,
    task: RowTask,
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
    with folder_of(origin) as folder:
        question = {
            **asked, "version": __version__, "format": shards.format, "safe_csv": safe,
            "model": hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest(),
            "rows_per_shard": shards.rows_per_shard,
        }  # fmt: skip
        with ShardFolder.begin(Path(out), question, sources, fresh=shards.fresh) as run:
            parts = sources.parts(
                first, shards.rows_per_shard, finished=dict(run.finished), progress=progress
            )
            pairs = computed_parts(model, folder, parts, task=task, jobs=jobs)
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
