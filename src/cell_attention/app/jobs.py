"""What the worker process does with a request: predict, explain, read a table of molecules."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from cell_attention.app.limits import ServeLimits
from cell_attention.app.request_rows import BEYOND, Job, listed_rows, open_request
from cell_attention.app.worker import FINE, LARGE
from cell_attention.errors import CellAttentionError
from cell_attention.explanation.explanation import Explanation, explanations
from cell_attention.explanation.page import ReportEntry, graph_record, page_record
from cell_attention.explanation.records import plain
from cell_attention.explanation.report_entries import class_of, collected, entries, target_of
from cell_attention.explanation.subjects import Subjects
from cell_attention.inference.chunks import molecule_features
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction_table import (
    PredictionTable,
    predict_rows,
    prediction_header,
)
from cell_attention.inference.rows import OpenedRows
from cell_attention.topology.graphs import RawGraphs, join
from cell_attention.topology.polygons import attach_where_possible

DRAWN_DIGITS = 4
_CELLS = ("node", "edge", "complex")


def perform(model: Model, job: Job, limits: ServeLimits) -> tuple[int, dict[str, Any]]:
    """Do a job, whose `verb` says which, and return the status and its answer."""
    if job["verb"] == "read":
        return FINE, {"rows": listed_rows(model, job, limits)}
    opened = open_request(model, job, limits)
    # In memory, because an explanation goes over the rows twice; the limits keep them few.
    rows = OpenedRows(opened.header, list(opened.chunks))
    predictions = predict(model, rows)
    if job["verb"] == "explain":
        _explain(model, rows, job, predictions=predictions)
    return _answer(predictions)


def _answer(predictions: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """Return the rows; if the limits refuse every one of them, they refuse the request."""
    if all(row["error"].endswith(BEYOND) for row in predictions):
        return LARGE, {"error": predictions[0]["error"], "predictions": predictions}
    return FINE, {"predictions": predictions}


def perform_together(
    model: Model, jobs: Sequence[Job], limits: ServeLimits
) -> list[tuple[int, dict[str, Any]]]:
    """Predict the molecules of several requests as one batch; return an answer for each."""
    smiles = [text for job in jobs for text in job["smiles"]]
    names = [name for job in jobs for name in job["names"] or [""] * len(job["smiles"])]
    _, joined = perform(model, {**jobs[0], "smiles": smiles, "names": names}, limits)
    rows, answers = iter(joined["predictions"]), []
    for job in jobs:
        own = [{**next(rows), "row": number} for number, _ in enumerate(job["smiles"], 1)]
        if not job["names"]:
            own = [{key: cell for key, cell in row.items() if key != "name"} for row in own]
        answers.append(_answer(own))
    return answers


def predict(model: Model, rows: OpenedRows) -> list[dict[str, Any]]:
    """Return one record per row, with the columns of `cell-attention predict`."""
    table = PredictionTable.of(model, rows.header)
    found = predict_rows(model, rows, table, skip_bad=False)
    return [{"row": number, **table.record(cells)} for number, cells in enumerate(found, 1)]


def _explain(
    model: Model, rows: OpenedRows, job: Job, *, predictions: list[dict[str, Any]]
) -> None:
    """Add to every predicted row what it rests on, in the forms that were asked for."""
    target = target_of(model, job["target"])
    pieces = collected(model, rows.header, rows.chunks, target=target, top=None)
    makers = {"explanation": _record, "drawing": _drawing, "picture": _picture}
    forms = job["forms"] or ["explanation"]
    for record in predictions:
        record |= dict.fromkeys(forms)
    shown = class_of(model, None)
    for entry in entries(model, pieces, measure=job["measure"], explained_class=shown):
        for form in forms:
            predictions[entry.known.row - 1][form] = makers[form](entry)


def _record(entry: ReportEntry) -> Any:
    return plain(entry.record())


def _drawing(entry: ReportEntry) -> Any:
    return plain(graph_record(entry), DRAWN_DIGITS)


def _picture(entry: ReportEntry) -> Any:
    return entry.explanation.picture().svg


def describe(model: Model, name: str) -> dict[str, Any]:
    """Say what a model predicts and reads, and what the page must know to draw it; this also
    compiles and loads everything that a request needs.
    """
    one = _explained_triangle(model)
    try:
        molecule_features(model)
        reads_molecules = True
    except CellAttentionError:
        reads_molecules = False
    sizes = model.sizes
    return {
        "model": name,
        "network": model.name,
        "members": len(model.members),
        "trained_on": str(model.provenance.get("source", "")),
        "task": model.task,
        "targets": list(model.target_columns),
        "labels": list(model.class_names) if model.task == "classes" else [],
        "columns": list(prediction_header(model)),
        "reads_molecules": reads_molecules,
        "node_features": sizes["node_features"],
        "edge_features": sizes["edge_features"],
        "page": {**page_record(model, [one]), "summary": None},
    }


def _explained_triangle(model: Model) -> Explanation:
    """Explain a graph of three nodes whose features are zero."""
    nodes, edges, whole = (model.sizes.get(f"{name}_features", 0) for name in _CELLS)
    ends = torch.tensor([[0, 0, 1], [1, 2, 2]])
    raw = RawGraphs(3, ends, torch.zeros(3, nodes), torch.zeros(3, edges), lists_once=True)
    complexes, _ = attach_where_possible(join([raw]).complexes, model.config.max_polygon)
    complexes = replace(complexes, complex_features=torch.zeros(1, whole) if whole else None)
    return next(explanations(model, Subjects(complexes, (None,)), [0], measure=True))
