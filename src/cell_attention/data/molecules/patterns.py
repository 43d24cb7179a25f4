"""Patterns of atoms and of what is bound to them, found in many molecules at once.

RDKit searches one molecule after the other for every pattern, which takes most of the time of its
cheap descriptors. Here each line of a table is a few comparisons of arrays over all atoms:

    C10  C h2 x4     1 near a

are the aliphatic carbons (C) with two hydrogens and four connections that have at least one
neighbour by a single or aromatic bond (near) that is aromatic (a): in SMARTS, [CH2X4]a.
An atom belongs to a name if it fits one of its lines. A name with $ is for later lines.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Rule = tuple[str, tuple[str, ...], tuple[tuple[int, str, str], ...]]
"""A name, what an atom is, and how many neighbours by a kind of bond are something."""

_KINDS = {"near": (1, 12), "single": (1,), "double": (2,), "triple": (3,), "aromatic": (12,)}
"""RDKit's numbers of the kinds of bonds; "turn" and "open" are single and double ones in no ring.
A bond of a SMARTS without a sign is a "near" one."""
_ALKALI = (3, 11, 19, 37, 55)
_ELEMENTS = {
    "H": (1,), "carbon": (6,), "nitrogen": (7,), "oxygen": (8,), "sulphur": (16,), "F": (9,),
    "Cl": (17,), "Br": (35,), "I": (53,), "P": (15,), "halogen": (9, 17, 35, 53),
    "alkali": _ALKALI, "metal2": (*range(21, 31), *range(39, 49), *range(72, 81)),
    "metal1": (
        *_ALKALI, 4, 12, 20, 38, 56, 5, 13, 31, 49, 81, 14, 32, 50, 82, 33, 51, 83, 34, 52, 84,
    ),
}  # fmt: skip
"""Atomic numbers of atoms, aliphatic and aromatic."""
_CHAINS = {
    "C": (6,), "N": (7,), "O": (8,), "S": (16,), "NO": (7, 8), "CNO": (6, 7, 8), "NOS": (7, 8, 16),
    "NOPS": (7, 8, 15, 16), "polar": (7, 8, 15, 16, 9, 17, 35, 53),
}  # fmt: skip
"""Atomic numbers of aliphatic atoms."""


def rules(table: str) -> tuple[Rule, ...]:
    """Read a table, a rule per line."""
    read = []
    for line in table.strip().splitlines():
        name, own, *around = (part.split() for part in line.split("  ") if part.strip())
        near = tuple((int(least), kind, wanted) for least, kind, wanted in around)
        read.append((name[0], tuple(own), near))
    return tuple(read)


@dataclass(frozen=True, eq=False)
class Atoms:
    """The atoms of many molecules, and what is bound to them."""

    element: Numbers
    charge: Numbers
    hydrogens: Numbers
    """Of every atom, with those that are atoms of their own."""
    aromatic: Mask
    atom: Numbers
    other: Numbers
    order: Numbers
    ring: Mask
    """Every bond from both of its ends: an atom, the other, RDKit's kind, whether in a ring."""
    degree: Numbers
    """Bonds of every atom, to hydrogens only where these are atoms of their own."""
    connections: Numbers
    """Bonds of every atom, with those to all hydrogens."""

    @classmethod
    def of(cls, atoms: Numbers, bonds: Numbers) -> "Atoms":
        """atoms: (atoms, 4) element, charge, hydrogens that are no atoms, and whether aromatic.
        bonds: (bonds, 4) both ends, RDKit's kind, and whether in a ring.
        """
        element, charge, free, aromatic = np.ascontiguousarray(atoms.T)
        atom, other = np.concatenate([bonds[:, :2], bonds[:, 1::-1]]).T
        count = len(element)
        bound = np.bincount(atom[element[other] == 1], minlength=count)
        degree = np.bincount(atom, minlength=count)
        order, ring = np.tile(bonds[:, 2], 2), np.tile(bonds[:, 3], 2)
        return cls(
            element, charge, free + bound, aromatic.astype(np.bool_), atom, other, order,
            ring.astype(np.bool_), degree, degree + free,
        )  # fmt: skip

    def matches(self, rules: tuple[Rule, ...]) -> Iterator[tuple[str, Mask]]:
        """Yield the name of every rule and its atoms, but for names with $."""
        masks, counts = dict(self._masks), dict[tuple[str, str], Numbers]()
        for name, own, around in rules:
            found = masks["any"]
            for word in own:
                found = found & (~masks[word[1:]] if word[0] == "!" else masks[word])
            for least, kind, wanted in around:
                if (kind, wanted) not in counts:
                    atom, other = self._bonds[kind]
                    near = atom[masks[wanted][other]]
                    counts[kind, wanted] = np.bincount(near, minlength=len(found))
                found = found & (counts[kind, wanted] >= least)
            if name[0] == "$":
                masks[name] = masks[name] | found if name in masks else found
            else:
                yield name, found

    @cached_property
    def _bonds(self) -> dict[str, tuple[Numbers, Numbers]]:
        chosen = {kind: np.isin(self.order, orders) for kind, orders in _KINDS.items()}
        chosen |= {"turn": chosen["single"] & ~self.ring, "open": chosen["double"] & ~self.ring}
        return {kind: (self.atom[some], self.other[some]) for kind, some in chosen.items()}

    @cached_property
    def _masks(self) -> dict[str, Mask]:
        element, charge, ring = self.element, self.charge, self.aromatic
        masks = {name: np.isin(element, numbers) for name, numbers in _ELEMENTS.items()}
        masks |= {name: np.isin(element, numbers) & ~ring for name, numbers in _CHAINS.items()}
        masks |= {name: masks[long] & ring for name, long in zip("cnos", _LONG, strict=True)}
        masks |= {
            "any": np.ones_like(ring),
            "a": ring,
            "heavy": ~masks["H"],
            "chain": ~masks["H"] & ~ring,
        }
        masks |= {"plus": (charge >= 1) & (charge <= 3), "minus": (charge <= -1) & (charge >= -3)}
        order = np.where(self.order < 4, self.order, 1)
        valence = self.connections + np.bincount(self.atom, order - 1, len(element))
        for letter, values, known in (
            ("h", self.hydrogens, range(5)), ("x", self.connections, (1, 2, 4)),
            ("d", self.degree, (1, 3)), ("v", valence, (2, 3, 4)), ("q", charge, range(-4, 7)),
        ):  # fmt: skip
            masks |= {f"{letter}{number}": values == number for number in known}
        return masks


_LONG = ("carbon", "nitrogen", "oxygen", "sulphur")
