"""Molecules as graphs: RDKit atoms become nodes, bonds become edges."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from rdkit import Chem, rdBase

from cell_attention.errors import InputError
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.graphs import RawGraphs, join

ELEMENTS = (1, 5, 6, 7, 8, 9, 14, 15, 16, 17, 34, 35, 53)
"""Atomic numbers with a column each: H B C N O F Si P S Cl Se Br I; one more for any other."""
BONDS = (1.0, 2.0, 3.0, 1.5)
"""Bond orders with a column each: single, double, triple, aromatic; one more for any other."""
FEATURISER = {"kind": "molecule", "version": 1, "elements": list(ELEMENTS), "bonds": list(BONDS)}
"""What the columns are, for files of models."""


def parse_smiles(smiles: str) -> Chem.Mol | None:
    """The molecule, or None if RDKit cannot read it; RDKit's own log stays silent."""
    with rdBase.BlockLogs():
        return Chem.MolFromSmiles(smiles)


def molecule_graphs(molecules: Iterable[Any]) -> CellComplex:
    """One graph per molecule, nodes in RDKit's order; features are element and bond type."""
    atoms: list[int] = []
    bonds: list[tuple[int, int, float]] = []
    counts: list[int] = []
    for number, thing in enumerate(molecules):
        molecule = parse_smiles(thing) if isinstance(thing, str) else thing
        if molecule is None:
            raise InputError(f"molecule {number}: RDKit cannot read {thing!r}")
        first = len(atoms)
        atoms.extend(atom.GetAtomicNum() for atom in molecule.GetAtoms())
        bonds.extend(
            (
                first + bond.GetBeginAtomIdx(),
                first + bond.GetEndAtomIdx(),
                bond.GetBondTypeAsDouble(),
            )
            for bond in molecule.GetBonds()
        )
        counts.append(len(atoms) - first)
    table = np.asarray(bonds, np.float64).reshape(-1, 3)
    raw = RawGraphs(
        num_nodes=len(atoms),
        edge_index=torch.from_numpy(np.ascontiguousarray(table[:, :2].T.astype(np.int64))),
        node_features=_one_hot(np.asarray(atoms, np.int64), ELEMENTS),
        edge_features=_one_hot(table[:, 2], BONDS),
        node_complex=torch.arange(len(counts)).repeat_interleave(
            torch.tensor(counts, dtype=torch.int64)
        ),
        num_graphs=len(counts),
        lists_once=True,
    )
    return join([raw]).complexes


def _one_hot(values: Any, known: tuple[float, ...]) -> torch.Tensor:
    """(rows, len(known) + 1) a column per known value and one for all others."""
    columns = values[:, None] == np.asarray(known)[None, :]
    return torch.from_numpy(
        np.concatenate([columns, ~columns.any(axis=1, keepdims=True)], axis=1)
    ).float()
