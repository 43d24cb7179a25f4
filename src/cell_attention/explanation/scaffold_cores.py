"""The Bemis–Murcko scaffolds of explained molecules, and how molecules are drawn on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rdkit import Chem, rdBase
from rdkit.Chem import rdDepictor

from cell_attention.data.splits.scaffolds import scaffolds


@dataclass(frozen=True)
class Core:
    """The scaffold of a molecule, and where it lies in it."""

    smiles: str
    """The same text for all molecules with this scaffold; empty without a ring."""
    atoms: tuple[int, ...]
    """Atoms of the molecule, in the order of the scaffold's."""
    drawn: Any = None
    """The scaffold with its coordinates; None if there is none to lay the molecule on."""

    def place(self, molecule: Chem.Mol) -> bool:
        """Give a molecule the coordinates in which its scaffold lies like that of the others;
        return whether this was possible.
        """
        if self.drawn is None:
            return False
        pairs = list(enumerate(self.atoms))
        align: Any = rdDepictor.GenerateDepictionMatching2DStructure
        try:
            align(molecule, self.drawn, pairs)
        except (ValueError, RuntimeError):
            return False
        return True


def cores_of(molecules: Sequence[Chem.Mol]) -> list[Core]:
    """Return the core of every molecule; the scaffold of equal ones is laid out once."""
    with rdBase.BlockLogs():
        names = scaffolds([Chem.MolToSmiles(molecule) for molecule in molecules])
        laid_out = {name: _laid_out(name) for name in {*names}}
        return [_core(m, name, laid_out[name]) for m, name in zip(molecules, names, strict=True)]


def _laid_out(name: str) -> Any:
    scaffold = Chem.MolFromSmiles(name) if name else None
    if scaffold is not None:
        rdDepictor.Compute2DCoords(scaffold, canonOrient=True)
    return scaffold


def _core(molecule: Chem.Mol, name: str, drawn: Any) -> Core:
    if not name:
        return Core("", ())
    atoms = molecule.GetSubstructMatch(drawn) if drawn is not None else ()
    if atoms:
        return Core(name, tuple(atoms), drawn)
    # Without its substituents a ring may have lost what made it aromatic: its rings alone.
    rings = {atom for ring in molecule.GetRingInfo().AtomRings() for atom in ring}
    return Core(name, tuple(sorted(rings)))
