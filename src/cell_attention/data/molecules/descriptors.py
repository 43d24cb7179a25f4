"""RDKit's 2D descriptors of molecules, as a table of numbers.

What RDKit cannot compute is NaN: a descriptor that fails, is infinite, or does not fit into float32
as learners store it (the information content Ipc of about 90 atoms and more).
"""

import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors, rdMolDescriptors

from cell_attention.data.file_format import NO_DESCRIPTORS
from cell_attention.data.molecules.atoms import Tables, complete
from cell_attention.data.molecules.quick import AT_ONCE, quick_columns
from cell_attention.errors import InputError

Call = tuple[Callable[[Any], Any], list[int]]
"""A function of a molecule and the columns of its results."""

MOST_ATOMS = 300
"""Of a molecule with more heavy atoms only the QUICK descriptors are known: RDKit would spend
seconds on the others, and hours on the largest molecules."""
LARGEST = float(np.finfo(np.float32).max)


_PARTIAL = tuple(f"PEOE_VSA{part}" for part in range(1, 15))
_SINGLE: dict[str, Callable[[Any], float]] = {
    "TPSA": rdMolDescriptors.CalcTPSA,
    "ExactMolWt": rdMolDescriptors.CalcExactMolWt,
    "HallKierAlpha": rdMolDescriptors.CalcHallKierAlpha,
    "NumAliphaticCarbocycles": rdMolDescriptors.CalcNumAliphaticCarbocycles,
    "NumAliphaticHeterocycles": rdMolDescriptors.CalcNumAliphaticHeterocycles,
    "NumAliphaticRings": rdMolDescriptors.CalcNumAliphaticRings,
    "NumAmideBonds": rdMolDescriptors.CalcNumAmideBonds,
    "NumAromaticCarbocycles": rdMolDescriptors.CalcNumAromaticCarbocycles,
    "NumAromaticHeterocycles": rdMolDescriptors.CalcNumAromaticHeterocycles,
    "NumAromaticRings": rdMolDescriptors.CalcNumAromaticRings,
    "NumBridgeheadAtoms": rdMolDescriptors.CalcNumBridgeheadAtoms,
    "NumHeterocycles": rdMolDescriptors.CalcNumHeterocycles,
    "NumSaturatedRings": rdMolDescriptors.CalcNumSaturatedRings,
    "NumSpiroAtoms": rdMolDescriptors.CalcNumSpiroAtoms,
    "RingCount": rdMolDescriptors.CalcNumRings,
}
"""Cheap functions of RDKit, by the descriptors that they compute."""

QUICK = (
    "MolLogP", "MolMR", *(f"SlogP_VSA{part}" for part in range(1, 13)),
    *(f"SMR_VSA{part}" for part in range(1, 11)), *_PARTIAL, "LabuteASA", "TPSA", "ExactMolWt",
    "FormalCharge", "FractionCSP3", "HallKierAlpha", "HeavyAtomCount", "NHOHCount", "NOCount",
    "NumAliphaticCarbocycles", "NumAliphaticHeterocycles", "NumAliphaticRings", "NumAmideBonds",
    "NumAromaticCarbocycles", "NumAromaticHeterocycles", "NumAromaticRings", "NumBridgeheadAtoms",
    "NumHAcceptors", "NumHDonors", "NumHeteroatoms", "NumHeterocycles", "NumRotatableBonds",
    "NumSaturatedRings", "NumSpiroAtoms", "RingCount",
)  # fmt: skip
"""Cheap descriptors: lipophilicity, refractivity, surfaces by property, and counts; those of
`quick` are computed for many molecules at once."""
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
    described = Described(names)

    def read() -> Iterator[Any]:
        for molecule in molecules:
            described.add(molecule)
            yield complete(molecule)

    return described.table(Tables(read()))


class Described:
    """The descriptors of some molecules: some by a call of RDKit for each, others for all at once.

    What is infinite, or what a call fails to compute, is NaN.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.rows: list[NDArray[np.float64]] = []
        self.calls, self.cheap = list(_calls(names)), list(_calls(names, cheap=True))

    def add(self, molecule: Any) -> None:
        """Call RDKit's functions for the next molecule."""
        if not self.names:
            return
        row = np.full(len(self.names), np.nan)
        large = molecule.GetNumHeavyAtoms() > MOST_ATOMS
        with rdBase.BlockLogs(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            own = Chem.Mol(molecule)  # RDKit stores intermediate results in it
            for compute, columns in self.cheap if large else self.calls:
                try:
                    row[columns] = compute(own)
                except Exception:  # noqa: S112 - RDKit raises errors of many types
                    continue
        self.rows.append(row)

    def table(self, tables: Tables) -> NDArray[np.float64]:
        """(molecules, names) of the molecules that were added, whose atoms are in `tables`."""
        count = len(tables.sizes)
        found = np.asarray(self.rows, np.float64).reshape(count, len(self.names))
        columns = quick_columns(tables, self.names)
        for column, name in enumerate(self.names):
            if name in columns:
                found[:, column] = columns[name]
        found[~(np.abs(found) <= LARGEST)] = np.nan
        return found


def _calls(names: Sequence[str], cheap: bool = False) -> Iterator[Call]:
    """Plan which functions to call for these descriptors.

    cheap: only for those of QUICK.
    """
    if len({*names}) != len(names):
        raise InputError("names of descriptors must not be repeated")
    columns = {name: column for column, name in enumerate(names) if name not in AT_ONCE}
    partial = [columns.pop(name, None) for name in _PARTIAL]
    if any(column is not None for column in partial):
        taken = [place for place, column in enumerate(partial) if column is not None]
        wanted = operator.itemgetter(*taken)
        yield (
            (lambda own: wanted(rdMolDescriptors.PEOE_VSA_(own))),
            [column for column in partial if column is not None],
        )
    listed = {} if cheap else dict(Descriptors.descList)
    for name, column in columns.items():
        if name in _SINGLE or name in listed:
            yield _SINGLE.get(name) or listed[name], [column]
        elif name not in ALL:
            raise InputError(f"RDKit {rdBase.rdkitVersion} has no descriptor {name!r}")
