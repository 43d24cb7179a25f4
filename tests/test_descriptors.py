"""Descriptors of molecules: what RDKit's own functions say, one by one."""

import math

import numpy as np
import pytest
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors

from cell_attention.data.molecules import descriptors
from cell_attention.data.molecules.descriptors import (
    ALL,
    MOST_ATOMS,
    QUICK,
    descriptor_record,
    descriptor_table,
)
from cell_attention.errors import InputError

TEXTS = (
    "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
    "C[N+](C)(C)CC(=O)[O-]",
    "O=S(=O)(N)c1cc(Cl)c2NCNS(=O)(=O)c2c1",
    "CC(=O)Oc1ccccc1C(=O)O",
    "C1CC2CCC1C2",
    "C1CCC2(CC1)CCNC2",
    "F/C=C/[C@H](N)Br",
    "[Na+].[Cl-]",
    "C",
    "[H][H]",
    "[Xe]",
    "[Fe+2]",
    "*CC*",
)


def oracle(name: str, text: str) -> float:
    """One descriptor of one molecule by RDKit's function of that name, on a molecule of its own."""
    molecule = Chem.MolFromSmiles(text)
    if name == "FormalCharge":
        return float(sum(atom.GetFormalCharge() for atom in molecule.GetAtoms()))
    return float(dict(Descriptors.descList)[name](molecule))


@pytest.mark.filterwarnings("ignore")  # RDKit divides by zero on single atoms
@pytest.mark.parametrize("names", [QUICK, ALL], ids=["quick", "all"])
def test_every_descriptor_is_that_of_rdkits_function(names: tuple[str, ...]) -> None:
    found = descriptor_table([Chem.MolFromSmiles(text) for text in TEXTS], names)
    assert found.shape == (len(TEXTS), len(names))
    assert found.dtype == np.float64
    for row, text in zip(found, TEXTS, strict=True):
        for value, name in zip(row, names, strict=True):
            try:
                expected = oracle(name, text)
            except ZeroDivisionError:  # SPS of a molecule without carbon
                expected = math.nan
            if not math.isfinite(expected):
                assert math.isnan(value), (name, text)
            else:
                assert value == pytest.approx(expected, rel=1e-12), (name, text)
    assert np.isfinite(found[:7]).all()


def test_the_quick_set_is_small_and_the_other_is_what_rdkit_lists() -> None:
    assert len(set(QUICK)) == len(QUICK) < 70
    assert len(set(ALL)) == len(ALL) > 190
    assert {*QUICK} - {*ALL} == {"FormalCharge"}
    assert not any(name.startswith(("fr_", "Chi")) for name in QUICK)
    assert descriptor_record(QUICK) == {"rdkit": rdBase.rdkitVersion, "names": list(QUICK)}


def test_columns_have_the_order_that_was_asked_for_and_molecules_stay_as_they_are() -> None:
    names = ("RingCount", "MolMR", "BertzCT", "SMR_VSA7", "MolLogP")
    molecule = Chem.MolFromSmiles(TEXTS[0])
    (row,) = descriptor_table(iter([molecule]), names)
    assert row.tolist() == pytest.approx([oracle(name, TEXTS[0]) for name in names])
    assert not molecule.GetPropsAsDict(True, True).keys() & {"_crippenLogP", "_labuteASA"}
    assert descriptor_table([], names).shape == (0, 5)
    with pytest.raises(InputError, match="has no descriptor 'Mass'"):
        descriptor_table([molecule], ["Mass"])
    with pytest.raises(InputError, match="must not be repeated"):
        descriptor_table([molecule], ["TPSA", "TPSA"])


@pytest.mark.parametrize("names", [QUICK, ALL], ids=["quick", "all"])
def test_the_order_of_atoms_changes_nothing(names: tuple[str, ...]) -> None:
    for text in TEXTS[:7]:
        molecule = Chem.MolFromSmiles(text)
        others = Chem.MolToRandomSmilesVect(molecule, 3, randomSeed=7)
        found = descriptor_table([molecule, *map(Chem.MolFromSmiles, others)], names)
        np.testing.assert_allclose(found, found[:1].repeat(4, 0), rtol=1e-6, atol=1e-8)


def test_a_descriptor_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(molecule: Chem.Mol) -> float:
        if molecule.GetNumAtoms() < 3:
            raise OverflowError("math range error")
        return math.inf

    monkeypatch.setitem(descriptors._SINGLE, "TPSA", broken)
    for text in ("CO", "CCO"):
        (row,) = descriptor_table([Chem.MolFromSmiles(text)], QUICK)
        assert [name for name, value in zip(QUICK, row, strict=True) if value != value] == ["TPSA"]


def test_what_was_not_sanitised_has_the_descriptors_that_need_no_rings() -> None:
    raw = Chem.MolFromSmiles("c1ccccc1C", sanitize=False)
    (row,) = descriptor_table([raw], ("HeavyAtomCount", "RingCount", "MolLogP"))
    assert row[0] == 7
    assert math.isnan(row[1])


def test_numbers_beyond_float32_and_huge_molecules_are_unknown_and_take_no_time() -> None:
    chains = [Chem.MolFromSmiles("C" * count) for count in (60, 250, MOST_ATOMS + 1, 9_000)]
    ipc = descriptor_table(chains, ("Ipc",))[:, 0]
    assert np.isfinite(ipc).tolist() == [True, False, False, False]
    found = descriptor_table(chains, ALL)
    for place, name in enumerate(ALL):
        assert np.isfinite(found[2:, place]).tolist() == [name in QUICK] * 2, name
