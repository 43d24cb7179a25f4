"""Molecules as graphs: RDKit atoms become nodes, bonds become edges, both with feature columns.

There are two featurisers: the full one for files of molecules, and that of TU sets whose labels are
known to be elements and bond types, so that a network trained on MUTAG can read SMILES.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from rdkit import Chem, rdBase
from torch import Tensor

from cell_attention.data.molecules.atoms import Table, Tables, complete
from cell_attention.data.molecules.descriptors import ALL, QUICK, Described, descriptor_record
from cell_attention.data.molecules.molecule import read_molecule
from cell_attention.errors import InputError, MoleculeError
from cell_attention.topology.complex import CellComplex

VERSION = 2
"""Version of the full featuriser; it is raised whenever a column changes."""

DESCRIPTORS = "descriptors"
"""The entry of a record for the descriptors of whole molecules, where there are any."""


@dataclass(frozen=True)
class Column:
    """A property of atoms or bonds and its known values, each with a column of zeros and ones."""

    name: str
    known: tuple[int, ...]
    other: bool = True
    """Whether all other values share one more column; otherwise they have none."""


_HYBRIDISATIONS = ("S", "SP", "SP2", "SP3", "SP3D", "SP3D2")
_BOND_TYPES = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC", "DATIVE")
_FLAG = (1,)

ATOMS = (
    Column("element", (1, 3, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16, 17, 19, 20, 26, 29, 30, 33, 34, 35,
                       50, 53)),
    Column("degree", (0, 1, 2, 3, 4, 5)),
    Column("charge", (-2, -1, 0, 1, 2)),
    Column("hydrogens", (0, 1, 2, 3)),
    Column("hybridisation", tuple(int(Chem.HybridizationType.names[n]) for n in _HYBRIDISATIONS)),
    Column("aromatic", _FLAG, other=False),
    Column("ring", _FLAG, other=False),
)  # fmt: skip
"""Properties of an atom, without chirality, whose code in RDKit depends on the order of atoms."""
BONDS = (
    Column("type", tuple(int(Chem.BondType.names[name]) for name in _BOND_TYPES)),
    Column("conjugated", _FLAG, other=False),
    Column("ring", _FLAG, other=False),
    Column("stereo", tuple(int(Chem.BondStereo.names[n]) for n in ("STEREONONE", "STEREOZ", "STEREOE"))),  # noqa: E501
)  # fmt: skip
"""Properties of a bond."""


@dataclass(frozen=True)
class Featuriser:
    """Which columns the nodes and edges of a molecule have, and the molecule as a whole."""

    atoms: tuple[Column, ...] = ATOMS
    bonds: tuple[Column, ...] = BONDS
    descriptors: tuple[str, ...] = ()
    """Names of RDKit's descriptors of the whole molecule."""
    columns: tuple[str, ...] = ()
    """Columns of a table with further descriptors, after RDKit's."""

    @property
    def widths(self) -> tuple[int, int]:
        """Number of columns of a node and of an edge."""
        atoms, bonds = (
            sum(len(column.known) + column.other for column in part)
            for part in (self.atoms, self.bonds)
        )
        return atoms, bonds

    @property
    def record(self) -> dict[str, Any]:
        """The full featuriser as model files store it."""
        parts = {"atoms": self.atoms, "bonds": self.bonds}
        listed = {part: {c.name: list(c.known) for c in parts[part]} for part in parts}
        record = {"kind": "molecule", "version": VERSION, **listed}
        if self.descriptors or self.columns:
            described = descriptor_record(self.descriptors)
            record[DESCRIPTORS] = {**described, "columns": list(self.columns)}
        return record


@dataclass(frozen=True)
class Featurised:
    """Molecules as graphs, with the atom of every node and the edge of every bond."""

    graphs: CellComplex
    """Nodes in RDKit's order of atoms, molecule after molecule; no polygons yet."""
    elements: Tensor
    """(N,) atomic number of every node."""
    bonds: Tensor
    """(E,) RDKit's bond type of every edge."""
    bond_edge: Tensor
    """(E,) edge of every bond, molecule after molecule in RDKit's order of bonds."""


