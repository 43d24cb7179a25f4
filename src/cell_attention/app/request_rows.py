"""The rows of a request: its molecules or graphs, within the limits of the server."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rdkit import Chem

from cell_attention.app.limits import ServeLimits
from cell_attention.data.file_format import Columns
from cell_attention.data.molecules.files import MoleculeFile, Row
from cell_attention.data.molecules.molecule_column import name_column
from cell_attention.errors import CellAttentionError, InputError, LargeMoleculeError
from cell_attention.inference.chunks import Chunk, molecule_chunks
from cell_attention.inference.model_folder import Model
from cell_attention.inference.molecule_list import MoleculeList
from cell_attention.inference.rows import OpenedRows
from cell_attention.topology.graphs import RawGraphs, columns, join
from cell_attention.topology.limits import Limits
from cell_attention.topology.polygons import attach_where_possible

Job = dict[str, Any]
STEPS = 50_000_000
"""Nodes that the search for polygons may look at: a fraction of a second."""
BEYOND = "the limit of this server"
"""How the reason of a row ends that a limit refuses."""
_ADVICE = re.compile(r"; [^;]*\bLimits\.\w+.*$")
"""What lifting advises, which a client of the server cannot do."""


def open_request(model: Model, job: Job, limits: ServeLimits) -> OpenedRows:
    """Open the molecules or graphs of a request."""
    bounds = Limits(polygons=limits.polygons, pairs=limits.pairs, steps=STEPS)
    if job["graphs"] is not None:
        chunk = _graph_chunk(model, job["graphs"], limits, bounds=bounds)
        return OpenedRows(("graph",), [_without_advice(chunk)])
    source = _Listed(job["smiles"], job["names"] or (), limits.atoms)
    header = ("smiles", "name") if job["names"] else ("smiles",)
    chunks = molecule_chunks(model, source, limits=bounds)
    return OpenedRows(header, map(_without_advice, chunks))


def _without_advice(chunk: Chunk) -> Chunk:
    reasons = tuple(_ADVICE.sub(f", {BEYOND}", reason) for reason in chunk.reasons)
    return replace(chunk, reasons=reasons)


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
        try:
            molecule = super().molecule(row)
            if molecule.GetNumAtoms() > self.most_atoms:
                raise LargeMoleculeError(f"more than {self.most_atoms:,} atoms")
        except LargeMoleculeError as error:
            raise LargeMoleculeError(f"{error}, {BEYOND}") from None
        return molecule


def _graph_chunk(
    model: Model, graphs: Sequence[Job], limits: ServeLimits, *, bounds: Limits
) -> Chunk:
    """Read and lift graphs; keep the reason where one cannot be."""
    reasons, good, owners = [""] * len(graphs), [], []
    for number, graph in enumerate(graphs):
        try:
            if len(graph["nodes"]) > limits.atoms:
                raise InputError(f"more than {limits.atoms:,} nodes, {BEYOND}")
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


def listed_rows(model: Model, job: Job, limits: ServeLimits) -> list[dict[str, Any]]:
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
        raise InputError(f"{name} has more than {limits.rows:,} rows, {BEYOND}")
    return rows


def _rows(model: Model, path: Path, smiles_column: str | None) -> Iterator[dict[str, Any]]:
    usual = str(model.provenance.get("molecule_column", ""))
    file = MoleculeFile(path, Columns(smiles_column), usual=usual)
    place = name_column(file.header, file.molecules)
    for row in file.rows:
        name = row.cells[place].strip() if place is not None and place < len(row.cells) else ""
        yield {"line": row.line, "smiles": row.text, "name": name}
