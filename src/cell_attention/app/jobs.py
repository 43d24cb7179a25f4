"""What the worker process does with a request: predict, explain, read a table of molecules."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rdkit import Chem

from cell_attention.app.limits import ServeLimits
from cell_attention.data.file_format import Columns
from cell_attention.data.molecules.files import MoleculeFile, Row
from cell_attention.errors import CellAttentionError, InputError, MoleculeError
from cell_attention.explanation.explanation import Explanation, explanations
from cell_attention.explanation.page import ReportEntry, graph_record, page_record
from cell_attention.explanation.records import plain
from cell_attention.explanation.report_entries import NAMES, collected, entries, target_of
from cell_attention.explanation.subjects import Subjects
from cell_attention.inference.model_folder import Model, labels_of, target_columns
from cell_attention.inference.molecule_list import MoleculeList
from cell_attention.inference.prediction_table import (
    PredictionTable,
    predict_rows,
    prediction_header,
)
from cell_attention.inference.rows import Chunk, OpenedRows, molecule_chunks, molecule_features
from cell_attention.topology.graphs import RawGraphs, columns, join
from cell_attention.topology.limits import Limits
from cell_attention.topology.polygons import attach_where_possible

Job = dict[str, Any]
STEPS = 50_000_000
"""Nodes that the search for polygons may look at: a fraction of a second."""
DRAWN_DIGITS = 4
_CELLS = ("node", "edge", "complex")


def perform(model: Model, job: Job, limits: ServeLimits) -> dict[str, Any]:
    """Do a job, whose `verb` says which, and return its answer."""
    if job["verb"] == "read":
        return _read(model, job, limits)
    opened = _opened(model, job, limits)
    # In memory, because an explanation goes over the rows twice; the limits keep them few.
    rows = OpenedRows(opened.header, list(opened.chunks))
    predictions = predict(model, rows)
    if job["verb"] == "explain":
        _explain(model, rows, job, predictions=predictions)
    return {"predictions": predictions}


def predict(model: Model, rows: OpenedRows) -> list[dict[str, Any]]:
    """Return one record per row, with the columns of `cell-attention predict`."""
    table = PredictionTable((*rows.header, *prediction_header(model), "warning", "error"))
    numbers = {
        name
        for name in prediction_header(model)
        if model.task == "values" or not name.endswith("prediction")
    }
    found = []
    for number, cells in enumerate(predict_rows(model, rows, table, skip_bad=False), 1):
        named = zip(table.header, cells, strict=True)
        record = {name: _number(text) if name in numbers else text for name, text in named}
        for name in prediction_header(model):
            record[name] = None if record[name] == "" else record[name]
        found.append({"row": number, **record})
    return found


def _number(text: str) -> float | None:
    """Read a cell that `predict` has written; null if there is no finite number in it."""
    number = float(text or "nan")
    return number if math.isfinite(number) else None


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
    for entry in entries(model, pieces, measure=job["measure"]):
        for form in forms:
            predictions[entry.known.row - 1][form] = makers[form](entry)


def _record(entry: ReportEntry) -> Any:
    return plain({**asdict(entry.known), **entry.explanation.to_dict()})


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
        "targets": list(target_columns(model)),
        "labels": list(labels_of(model)) if model.task == "classes" else [],
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


def _opened(model: Model, job: Job, limits: ServeLimits) -> OpenedRows:
    bounds = Limits(polygons=limits.polygons, pairs=limits.pairs, steps=STEPS)
    if job["graphs"] is not None:
        return OpenedRows(("graph",), [_graph_chunk(model, job["graphs"], limits, bounds=bounds)])
    source = _Listed(job["smiles"], job["names"] or (), limits.atoms)
    header = ("smiles", "name") if job["names"] else ("smiles",)
    return OpenedRows(header, molecule_chunks(model, source, limits=bounds))


@dataclass(frozen=True)
class _Listed(MoleculeList):
    """Molecules of a request, with their names and a limit on their size."""

    names: Sequence[str]
    most_atoms: int

    @property
    def rows(self) -> Iterator[Row]:
        """Yield one row per molecule, counted from 1."""
        for number, text in enumerate(self.molecules, 1):
            cells = (text, self.names[number - 1]) if self.names else (text,)
            yield Row(number, text, cells)

    def molecule(self, row: Row) -> Chem.Mol:
        """Read the molecule of a row; raise MoleculeError if it is not valid or too large."""
        molecule = super().molecule(row)
        if molecule.GetNumAtoms() > self.most_atoms:
            raise MoleculeError(f"more than {self.most_atoms:,} atoms, the limit of this server")
        return molecule


def _graph_chunk(
    model: Model, graphs: Sequence[Job], limits: ServeLimits, *, bounds: Limits
) -> Chunk:
    """Read and lift graphs; keep the reason where one cannot be."""
    reasons, good, owners = [""] * len(graphs), [], []
    for number, graph in enumerate(graphs):
        try:
            if len(graph["nodes"]) > limits.atoms:
                raise InputError(f"more than {limits.atoms:,} nodes, the limit of this server")
            raw = _graph(model, graph)
            join([raw])  # refuses what is not a graph
            good.append(raw)
            owners.append(number)
        except InputError as error:
            reasons[number] = str(error).replace("graph 0: ", "")
    whole = join(good).complexes
    complexes, faults = attach_where_possible(whole, model.config.max_polygon, bounds)
    place: list[int | None] = [None] * len(graphs)
    for number, fault in zip(owners, faults, strict=True):
        reasons[number] = fault
        place[number] = None if fault else sum(one is not None for one in place)
    rows = tuple(Row(number, "", (str(number),)) for number in range(1, len(graphs) + 1))
    return Chunk(rows, complexes, tuple(place), tuple(reasons), ("",) * len(graphs))


def _graph(model: Model, graph: Job) -> RawGraphs:
    """Read one graph and check that it has the features which the network needs."""
    nodes, edges, sizes = graph["nodes"], graph["edges"], model.sizes
    if sizes.get("complex_features"):
        raise InputError("this model needs features of whole graphs; it reads molecules only")
    if any(len(edge) != 2 for edge in edges):
        raise InputError("edges must be pairs of node numbers, counted from 0")
    node_features = _table("nodes", nodes, sizes["node_features"])
    features = graph.get("edge_features")
    if features is None and sizes["edge_features"]:
        raise InputError(
            f"edge_features must have {sizes['edge_features']} numbers per edge, got none"
        )
    if features is not None and len(features) != len(edges):
        raise InputError(
            f"edge_features must have one row per edge, got {len(features)} for {len(edges)}"
        )
    return RawGraphs(
        num_nodes=len(nodes),
        edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T.contiguous(),
        node_features=node_features,
        edge_features=_table("edge_features", features or [], sizes["edge_features"]),
        lists_once=True,
    )


def _table(name: str, rows: Sequence[Sequence[float]], width: int) -> torch.Tensor:
    for number, row in enumerate(rows):
        if len(row) != width:
            raise InputError(
                f"{name} must have {width} numbers each, as the model was trained on; "
                f"entry {number} has {len(row)}"
            )
    found = columns(torch.tensor(rows, dtype=torch.float32).reshape(len(rows), width))
    if found is None or not bool(found.isfinite().all()):
        raise InputError(f"{name} must be finite numbers")
    return found


def _read(model: Model, job: Job, limits: ServeLimits) -> dict[str, Any]:
    """Read the rows of a table or a .smi file without checking their molecules."""
    name = job["name"]
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"file{Path(name).suffix.lower()}"
        path.write_text(job["text"], encoding="utf-8", errors="replace", newline="")
        try:
            rows = list(_rows(model, path, job["smiles_column"]))
        except CellAttentionError as error:
            raise InputError(str(error).replace(str(path), name)) from None
    if len(rows) > limits.rows:
        raise InputError(f"{name} has more than {limits.rows:,} rows, the limit of this server")
    return {"rows": rows}


def _rows(model: Model, path: Path, smiles_column: str | None) -> Iterator[dict[str, Any]]:
    usual = str(model.provenance.get("molecule_column", ""))
    file = MoleculeFile(path, Columns(smiles_column), usual=usual)
    header = [name.lower() for name in file.header]
    place = next((header.index(name) for name in NAMES if name in header), len(header))
    for row in file.rows:
        name = row.cells[place].strip() if place < len(row.cells) else ""
        yield {"line": row.line, "smiles": row.text, "name": name}
