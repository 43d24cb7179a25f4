"""`predict` and `fingerprint`: predictions and readout vectors of a trained model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cell_attention._files import replacing
from cell_attention.api.computed_rows import computed_rows
from cell_attention.api.outputs import AnyModel, is_folder, require_output, write_table
from cell_attention.arguments import checked
from cell_attention.data.file_format import FileFormat, OnError
from cell_attention.inference.computed import Counts, Fingerprinting
from cell_attention.inference.model_folder import Model, load_model
from cell_attention.inference.prediction import require_task
from cell_attention.inference.prediction_table import (
    Predicting,
    PredictionTable,
    prediction_header,
    require_free,
    table_rows,
)
from cell_attention.inference.rows import open_rows
from cell_attention.inference.selection import Selection
from cell_attention.inference.shard_options import ShardOptions
from cell_attention.progress import Progress
from cell_attention.training.threads import one_thread


@checked
def predict(
    model: AnyModel,
    data: Any,
    *,
    smiles_column: str | None = None,
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    on_error: OnError = "report",
    data_dir: str | Path | None = None,
    node_attributes: bool = False,
    is_source: bool | None = None,
    positive: str | None = None,
    filters: Sequence[str] = (),
    top: int | None = None,
    rank_by: str | None = None,
    lowest: bool = False,
    jobs: int = 1,
    out: str | Path | None = None,
    shards: ShardOptions = ShardOptions(),  # noqa: B008
    safe_csv: bool = False,
    progress: Progress | None = None,
) -> PredictionTable:
    """Predict with a trained model; every row has a prediction, or the reason why it has none.

    model: a Model or a MODEL_DIR. data: a file of molecules, a list of paths, a folder or a pattern
        of such files, a TU set, SMILES or RDKit molecules, or anything that `lift` accepts.
    on_error: rows that cannot be read are kept with a reason ("report"), are left out ("skip"), or
        are an error ("fail").
    positive: of two classes, the one whose probability is shown; by default the second.
    filters: conditions such as "COLUMN>0.5"; rows that do not fulfil all of them are left out.
    top: keep this many rows, the best first, ranked by the column `rank_by` of the output, by
        default the prediction; `lowest` takes the lowest values for the best.
    jobs: number of processes; 0 is one per core.
    out: a .csv file to write the rows to, instead of returning them; or, without an ending, a
        folder of `shards`, which a killed run continues. Metrics are not computed for a folder.
    safe_csv: whether cells in it that begin with =, +, - or @, and are no numbers, get an
        apostrophe before them, so that a spreadsheet does not run them.
    """
    into_shards = out is not None and is_folder(out, (".csv",))
    if out is not None and not into_shards:
        require_output(Path(out), (".csv",), model=model, source=data)
    known = model if isinstance(model, Model) else load_model(model)
    require_task(known)
    prediction_header(known, positive)  # refuses a wrong class before anything is read
    skip_bad, task = on_error == "skip", Predicting(positive)
    with one_thread():
        opened = open_rows(
            known, data, smiles_column=smiles_column, file_format=file_format, on_error=on_error,
            data_dir=data_dir, node_attributes=node_attributes, is_source=is_source,
            progress=progress,
        )  # fmt: skip
        table = PredictionTable.of(known, opened.header, positive)
        ranking: dict[str, Any] = {
            "filters": filters,
            "top": top,
            "rank_by": rank_by,
            "lowest": lowest,
        }
        numeric = [name for name, is_number in table.made.items() if is_number]
        selection = Selection.of(table.header, numeric, **ranking)
        if out is not None and into_shards:
            from cell_attention.api.shards import write_shards

            table.seen = write_shards(
                out, known, opened, task=task, origin=model, selection=selection, made=table.made,
                asked={"verb": "predict", "positive": positive, **ranking,
                       **_reading(smiles_column, file_format, on_error)},
                notes=("warning", "error"), skip_bad=skip_bad, safe=safe_csv, shards=shards,
                jobs=jobs, progress=progress,
            )  # fmt: skip
            return table
        # Lazy, chunk by chunk: rows are read, featurised, lifted, predicted and written while they
        # are taken below.
        pairs = computed_rows(known, opened, task, origin=model, jobs=jobs, progress=progress)
        computed = ((part.rows, found) for part, found in pairs)
        every = table_rows(known, opened, table, computed=computed, skip_bad=skip_bad)
        rows = selection.chosen(every)
        if out is None:
            table.rows = list(rows)
        else:
            write_table(Path(out), table.header, rows, safe=safe_csv)
    return table


@checked
def fingerprint(
    model: AnyModel,
    data: Any,
    *,
    smiles_column: str | None = None,
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    on_error: OnError = "report",
    data_dir: str | Path | None = None,
    node_attributes: bool = False,
    is_source: bool | None = None,
    jobs: int = 1,
    out: str | Path | None = None,
    shards: ShardOptions = ShardOptions(),  # noqa: B008
    safe_csv: bool = False,
    progress: Progress | None = None,
) -> Tensor:
    """Return (rows, ·) the readout vector h_C of every molecule or graph; those of an ensemble are
    concatenated. Rows that cannot be read are NaN.

    data, jobs, safe_csv: as for `predict`.
    out: a .csv with all columns of the source before the vector, or a .npy with the vectors only;
        or, without an ending, a folder of `shards`: then no vectors are returned.
    """
    into_shards = out is not None and is_folder(out, (".csv", ".npy"))
    if out is not None and not into_shards:
        require_output(Path(out), (".csv", ".npy"), model=model, source=data)
    known = model if isinstance(model, Model) else load_model(model)
    skip_bad, task, counts = on_error == "skip", Fingerprinting(), Counts()
    found: list[Tensor] = []
    kept: list[tuple[str, ...]] = []
    names: tuple[str, ...] = ()
    with one_thread():
        opened = open_rows(
            known, data, smiles_column=smiles_column, file_format=file_format, on_error=on_error,
            data_dir=data_dir, node_attributes=node_attributes, is_source=is_source,
            progress=progress,
        )  # fmt: skip
        if out is not None and into_shards:
            from cell_attention.api.shards import write_shards

            write_shards(
                out, known, opened, task=task, origin=model, selection=Selection(), made=None,
                asked={"verb": "fingerprint", **_reading(smiles_column, file_format, on_error)},
                notes=("error",), skip_bad=skip_bad, safe=safe_csv, shards=shards, jobs=jobs,
                progress=progress,
            )  # fmt: skip
            return torch.empty(0, 0)
        pairs = computed_rows(known, opened, task, origin=model, jobs=jobs, progress=progress)
        for part, computed in pairs:
            names = tuple(computed.made)
            values = torch.from_numpy(computed.values)
            vectors = torch.cat([values, values.new_full((1, len(names)), float("nan"))])
            for cells, place in counts.lines(
                part.rows, computed, len(opened.header), skip_bad=skip_bad
            ):
                found.append(vectors[-1 if place is None else place])
                kept.append(cells)
    table = torch.stack(found) if found else torch.empty(0, 0)
    if out is not None and Path(out).suffix.lower() == ".npy":
        with replacing(Path(out)) as unfinished, unfinished.open("wb") as file:
            np.save(file, table.numpy().astype(np.float32), allow_pickle=False)
    elif out is not None:
        require_free(opened.header, (*names, "error"))
        write_table(Path(out), (*opened.header, *names, "error"), kept, safe=safe_csv)
    return table


def _reading(
    smiles_column: str | None, file_format: FileFormat, on_error: OnError
) -> dict[str, str | None]:
    """Return the options of reading that rows depend on."""
    return {
        "smiles_column": smiles_column, "encoding": file_format.encoding,
        "decimal": file_format.decimal, "on_error": on_error,
    }  # fmt: skip
