"""`predict` and `fingerprint`: predictions and readout vectors of a trained model."""

import csv
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cell_attention._files import check_writable, replacing
from cell_attention.arguments import checked
from cell_attention.data.file_format import FileFormat, OnError
from cell_attention.errors import InputError
from cell_attention.inference.model_folder import FILES, Model, load_model
from cell_attention.inference.prediction import fingerprints, require_task
from cell_attention.inference.prediction_table import (
    PredictionTable,
    padded,
    predict_rows,
    prediction_header,
    require_free,
)
from cell_attention.inference.rows import open_rows
from cell_attention.progress import Progress
from cell_attention.training.threads import one_thread

AnyModel = Model | str | Path
"""A trained model, or its MODEL_DIR."""


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
    out: str | Path | None = None,
    safe_csv: bool = False,
    progress: Progress | None = None,
) -> PredictionTable:
    """Predict with a trained model; every row has a prediction, or the reason why it has none.

    model: a Model or a MODEL_DIR. data: a file of molecules, a TU set, SMILES or RDKit molecules,
        or anything that `lift` accepts.
    on_error: rows that cannot be read are kept with a reason ("report"), are left out ("skip"), or
        are an error ("fail").
    positive: of two classes, the one whose probability is shown; by default the second.
    out: a .csv file to write the rows to, instead of returning them.
    safe_csv: whether cells in it that begin with =, +, - or @, and are no numbers, get an
        apostrophe before them, so that a spreadsheet does not run them.
    """
    if out is not None:
        source = str(data) if isinstance(data, str | Path) else ""
        require_output(Path(out), (".csv",), model=model, source=source)
    known = model if isinstance(model, Model) else load_model(model)
    require_task(known)
    prediction_header(known, positive)  # refuses a wrong class before anything is read
    with one_thread():
        opened = open_rows(
            known, data, smiles_column=smiles_column, file_format=file_format, on_error=on_error,
            data_dir=data_dir, node_attributes=node_attributes, is_source=is_source,
            progress=progress,
        )  # fmt: skip
        table = PredictionTable.of(known, opened.header, positive)
        # Lazy, chunk by chunk: `opened` reads, featurises and lifts; `predict_rows` calls the
        # network and decides; both do so only while rows are taken below.
        rows = predict_rows(known, opened, table, skip_bad=on_error == "skip", positive=positive)
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
    out: str | Path | None = None,
    safe_csv: bool = False,
    progress: Progress | None = None,
) -> Tensor:
    """Return (rows, ·) the readout vector h_C of every molecule or graph; those of an ensemble are
    concatenated. Rows that cannot be read are NaN.

    out: a .csv with all columns of the source before the vector, or a .npy with the vectors only.
    safe_csv: as for `predict`.
    """
    if out is not None:
        source = str(data) if isinstance(data, str | Path) else ""
        require_output(Path(out), (".csv", ".npy"), model=model, source=source)
    known = model if isinstance(model, Model) else load_model(model)
    found: list[Tensor] = []
    reasons: list[str] = []
    kept: list[tuple[str, ...]] = []
    with one_thread():
        opened = open_rows(
            known, data, smiles_column=smiles_column, file_format=file_format, on_error=on_error,
            data_dir=data_dir, node_attributes=node_attributes, is_source=is_source,
            progress=progress,
        )  # fmt: skip
        for chunk in opened.chunks:
            vectors = fingerprints(known, chunk.complexes)
            missing = vectors.new_full(vectors.shape[1:], float("nan"))
            for row, place, reason in zip(chunk.rows, chunk.place, chunk.reasons, strict=True):
                if place is not None or on_error != "skip":
                    found.append(missing if place is None else vectors[place])
                    kept.append(padded(row.cells, len(opened.header)))
                    reasons.append(reason)
    table = torch.stack(found) if found else torch.empty(0, 0)
    if out is not None:
        _write_vectors(
            Path(out), columns=opened.header, kept=kept, table=table, reasons=reasons, safe=safe_csv
        )
    return table


def _write_vectors(
    out: Path, *, columns: tuple[str, ...], kept: list[tuple[str, ...]], table: Tensor,
    reasons: list[str], safe: bool,
) -> None:  # fmt: skip
    if out.suffix.lower() == ".npy":
        import numpy as np

        with replacing(out) as unfinished, unfinished.open("wb") as file:
            np.save(file, table.numpy().astype(np.float32), allow_pickle=False)
        return
    names = tuple(f"h{number}" for number in range(table.size(1)))
    require_free(columns, (*names, "error"))
    rows = (
        (*cells, *(("",) * len(names) if reason else [f"{value:.7g}" for value in vector]), reason)
        for cells, vector, reason in zip(kept, table.tolist(), reasons, strict=True)
    )
    write_table(out, (*columns, *names, "error"), rows, safe=safe)


def require_output(out: Path, endings: tuple[str, ...], *, model: AnyModel, source: str) -> None:
    """Refuse an output with another ending, or one that would replace the model or the source."""
    if out.suffix.lower() not in endings:
        raise InputError(f"out must end in {', '.join(endings)}, got {out}")
    check_writable(out, source)
    folder = None if not isinstance(model, str | Path) else Path(model)
    if folder is not None and out.name in FILES and out.resolve().parent == folder.resolve():
        raise InputError(f"out {out} would replace a file of the model; name another file")


_FORMULA = re.compile(r"\s*(?![+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|-$)[=+\-@]")
"""The beginning of a cell that a spreadsheet takes as a formula; a number is none."""


def write_table(
    out: Path | None, header: Sequence[str], rows: Iterable[Sequence[str]], *, safe: bool = False
) -> None:
    """Write a header and rows to a .csv file that appears only when it is complete, or to stdout.

    safe: whether cells that a spreadsheet would run get an apostrophe.
    """
    lines = chain([header], rows)
    if safe:
        lines = ([f"'{c}" if _FORMULA.match(c) else c for c in line] for line in lines)  # type: ignore[assignment]
    if out is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
    with (
        replacing(out) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="") as file,
    ):
        csv.writer(file, lineterminator="\n").writerows(lines)
