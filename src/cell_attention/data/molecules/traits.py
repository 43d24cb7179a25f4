"""Traits of a molecule that tell whether a model has seen its like: charges and radicals."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rdkit import Chem, rdBase


@dataclass(frozen=True)
class Traits:
    """What is compared with the molecules of a training."""

    charge: int
    """Net charge."""
    atom_charges: tuple[int, ...]
    """The formal charges of its atoms, each once."""
    radicals: int
    """Number of unpaired electrons."""


def traits_of(molecule: Any) -> Traits:
    """Return the traits of an RDKit molecule."""
    charges, radicals = set(), 0
    for atom in molecule.GetAtoms():
        charges.add(atom.GetFormalCharge())
        radicals += atom.GetNumRadicalElectrons()
    return Traits(Chem.GetFormalCharge(molecule), tuple(sorted(charges)), radicals)


def reread(texts: Iterable[str]) -> Iterator[Any]:
    """Yield the molecules of canonical SMILES; leave out those that RDKit cannot read again."""
    as_written: Any = Chem.SmilesParserParams()
    as_written.removeHs = False  # hydrogens that are still atoms were kept when they were read
    with rdBase.BlockLogs():
        for text in texts:
            molecule = Chem.MolFromSmiles(text, as_written)
            if molecule is not None:
                yield molecule
