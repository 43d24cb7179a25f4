"""Files of molecules in chunks, made ready for a trained model: every row an answer or a reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from rdkit import Chem

from cell_attention.data.featurise import featurise, featuriser_of
from cell_attention.data.molecule_files import MoleculeFile, Row
from cell_attention.data.molecule_sets import largest_ring
from cell_attention.data.molecules import MoleculeError
from cell_attention.errors import LimitError
from cell_attention.learn.checkpoint import Model
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.lifting import attach_polygons

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


def _chunk(model: Model, file: MoleculeFile, rows: Sequence[Row]) -> Chunk:
    reasons, molecules, owners = [""] * len(rows), [], []
    for number, row in enumerate(rows):
        try:
            molecules.append(file.molecule(row))
            owners.append(number)
        except MoleculeError as error:
            reasons[number] = str(error)
    complexes, faults = lifted(model, molecules)
    place: list[int | None] = [None] * len(rows)
    warnings = [""] * len(rows)
    told = unfamiliar(model, molecules)
    count = 0
    for number, fault, text in zip(owners, faults, told, strict=True):
        warnings[number] = text
        if fault:
            reasons[number] = fault
        else:
            place[number] = count
            count += 1
    return Chunk(tuple(rows), complexes, tuple(place), tuple(reasons), tuple(warnings))


def lifted(model: Model, molecules: Sequence[Any]) -> tuple[CellComplex, list[str]]:
    """The complexes of RDKit molecules as a model needs them; and per molecule why it is left out,
    or nothing.
    """
    made = featurise(molecules, featuriser_of(model.featuriser)).graphs
    longest = model.network.config.max_polygon
    faults = [""] * len(molecules)
    try:
        return attach_polygons(made, longest), faults
    except LimitError:  # of one molecule or more: these alone are left out
        for number in range(len(molecules)):
            try:
                attach_polygons(made[number : number + 1], longest)
            except LimitError as error:
                faults[number] = str(error)
    kept = torch.tensor([number for number, fault in enumerate(faults) if not fault]).long()
    return attach_polygons(made[kept], longest), faults


def unfamiliar(model: Model, molecules: Sequence[Any]) -> list[str]:
    """Per molecule: elements and bond types that were not in training, rings that are no
    polygons.
    """
    table, longest = Chem.GetPeriodicTable(), model.network.config.max_polygon
    elements = set(model.seen.get("elements", ()))
    bonds = set(model.seen.get("bonds", ()))
    found = []
    for molecule in molecules:
        said = []
        if elements:
            numbers = {atom.GetAtomicNum() for atom in molecule.GetAtoms()} - elements
            said += [f"element {table.GetElementSymbol(n)} was not in training" for n in sorted(numbers)]  # fmt: skip # noqa: E501
        if bonds:
            types = {bond.GetBondType() for bond in molecule.GetBonds()}
            new = sorted(str(kind).lower() for kind in types if int(kind) not in bonds)
            said += [f"{name} bonds were not in training" for name in new]
        ring = largest_ring(molecule)
        if ring > longest:
            said.append(f"a ring of {ring} atoms is no polygon (at most {longest})")
        found.append("; ".join(said))
    return found
