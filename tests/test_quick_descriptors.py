"""Descriptors that are computed for many molecules at once: what RDKit's functions return."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors, rdMolDescriptors

from cell_attention.data.molecules import crippen
from cell_attention.data.molecules.atoms import Tables, complete
from cell_attention.data.molecules.descriptors import QUICK, descriptor_table
from cell_attention.data.molecules.patterns import Atoms
from cell_attention.data.molecules.quick import AT_ONCE

ODD = (
    "NCCS", "O=C(CNc1nncs1)NO", "CCc1occc(=O)c1O", "COC1CC(Br)(C#N)C1", "CN(=O)=O", "O", "S", "P",
    "C=CS(=O)(=O)O", "Cc1cc(C2=CSC3=NCCN23)ccc1Cl", "C[Si](C)(C)C(I)=CCO", "[HH]", "[H+]", "OO",
    "Nc1ncnc2c1nnn2C1C=CC(CP(=O)(O)O)C1", "[Cl-].[Pt].[S-]c1ncccn1", "N=[N+]=[N-]", "[NH4+]",
    "Fc1cccc(Br)c1", "CC(C)(C)Cc1cssc1=S", "CC1(C)CCCOc2ccc(C(=O)O)cc21", "[I+]", "C=C=C",
    "CN(C)c1ccc(C=Cc2cc[n+](C)c3ccccc23)cc1", "[OH3+]", "C[N+]1(C)CCCC1C(=O)[O-]", "C=[N+]=[N-]",
    "CCOC(=O)Nc1ccc2[nH]c(-c3cscn3)nc2c1", "C(Cl)(Cl)Cl", "BrC(Br)Br", "FC(F)(F)C", "[Li+].[H-]",
    "CCCCC#C[I+]c1ccccc1.O=S(O)(=[OH+])C(F)(F)F", "C=c1ccccc1=C", "[O-]S(C)(=O)=O", "C[NH3+]",
    "Cc1ccc([Hg-]2[S+]=C(NNc3ccccc3)[SH+]2)cc1", "N#[N+]c1nc2c(O)ncnc2[nH]1", "CC#N", "O=NC",
    "N[Co-4](N)(N)(N)(N)[NH+]=[N+]=[NH2+].[IH2+]", "CNCCC=C1c2ccccc2CCc3ccccc13", "O=C=O", "C=O",
    "CN(C)c1c([O-])c(=[N+](C)C)c1=O", "COc1ccc(N(c2ccc(C#N)cc2)c2ccc(C#N)cc2)cc1", "CS(C)=O",
    "C.N=C1CSC2=NC3=C(CCCC3=Cc3ccccc3)C(c3ccccc3)N12", "C[N+](C)(C)[O-]", "CC(=O)C", "CC(N)=O",
    "F[B-](F)(F)F.[H][H-][B-]1([H-][H])[n+]2ccccc2-c2cccc[n+]21", "CO[2H]", "O=Cc1ccccc1", "[Fe]",
    "O=C(c1ccccc1)c1ccccc1", "NC(N)=O", "O=CN", "[N-]=[N+]=NC", "[SeH]C", "C[N-]C", "**", "*CC*",
    "CC(C)(C)OC(=O)NCC(F)(F)F", "CCN(CC)S(=O)(=O)c1ccc(cc1)C(=O)NCC#C", "[BH4-].[Na+]", "N",
)  # fmt: skip


def rdkits(name: str, molecule: Chem.Mol) -> float:
    """What RDKit's own function of this name returns, on a copy without stored results."""
    own = Chem.Mol(molecule)
    if name == "FormalCharge":
        return float(Chem.GetFormalCharge(own))
    return float(dict(Descriptors.descList)[name](own))


def atoms_of(molecules: list[Chem.Mol]) -> Atoms:
    tables = Tables(molecules)
    return Atoms.of(tables.nodes[:, [0, 2, 3, 5]], tables.edges[:, [0, 1, 2, 4]])


def require_equal(molecules: list[Chem.Mol]) -> None:
    found = descriptor_table(molecules, QUICK)
    for row, molecule in zip(found, molecules, strict=True):
        for name in AT_ONCE:
            value, expected = row[QUICK.index(name)], rdkits(name, molecule)
            if not math.isfinite(expected):
                assert math.isnan(value), (name, Chem.MolToSmiles(molecule))
            else:
                said = (name, Chem.MolToSmiles(molecule), value, expected)
                assert value == pytest.approx(expected, rel=1e-9, abs=1e-9), said


@pytest.mark.filterwarnings("ignore")  # RDKit divides by zero on dummy atoms
def test_descriptors_of_odd_molecules_are_those_of_rdkits_functions() -> None:
    assert {*AT_ONCE} <= {*QUICK}
    require_equal([Chem.MolFromSmiles(text) for text in ODD])


def test_descriptors_of_hydrogens_that_are_atoms_are_those_of_rdkits_functions() -> None:
    require_equal([Chem.AddHs(Chem.MolFromSmiles(text)) for text in ODD[:16]])


def test_descriptors_of_real_molecules_are_those_of_rdkits_functions(data_dir: Path) -> None:
    with (data_dir / "MoleculeNet" / "BBBP.csv").open(encoding="utf-8") as file, rdBase.BlockLogs():
        texts = [row["smiles"] for row in csv.DictReader(file)]
        molecules = [Chem.MolFromSmiles(text) for text in texts[::7]]
    require_equal([molecule for molecule in molecules if molecule is not None])


def test_the_odd_molecules_have_atoms_of_every_type() -> None:
    molecules = [complete(Chem.MolFromSmiles(text)) for text in ODD]
    atoms = atoms_of(molecules)
    tables = crippen._HEAVY, crippen._HYDROGENS
    heavy, borne = (crippen._first(atoms, table) for table in tables)
    names = [[name for name, _, _ in table if name[0] != "$"] for table in tables]
    seen = {names[0][place] for place in heavy if place >= 0}
    seen |= {names[1][place] for place in borne[atoms.hydrogens > 0]}
    assert seen == {*crippen._ADDS}


def test_contributions_of_atoms_are_those_of_rdkit() -> None:
    molecules = [complete(Chem.MolFromSmiles(text)) for text in ODD]
    atoms = atoms_of(molecules)
    expected = [row for one in molecules for row in rdMolDescriptors._CalcCrippenContribs(one)]
    np.testing.assert_allclose(crippen.contributions(atoms)[0], np.array(expected), atol=1e-12)


def test_a_molecule_alone_and_among_others_has_the_same_descriptors() -> None:
    molecules = [Chem.MolFromSmiles(text) for text in ODD]
    together = descriptor_table(molecules, QUICK)
    alone = np.concatenate([descriptor_table([one], QUICK) for one in molecules])
    np.testing.assert_array_equal(together, alone)
