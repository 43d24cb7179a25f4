"""Molecules rebuilt from graphs whose features are elements and bond types, as in MUTAG and PTC."""

from typing import Any

import torch
from rdkit import Chem, rdBase
from torch import Tensor

from cell_attention.data.molecules.features import featuriser_of
from cell_attention.errors import InputError, MoleculeError
from cell_attention.topology.complex import CellComplex


def decoded(graphs: CellComplex, featuriser: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """(N,) atomic numbers and (E,) RDKit's bond types of the one-hot columns."""
    known = featuriser_of(featuriser)
    if len(known.atoms) != 1 or graphs.edge_features is None:
        raise InputError("the features must be elements and bond types only")
    elements = torch.tensor(known.atoms[0].known)[graphs.node_features.argmax(1)]
    return elements, torch.tensor(known.bonds[0].known)[graphs.edge_features.argmax(1)]


def rebuilt(graph: CellComplex, featuriser: dict[str, Any], strict: bool = True) -> Chem.Mol:
    """Rebuild an RDKit molecule: node i is atom i, edge j is bond j; else raise `MoleculeError`.

    TU sets hold no charges. Nitrogen with four bonds is given a positive charge and the singly
    bonded oxygen on it a negative one; any other charge is unknown.

    strict: whether RDKit must accept the molecule; if not, there is always one to draw.
    """
    if graph.num_complexes != 1:
        raise InputError(f"expected one graph, got {graph.num_complexes}")
    elements, bonds = decoded(graph, featuriser)
    molecule = Chem.RWMol()
    for number in elements.tolist():
        molecule.AddAtom(Chem.Atom(number))
    for (u, v), kind in zip(graph.edge_nodes.T.tolist(), bonds.tolist(), strict=True):
        molecule.AddBond(u, v, Chem.BondType.values[kind])
        bond = molecule.GetBondBetweenAtoms(u, v)
        if bond.GetBondType() == Chem.BondType.AROMATIC:
            for part in (bond, bond.GetBeginAtom(), bond.GetEndAtom()):
                part.SetIsAromatic(True)
    for atom in molecule.GetAtoms():
        if _is_full_nitrogen(atom):
            atom.SetFormalCharge(1)
        elif atom.GetAtomicNum() == 8 and atom.GetDegree() == 1 and _order(atom) == 1.0:
            atom.SetFormalCharge(-1 if _is_full_nitrogen(atom.GetNeighbors()[0]) else 0)
    with rdBase.BlockLogs():
        try:
            Chem.SanitizeMol(molecule)
        except (ValueError, RuntimeError) as error:
            if strict:
                raise MoleculeError(str(error)) from None
            molecule.UpdatePropertyCache(strict=False)
            Chem.FastFindRings(molecule)
    return molecule.GetMol()


def _is_full_nitrogen(atom: Any) -> bool:
    return atom.GetAtomicNum() == 7 and _order(atom) >= 4.0


def _order(atom: Any) -> float:
    return float(sum(bond.GetBondTypeAsDouble() for bond in atom.GetBonds()))
