"""Files of molecules in chunks, made ready for a trained model: every row an answer or a reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from rdkit import Chem
from torch import Tensor

from cell_attention.data.molecules.features import Featurised, Featuriser, featurise, featuriser_of
from cell_attention.data.molecules.files import MoleculeFile, Row
from cell_attention.data.molecules.molecule import MoleculeError
from cell_attention.data.molecules.molecule_set import largest_ring, with_polygons
from cell_attention.errors import DataError
from cell_attention.inference.model_folder import Model
from cell_attention.topology.complex import CellComplex

AT_ONCE = 512
"""Rows of a chunk: memory does not grow with the file."""


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file, and the complexes of those that are molecules."""

    rows: tuple[Row, ...]
    complexes: CellComplex
    place: tuple[int | None, ...]
    """Complex of every row, None where there is none."""
    reasons: tuple[str, ...]
    """Why a row has none; empty where it has one."""
    warnings: tuple[str, ...]
    """What the model has not learned about a row; empty where there is nothing to say."""
    molecules: tuple[Any, ...] = ()
    """Those of the complexes; none where the source is no file of molecules."""


def chunks(model: Model, file: MoleculeFile, at_once: int = AT_ONCE) -> Iterator[Chunk]:
    """All rows of a file in their order, some at a time."""
    rows: list[Row] = []
    for row in file.rows():
        rows.append(row)
        if len(rows) == at_once:
            yield _chunk(model, file, rows)
            rows = []
    if rows:
        yield _chunk(model, file, rows)


def molecule_features(model: Model) -> Featuriser:
    """The featuriser that a model needs; refused where its columns are not those of its network."""
    found = featuriser_of(model.featuriser)
    sizes = model.network.node_features, model.network.edge_features
    if found.widths != sizes:
        raise DataError(f"the model's features have {found.widths} columns, its network {sizes}")
    return found


def _chunk(model: Model, file: MoleculeFile, rows: Sequence[Row]) -> Chunk:
    reasons, molecules, owners = [""] * len(rows), [], []
    for number, row in enumerate(rows):
        try:
            molecules.append(file.molecule(row))
            owners.append(number)
        except MoleculeError as error:
            reasons[number] = str(error)
    made = featurise(molecules, molecule_features(model))
    complexes, faults = with_polygons(made.graphs, model.network.config.max_polygon)
    place: list[int | None] = [None] * len(rows)
    warnings = [""] * len(rows)
    told = unfamiliar(model, made, molecules)
    kept: list[Any] = []
    for number, fault, text, molecule in zip(owners, faults, told, molecules, strict=True):
        warnings[number] = text
        if fault:
            reasons[number] = fault
        else:
            place[number] = len(kept)
            kept.append(molecule)
    return Chunk(tuple(rows), complexes, tuple(place), tuple(reasons), tuple(warnings), tuple(kept))


def unfamiliar(model: Model, made: Featurised, molecules: Sequence[Any]) -> list[str]:
    """Per molecule: elements and bond types that were not in training, rings that are no
    polygons.
    """
    said: list[list[str]] = [[] for _ in molecules]
    table, longest = Chem.GetPeriodicTable(), model.network.config.max_polygon
    graphs = made.graphs
    for graph, number in _unseen(made.elements, graphs.node_complex, model.seen.get("elements")):
        said[graph].append(f"element {table.GetElementSymbol(number)} was not in training")
    for graph, number in _unseen(made.bonds, graphs.edge_complex, model.seen.get("bonds")):
        said[graph].append(
            f"{Chem.BondType.values[number].name.lower()} bonds were not in training"
        )
    for graph, molecule in enumerate(molecules):
        ring = largest_ring(molecule)
        if ring > longest:
            said[graph].append(f"a ring of {ring} atoms is no polygon (at most {longest})")
    return ["; ".join(texts) for texts in said]


def _unseen(
    values: Tensor, graph: Tensor, known: tuple[int, ...] | None
) -> Iterator[tuple[int, int]]:
    """(graph, value) of what was not in training, each once; nothing where that is not known."""
    if known is not None:
        new = ~torch.isin(values, torch.tensor(known, dtype=values.dtype))
        rows = new.nonzero().flatten().tolist()
        yield from sorted({(int(graph[row]), int(values[row])) for row in rows})
