"""Descriptors of many molecules at once, from the tables of their atoms and bonds.

Each is what RDKit's function of that name returns, which searches one molecule after the other.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem

from cell_attention.data.molecules.atoms import Tables
from cell_attention.data.molecules.crippen import contributions
from cell_attention.data.molecules.patterns import Atoms, rules

Values = NDArray[np.float64]

_LOGP = (-0.4, -0.2, 0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)
_REFRACTIVITY = (1.29, 1.82, 2.24, 2.45, 2.75, 3.05, 3.63, 3.8, 4.0)
"""Bounds between the bins of SlogP_VSA and SMR_VSA."""
_SHORTER = {2: 0.2, 3: 0.3, 12: 0.1}
"""By how much a bond of RDKit's kind is shorter than a single one, in ångström (Labute 2000)."""
_COUNTED = rules("""
$oxo  any  1 double NOPS
$bare  any !$oxo
$away  any  1 open NOPS
$het  nitrogen
$het  O
$het  S !d1
$acyl  C d3  1 double NO
$acyl  C d3  1 double S
$oxo1  C  1 open O
$ch3  C h3
NumHAcceptors  O h1 v2  1 single $bare
NumHAcceptors  S h1 v2  1 single $bare
NumHAcceptors  O h0 v2
NumHAcceptors  S h0 v2
NumHAcceptors  O q-1
NumHAcceptors  S q-1
$amide  N  1 single $away
NumHAcceptors  N v3 !$amide
NumHAcceptors  n h0 q0 x2
NumHAcceptors  o q0
NumHAcceptors  s q0
NumHDonors  N v3 !h0
NumHDonors  N q1 v4 !h0
NumHDonors  O h1 q0
NumHDonors  S h1 q0
NumHDonors  n h1 q0
NumHeteroatoms  heavy !carbon
stiff  any  1 triple any
stiff  d1
stiff  C h3
stiff  C  3 near F
stiff  C  3 near Cl
stiff  C  3 near Br
stiff  C  3 near $ch3
resonant  $acyl  1 turn $het
resonant  $het  1 turn $acyl
""")
"""Atoms that are counted, and those whose bonds do not rotate: "stiff" ones, and bonds between two
that are "resonant", as in amides."""
AT_ONCE = (
    "MolLogP", "MolMR", *(f"SlogP_VSA{part}" for part in range(1, 13)),
    *(f"SMR_VSA{part}" for part in range(1, 11)), "LabuteASA", "FormalCharge", "NHOHCount",
    "NOCount", "FractionCSP3", "HeavyAtomCount", "NumRotatableBonds", "NumHAcceptors",
    "NumHDonors", "NumHeteroatoms",
)  # fmt: skip
"""The descriptors that `quick_columns` computes."""


def quick_columns(tables: Tables, names: Collection[str]) -> dict[str, Values]:
    """Return (molecules,) values of those descriptors of AT_ONCE that are wanted."""
    if not (len(tables.sizes) and {*names} & {*AT_ONCE}):
        return {}
    atoms = Atoms.of(tables.nodes[:, [0, 2, 3, 5]], tables.edges[:, [0, 1, 2, 4]])
    element, charge, hydrogens = tables.nodes[:, [0, 2, 3]].T
    count = len(tables.sizes)
    molecule = np.repeat(np.arange(count), tables.sizes[:, 0])

    polar, carbon = np.isin(element, (7, 8)), element == 6
    of_atoms: dict[str, NDArray[Any]] = {
        "FormalCharge": charge,
        "HeavyAtomCount": element > 1,
        "NOCount": polar,
        "NHOHCount": np.where(polar, atoms.hydrogens, 0),
        "FractionCSP3": carbon & (atoms.connections == 4),
    }
    masks: dict[str, NDArray[np.bool_]] = {}
    for name, fits in atoms.matches(_COUNTED):
        masks[name] = masks[name] | fits if name in masks else fits
    stiff, resonant = masks.pop("stiff"), masks.pop("resonant")
    begin, end, kind, _, ring, _ = tables.edges.T
    turns = np.isin(kind, (1, 12)) & (ring == 0) & ~(stiff[begin] | stiff[end])
    turns &= ~(resonant[begin] & resonant[end])
    of_atoms |= masks | {"NumRotatableBonds": np.bincount(begin, turns, len(element))}
    surface, covered = _surfaces(element, tables.edges)
    free = Chem.GetPeriodicTable().GetRb0(1)  # RDKit lets all atoms cover one hydrogen
    of_atoms["LabuteASA"] = surface - np.pi * free * covered
    own, borne = contributions(atoms)
    alone = (element == 1) & (hydrogens > 0)  # [HH], of which RDKit makes two atoms first
    for column, (total, prefix, bounds) in enumerate(
        (("MolLogP", "SlogP_VSA", _LOGP), ("MolMR", "SMR_VSA", _REFRACTIVITY))
    ):
        one, each = own[:, column], borne[:, column]
        of_atoms[total] = np.where(alone, each, one) + hydrogens * each
        bins = np.digitize(one, bounds)
        for part in range(len(bounds) + 1):
            of_atoms[f"{prefix}{part + 1}"] = np.where(bins == part, surface, 0.0)
    found = {
        name: np.bincount(molecule, values, count).astype(np.float64)
        for name, values in of_atoms.items()
    }
    found["FractionCSP3"] /= np.maximum(np.bincount(molecule, carbon, count), 1)
    found["LabuteASA"] += 4 * np.pi * free**2
    return found


def _surfaces(element: NDArray[np.int64], edges: NDArray[np.int64]) -> tuple[Values, Values]:
    """Return the surface of every atom that its neighbours and a hydrogen leave free, by Labute's
    approximation, and what it covers of a hydrogen, the latter divided by π times its radius.
    """
    table, numbers = Chem.GetPeriodicTable(), np.unique(element)
    radii = np.array([table.GetRb0(int(number)) for number in numbers])
    radius, hydrogen = radii[np.searchsorted(numbers, element)], table.GetRb0(1)
    begin, end, kind = np.ascontiguousarray(edges[:, :3].T)
    length = radius[begin] + radius[end]
    length -= sum(amount * (kind == number) for number, amount in _SHORTER.items())
    with np.errstate(all="ignore"):
        hidden = _hidden(radius, np.full_like(radius, hydrogen), radius + hydrogen)
        for one, other in ((begin, end), (end, begin)):
            part = _hidden(radius[one], radius[other], length)
            hidden += np.bincount(one, part, len(element))
        covered = _hidden(np.full_like(radius, hydrogen), radius, radius + hydrogen)
        return np.pi * radius * (4 * radius - hidden), covered


def _hidden(radius: Values, other: Values, length: Values) -> Values:
    """Return what another sphere at this distance hides of a sphere, divided by π · radius."""
    apart = np.minimum(np.maximum(np.abs(radius - other), length), radius + other)
    hidden: Values = other**2 - (radius - apart) ** 2 / apart
    return hidden
