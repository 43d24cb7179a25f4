"""Atoms and bonds of many molecules as tables of numbers, copied out of RDKit."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem, rdBase

Table = NDArray[np.int64]

NODE = ("element", "degree", "charge", "hydrogens", "hybridisation", "aromatic", "ring")
"""Columns of a table of atoms; `hydrogens` are those that are no atoms."""
EDGE = ("begin", "end", "type", "conjugated", "ring", "stereo")
"""Columns of a table of bonds."""
_ATOM: tuple[Callable[[Any], Any], ...] = (
    Chem.Atom.GetAtomicNum, Chem.Atom.GetFormalCharge, Chem.Atom.GetTotalNumHs,
    Chem.Atom.GetHybridization, Chem.Atom.GetIsAromatic, Chem.Atom.IsInRing,
)  # fmt: skip
"""What reads the columns of NODE; the degree follows from the bonds."""
_BOND: tuple[Callable[[Any], Any], ...] = (
    Chem.Bond.GetBeginAtomIdx, Chem.Bond.GetEndAtomIdx, Chem.Bond.GetBondType,
    Chem.Bond.GetIsConjugated, Chem.Bond.IsInRing, Chem.Bond.GetStereo,
)  # fmt: skip
"""What reads the columns of EDGE."""


class Tables:
    """The atoms and bonds of some molecules, numbered through."""

    nodes: Table
    """(atoms, NODE)"""
    edges: Table
    """(bonds, EDGE)"""
    sizes: Table
    """(molecules, 2) the number of atoms and of bonds of every molecule."""

    def __init__(self, molecules: Iterable[Any]) -> None:
        """Copy the molecules, with their hydrogens and rings counted."""
        # By number and property by property: a call per atom that RDKit does not make costs as
        # much as a call of RDKit.
        atoms: tuple[list[Any], ...] = tuple([] for _ in _ATOM)
        bonds: tuple[list[Any], ...] = tuple([] for _ in _BOND)
        sizes: list[tuple[int, int]] = []
        for molecule in molecules:
            found = [*map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms()))]
            for values, read in zip(atoms, _ATOM, strict=True):
                values.extend(map(read, found))
            bound = [*map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))]
            for values, read in zip(bonds, _BOND, strict=True):
                values.extend(map(read, bound))
            sizes.append((len(found), len(bound)))
        element, *others = (np.asarray(values, np.int64) for values in atoms)
        self.edges = np.stack([np.asarray(values, np.int64) for values in bonds], axis=1)
        self.sizes = np.asarray(sizes, np.int64).reshape(-1, 2)
        of_atoms, of_bonds = self.sizes.T
        self.edges[:, :2] += np.repeat(of_atoms.cumsum() - of_atoms, of_bonds)[:, None]
        degree = np.bincount(self.edges[:, :2].ravel(), minlength=len(element))
        self.nodes = np.stack([element, degree, *others], axis=1)


def complete(molecule: Any) -> Any:
    """Return the molecule, or a copy with hydrogens and rings counted if they are not yet."""
    with rdBase.BlockLogs():
        try:
            molecule.GetRingInfo().NumRings()
            if not molecule.NeedsUpdatePropertyCache():
                return molecule
        except RuntimeError:  # its rings have not been searched
            pass
        counted = Chem.Mol(molecule)
        counted.UpdatePropertyCache(strict=False)
        Chem.FastFindRings(counted)
    return counted
