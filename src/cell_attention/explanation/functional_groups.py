"""Functional groups: every atom of a molecule belongs to exactly one, so that sums over groups add
up to the sum over all atoms.
"""

from functools import cache
from typing import Any

from rdkit import Chem, rdBase

from cell_attention.data.molecules.molecule import MOST_ATOMS

GROUPS: tuple[tuple[str, str], ...] = (
    ("nitro", "[NX3;$(N(=O)=O),$([N+](=O)[O-])](~[OX1])~[OX1]"),
    ("nitrate or nitrite ester", "[OX2][NX2]=[OX1]"),
    ("N-nitroso", "[NX3][NX2]=[OX1]"),
    ("nitroso", "[NX2]=[OX1]"),
    ("azide", "[#7]=[#7+]=[#7-]"),
    ("diazonium", "[NX2+]#[NX1]"),
    ("azo", "[NX2;$(N[#6])]=[NX2;$(N[#6])]"),
    ("isocyanate", "[NX2]=[CX2]=[OX1]"),
    ("isothiocyanate", "[NX2]=[CX2]=[SX1]"),
    ("nitrile", "[CX2]#[NX1]"),
    ("sulfonamide", "[SX4](=[OX1])(=[OX1])[NX3]"),
    ("sulfonic acid or ester", "[SX4](=[OX1])(=[OX1])[OX2,OX1-]"),
    ("sulfonyl halide", "[SX4](=[OX1])(=[OX1])[F,Cl,Br,I]"),
    ("sulfone", "[SX4](=[OX1])=[OX1]"),
    ("sulfoxide", "[#16X3]=[OX1]"),
    ("phosphate or phosphonate", "[PX4](=[OX1,SX1])([O,N,S])[O,N,S]"),
    ("phosphorus", "[#15]"),
    ("boron", "[#5]"),
    ("silicon", "[#14]"),
    ("acyl halide", "[CX3](=[OX1])[F,Cl,Br,I]"),
    ("anhydride", "[CX3](=[OX1])[OX2][CX3]=[OX1]"),
    ("imide", "[CX3](=[OX1])[NX3][CX3]=[OX1]"),
    ("urea", "[NX3][CX3](=[OX1])[NX3]"),
    ("carbamate", "[NX3][CX3](=[OX1])[OX2]"),
    ("carboxylic acid", "[CX3](=[OX1])[OX2H1,OX1-]"),
    ("ester", "[CX3](=[OX1])[OX2H0]"),
    ("thioester", "[CX3](=[OX1])[SX2]"),
    ("amide", "[CX3](=[OX1])[NX3]"),
    ("guanidine", "[NX3][CX3](=[NX2,NX3+])[NX3]"),
    ("amidine", "[NX3][CX3]=[NX2,NX3+]"),
    ("oxime", "[CX3]=[NX2][OX2]"),
    ("hydrazone", "[CX3]=[NX2][NX3]"),
    ("imine", "[CX3]=[NX2,NX3+]"),
    ("hydrazine", "[NX3][NX3]"),
    ("aldehyde", "[CX3H1,CX3H2]=[OX1]"),
    ("ketone or quinone", "[CX3;$(C([#6])[#6])]=[OX1]"),
    ("thiocarbonyl", "[#6X3]=[SX1]"),
    ("carbonyl, other", "[#6X3]=[OX1]"),
    ("epoxide", "[CX4]1[OX2][CX4]1"),
    ("aziridine", "[CX4]1[NX3][CX4]1"),
    ("peroxide", "[OX2][OX2]"),
    ("N-oxide", "[#7+][OX1-]"),
    ("phenol", "[OX2H1,OX1-;$(O-c)]"),
    ("alcohol", "[OX2H1,OX1-;$(O-[CX4])]"),
    ("hydroxyl, other", "[OX2H1;$(O~[*])]"),
    ("aromatic ether", "[OX2H0;$(O(-c)-[#6])]"),
    ("ether", "[OX2H0;$(O(-[#6])-[#6])]"),
    ("disulfide", "[#16X2][#16X2;!a]"),
    ("thiol", "[SX2H1,SX1-]"),
    ("thioether", "[SX2;$(S([#6])[#6])]"),
    ("quaternary ammonium", "[NX4+;H0]"),
    ("ammonium", "[NX4+]"),
    ("aromatic amine", "[NX3;$(N-c)]"),
    ("primary amine", "[NX3;H2;$(N-[#6])]"),
    ("secondary amine", "[NX3;H1;$(N(-[#6])-[#6])]"),
    ("tertiary amine", "[NX3;H0;$(N(-[#6])(-[#6])-[#6])]"),
    ("trifluoromethyl", "[CX4](F)(F)F"),
    ("aromatic halogen", "[F,Cl,Br,I;$(*-c)]"),
    ("aliphatic halogen", "[F,Cl,Br,I;$(*-[#6])]"),
    ("alkyne", "[CX2]#[CX2]"),
    ("alkene", "[CX3]=[CX3]"),
    ("benzene ring", "[c;$(c1ccccc1)]"),
    ("heteroaromatic ring", "[a;r5,r6,r7]"),
    ("aromatic atom, other", "[a]"),
    ("aliphatic ring", "[R]"),
    ("alkyl", "[CX4]"),
)
"""Names and SMARTS of the atoms of a group, the most specific first: an atom belongs to the first
one that it matches. Of the single atoms at the end, rings come before chains."""

OTHER = "other atoms"
"""The group of all atoms that belong to no other."""


@cache
def _patterns() -> tuple[tuple[str, Any], ...]:
    return tuple((name, Chem.MolFromSmarts(smarts)) for name, smarts in GROUPS)


def groups_of(molecule: Chem.Mol) -> list[str]:
    """Return the group of every atom. A match counts only if none of its atoms belongs to a group
    that stands before it, so that half a group is never counted.
    """
    found = [OTHER] * molecule.GetNumAtoms()
    with rdBase.BlockLogs():
        molecule = Chem.Mol(molecule)
        molecule.UpdatePropertyCache(strict=False)
        Chem.FastFindRings(molecule)
        for name, pattern in _patterns():
            for atoms in molecule.GetSubstructMatches(pattern, maxMatches=MOST_ATOMS):
                if all(found[atom] == OTHER for atom in atoms):
                    for atom in atoms:
                        found[atom] = name
    return found