def featuriser_of(record: dict[str, Any]) -> Featuriser:
    """Return the featuriser that a model was trained with; refuse one that cannot be used."""
    full, given = Featuriser(), dict(record)
    described = given.pop(DESCRIPTORS, None)
    if given == full.record and described is None:
        return full
    if given == full.record:
        names, columns = (
            described.get(name) if isinstance(described, dict) else None
            for name in ("names", "columns")
        )
        for part in (names, columns):
            if not isinstance(part, list) or not all(isinstance(name, str) for name in part):
                raise InputError("descriptors must hold lists of names and columns")
        unknown = sorted(set(names or ()) - {*QUICK, *ALL})
        if unknown:
            raise InputError(
                f"the model needs the descriptor {unknown[0]!r} of RDKit {described.get('rdkit')}, "
                "which this RDKit does not have"
            )
        return Featuriser(descriptors=tuple(names or ()), columns=tuple(columns or ()))
    if record.get("kind") == "molecule":
        raise InputError(
            f"the model has version {record.get('version')} of the molecule features, this program "
            f"version {VERSION}; train it again"
        )
    elements, bonds = record.get("elements"), record.get("bonds")
    if not elements or not bonds or "node_attributes" in record or "edge_attributes" in record:
        raise InputError(
            "the model was trained on graphs whose labels are not known to be atoms and bonds: it "
            "cannot read molecules"
        )
    table = Chem.GetPeriodicTable()
    if not isinstance(elements, list) or not isinstance(bonds, list):
        raise InputError("the model's elements and bonds must be lists")
    try:
        with rdBase.BlockLogs():
            numbers = tuple(table.GetAtomicNumber(name) for name in elements)
        types = tuple(int(Chem.BondType.names[name.upper()]) for name in bonds)
    except (RuntimeError, KeyError, TypeError, AttributeError):
        raise InputError(f"unknown name in elements {elements} or bonds {bonds}") from None
    return Featuriser((Column("element", numbers, False),), (Column("type", types, False),))


def featurise(
    molecules: Iterable[Any],
    featuriser: Featuriser = Featuriser(),
    cells: Sequence[Sequence[float]] = (),
) -> Featurised:
    """Turn molecules, given as RDKit molecules or as text, into one graph each.

    cells: the featuriser's `columns` of every molecule; may grow while molecules are read.
    """
    described = Described(featuriser.descriptors)

    def read() -> Iterator[Any]:
        for number, thing in enumerate(molecules):
            try:
                molecule = complete(read_molecule(thing) if isinstance(thing, str) else thing)
            except MoleculeError as error:
                raise InputError(f"molecule {number}: {error}") from None
            described.add(molecule)
            yield molecule

    tables = Tables(read())
    nodes, edges = tables.nodes, tables.edges
    ends = np.sort(edges[:, :2], axis=1)
    order = np.lexsort(ends.T[::-1])  # the canonical order of edges; a molecule lists each once
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    edge_nodes = torch.from_numpy(np.ascontiguousarray(ends[order].T))
    count = len(tables.sizes)
    node_complex = torch.arange(count).repeat_interleave(torch.from_numpy(tables.sizes[:, 0]))
    nothing = torch.empty(0, dtype=torch.int64)
    graphs = CellComplex(
        node_features=_one_hot(nodes, ATOMS, featuriser.atoms),
        edge_nodes=edge_nodes,
        polygon_edges=nothing.expand(2, 0),
        polygon_signs=nothing.to(torch.int8),
        node_complex=node_complex,
        edge_complex=node_complex[edge_nodes[0]],
        polygon_complex=nothing,
        num_complexes=count,
        edge_features=_one_hot(edges[order, 2:], BONDS, featuriser.bonds),
        complex_features=_of_whole(
            featuriser, count, described=described.table(tables), cells=cells
        ),
    )
    return Featurised(
        graphs,
        torch.from_numpy(nodes[:, 0].copy()),
        torch.from_numpy(edges[order, 2]),
        torch.from_numpy(place),
    )


def molecule_graphs(molecules: Iterable[Any]) -> CellComplex:
    """Turn molecules into one graph each, with the full features."""
    return featurise(molecules).graphs


def _of_whole(
    featuriser: Featuriser, count: int, *, described: Any, cells: Sequence[Sequence[float]]
) -> Tensor | None:
    """(molecules, ·) descriptors, those of RDKit before the table's own; NaN where unknown."""
    if not (featuriser.descriptors or featuriser.columns):
        return None
    if featuriser.columns and len(cells) != count:
        raise InputError(f"the descriptors {', '.join(featuriser.columns)} need columns of a table")
    parts = [
        np.asarray(part, np.float64).reshape(count, len(names))
        for part, names in ((described, featuriser.descriptors), (cells, featuriser.columns))
        if names
    ]
    return torch.from_numpy(np.concatenate(parts, axis=1)).float()


def _one_hot(table: Table, columns: tuple[Column, ...], wanted: tuple[Column, ...]) -> Tensor:
    """(rows, ·) zeros and ones, a column per known value and one for all others."""
    places = {column.name: place for place, column in enumerate(columns)}
    parts = []
    for column in wanted:
        found = table[:, places[column.name], None] == np.asarray(column.known)[None, :]
        parts.append(found)
        if column.other:
            parts.append(~found.any(axis=1, keepdims=True))
    return torch.from_numpy(np.concatenate(parts, axis=1)).float()
