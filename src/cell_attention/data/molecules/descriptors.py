"""RDKit's 2D descriptors of molecules, as a table of numbers.

What RDKit cannot compute is NaN: a descriptor that fails, is infinite, or does not fit into float32
as learners store it (the information content Ipc of about 90 atoms and more).
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors, rdMolDescriptors

from cell_attention.data.file_format import NO_DESCRIPTORS
from cell_attention.errors import InputError

Compute = Callable[[Any], Sequence[float]]
Step = tuple[Callable[[Any], Any], list[int], list[int]]
"""A function of a molecule, the values to take from its result, and their columns; no values to
take from a single number."""

MOST_ATOMS = 300
"""Of a molecule with more heavy atoms only the QUICK descriptors are known: RDKit would spend
seconds on the others, and hours on the largest molecules."""
LARGEST = float(np.finfo(np.float32).max)


_VECTORS: tuple[tuple[tuple[str, ...], Compute], ...] = (
    (("MolLogP", "MolMR"), rdMolDescriptors.CalcCrippenDescriptors),
    (tuple(f"SlogP_VSA{part}" for part in range(1, 13)), rdMolDescriptors.SlogP_VSA_),
    (tuple(f"SMR_VSA{part}" for part in range(1, 11)), rdMolDescriptors.SMR_VSA_),
    (tuple(f"PEOE_VSA{part}" for part in range(1, 15)), rdMolDescriptors.PEOE_VSA_),
)
"""Descriptors that one call computes together, where RDKit's functions by name repeat the call."""
_SINGLE: dict[str, Callable[[Any], float]] = {
    "LabuteASA": rdMolDescriptors.CalcLabuteASA,
    "TPSA": rdMolDescriptors.CalcTPSA,
    "ExactMolWt": rdMolDescriptors.CalcExactMolWt,
    "FormalCharge": Chem.GetFormalCharge,
    "FractionCSP3": rdMolDescriptors.CalcFractionCSP3,
    "HallKierAlpha": rdMolDescriptors.CalcHallKierAlpha,
    "HeavyAtomCount": rdMolDescriptors.CalcNumHeavyAtoms,
    "NHOHCount": rdMolDescriptors.CalcNumLipinskiHBD,
    "NOCount": rdMolDescriptors.CalcNumLipinskiHBA,
    "NumAliphaticCarbocycles": rdMolDescriptors.CalcNumAliphaticCarbocycles,
    "NumAliphaticHeterocycles": rdMolDescriptors.CalcNumAliphaticHeterocycles,
    "NumAliphaticRings": rdMolDescriptors.CalcNumAliphaticRings,
    "NumAmideBonds": rdMolDescriptors.CalcNumAmideBonds,
    "NumAromaticCarbocycles": rdMolDescriptors.CalcNumAromaticCarbocycles,
    "NumAromaticHeterocycles": rdMolDescriptors.CalcNumAromaticHeterocycles,
    "NumAromaticRings": rdMolDescriptors.CalcNumAromaticRings,
    "NumBridgeheadAtoms": rdMolDescriptors.CalcNumBridgeheadAtoms,
    "NumHAcceptors": rdMolDescriptors.CalcNumHBA,
    "NumHDonors": rdMolDescriptors.CalcNumHBD,
    "NumHeteroatoms": rdMolDescriptors.CalcNumHeteroatoms,
    "NumHeterocycles": rdMolDescriptors.CalcNumHeterocycles,
    "NumRotatableBonds": rdMolDescriptors.CalcNumRotatableBonds,
    "NumSaturatedRings": rdMolDescriptors.CalcNumSaturatedRings,
    "NumSpiroAtoms": rdMolDescriptors.CalcNumSpiroAtoms,
    "RingCount": rdMolDescriptors.CalcNumRings,
}

QUICK = (*(name for names, _ in _VECTORS for name in names), *_SINGLE)
"""Cheap descriptors: lipophilicity, refractivity, surfaces by property, and counts."""
ALL = tuple(name for name, _ in Descriptors.descList)
"""Every 2D descriptor that RDKit lists; the list depends on its version."""


SETS: dict[str, tuple[str, ...]] = {"rdkit": QUICK, "rdkit-all": ALL, "both": QUICK}
"""Descriptors by the words of `Columns.descriptors`."""


def chosen_descriptors(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of RDKit's descriptors, and of the table's own columns, that these words
    stand for.
    """
    names: list[str] = []
    columns = [word for word in words if word not in SETS and word not in NO_DESCRIPTORS]
    for word in words:
        names += [name for name in SETS.get(word, ()) if name not in names]
    return tuple(names), tuple(dict.fromkeys(columns))


def words_of(record: dict[str, Any]) -> tuple[str, ...]:
    """Return the words that stand for the descriptors of a model's featuriser."""
    described = record.get("descriptors")
    if not isinstance(described, dict):
        return ("none",)
    names = tuple(described.get("names", ()))
    sets = [word for word, group in SETS.items() if names == group]
    return (*sets[:1], *described.get("columns", ()))


def descriptor_record(names: Sequence[str]) -> dict[str, Any]:
    """Return what a table of descriptors depends on, as JSON: their names and RDKit's version."""
    return {"rdkit": rdBase.rdkitVersion, "names": list(names)}


def descriptor_table(molecules: Iterable[Any], names: Sequence[str]) -> NDArray[np.float64]:
    """Return (molecules, names) values of these descriptors of RDKit molecules, NaN if unknown."""
    describe = describer(names)
    rows = [describe(molecule) for molecule in molecules]
    return np.asarray(rows, np.float64).reshape(len(rows), len(names))


def describer(names: Sequence[str]) -> Callable[[Any], NDArray[np.float64]]:
    """Return a function that computes these descriptors of a molecule, NaN where unknown."""
    every, quick = list(_steps(names)), list(_steps(names, cheap=True))

    def describe(molecule: Any) -> NDArray[np.float64]:
        row = np.full(len(names), np.nan)
        with rdBase.BlockLogs(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            own = Chem.Mol(molecule)  # RDKit stores intermediate results in it
            for compute, taken, columns in every if own.GetNumHeavyAtoms() <= MOST_ATOMS else quick:
                try:
                    found = compute(own)
                    row[columns] = [found[place] for place in taken] or [found]
                except Exception:  # noqa: S112 - RDKit raises errors of many types
                    continue
        row[~(np.abs(row) <= LARGEST)] = np.nan
        return row

    return describe


def _steps(names: Sequence[str], cheap: bool = False) -> Iterator[Step]:
    """Plan which functions to call for these descriptors.

    cheap: only for those of QUICK.
    """
    columns = {name: column for column, name in enumerate(names)}
    if len(columns) != len(names):
        raise InputError("names of descriptors must not be repeated")
    for group, compute in _VECTORS:
        taken = [place for place, name in enumerate(group) if name in columns]
        if taken:
            yield compute, taken, [columns.pop(group[place]) for place in taken]
    listed = {} if cheap else dict(Descriptors.descList)
    for name, column in columns.items():
        if name in _SINGLE or name in listed:
            yield _SINGLE.get(name) or listed[name], [], [column]
        elif name not in ALL:
            raise InputError(f"RDKit {rdBase.rdkitVersion} has no descriptor {name!r}")
