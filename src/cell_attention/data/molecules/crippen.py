"""What atoms add to log P and to molar refractivity (Wildman and Crippen 1999), and their surfaces.

The types, their order and their contributions are those of the paper as RDKit reads them.
"""

import numpy as np
from numpy.typing import NDArray

from cell_attention.data.molecules.patterns import Atoms, Rule, rules

Values = NDArray[np.float64]

_ADDS = {
    "C1": (0.1441, 2.503), "C2": (0.0, 2.433), "C3": (-0.2035, 2.753), "C4": (-0.2051, 2.731),
    "C5": (-0.2783, 5.007), "C6": (0.1551, 3.513), "C7": (0.0017, 3.888), "C8": (0.08452, 2.464),
    "C9": (-0.1444, 2.412), "C10": (-0.0516, 2.488), "C11": (0.1193, 2.582),
    "C12": (-0.0967, 2.576), "C13": (-0.5443, 4.041), "C14": (0.0, 3.257), "C15": (0.245, 3.564),
    "C16": (0.198, 3.18), "C17": (0.0, 3.104), "C18": (0.1581, 3.35), "C19": (0.2955, 4.346),
    "C20": (0.2713, 3.904), "C21": (0.136, 3.509), "C22": (0.4619, 4.067), "C23": (0.5437, 3.853),
    "C24": (0.1893, 2.673), "C25": (-0.8186, 3.135), "C26": (0.264, 4.305), "C27": (0.2148, 2.693),
    "CS": (0.08129, 3.243),
    "H1": (0.123, 1.057), "H2": (-0.2677, 1.395), "H3": (0.2142, 0.9627), "H4": (0.298, 1.805),
    "HS": (0.1125, 1.112),
    "N1": (-1.019, 2.262), "N2": (-0.7096, 2.173), "N3": (-1.027, 2.827), "N4": (-0.5188, 3.0),
    "N5": (0.08387, 1.757), "N6": (0.1836, 2.428), "N7": (-0.3187, 1.839), "N8": (-0.4458, 2.819),
    "N9": (0.01508, 1.725), "N10": (-1.95, 0.0), "N11": (-0.3239, 2.202), "N12": (-1.119, 0.0),
    "N13": (-0.3396, 0.2604), "N14": (0.2887, 3.359), "NS": (-0.4806, 2.134),
    "O1": (0.1552, 1.08), "O2": (-0.2893, 0.8238), "O3": (-0.0684, 1.085), "O4": (-0.4195, 1.182),
    "O5": (0.0335, 3.367), "O6": (-0.3339, 0.7774), "O7": (-1.189, 0.0), "O8": (0.1788, 3.135),
    "O9": (-0.1526, 0.0), "O10": (0.1129, 0.2215), "O11": (0.4833, 0.389), "O12": (-1.326, 0.0),
    "OS": (-0.1188, 0.6865),
    "F": (0.4202, 1.108), "Cl": (0.6895, 5.853), "Br": (0.8456, 8.927), "I": (0.8857, 14.02),
    "Hal": (-2.996, 0.0), "P": (0.8612, 6.92), "S1": (0.6482, 7.591), "S2": (-0.0024, 7.365),
    "S3": (0.6237, 6.691), "Me1": (-0.3808, 5.754), "Me2": (-0.0025, 0.0),
}  # fmt: skip
"""Contributions to log P and to molar refractivity by the type of an atom."""

_HEAVY = rules("""
$het  chain !C
$rare  chain !C !NO !S !halogen
$other  chain !C !polar
$n-  N minus
$s0  sulphur q0
$oxo  C  1 double O
$7  heavy !N !S
$9  C h1  1 near C
$9  C h1  1 near NO
$9  C h2
$9  C x2  2 double O
$9  C  1 near C  2 near chain
$10  C h1  1 near c
$10  C  1 near C  1 near a
$10  C  1 near c  2 near a
$10  C  1 near c  1 near chain
$11  heavy !carbon
$11s  C  2 near $11
C1  C h4
C1  C h3  1 near C
C1  C h2  2 near C
C2  C h1  3 near C
C2  C  4 near C
C3  C h3  1 near polar
C3  C h2 x4  1 near polar  2 near chain
C4  C h1 x4  1 near polar  3 near chain
C4  C h0 x4  1 near polar  4 near chain
C5  C  1 double $het
C6  C h2  1 double C
C6  C h1  1 double C  1 near chain
C6  C h0  1 double C  2 near chain
C6  C  2 double C
C7  C x2  1 triple chain
C8  C h3  1 near c
C9  C h3  1 near a
C10  C h2 x4  1 near a
C11  C h1 x4  1 near a
C12  C h0 x4  1 near a
C13  c h0  1 single $rare
C14  c  1 near F
C15  c  1 near Cl
C16  c  1 near Br
C17  c  1 near I
C18  c h1
C19  c  3 aromatic a
C20  c  2 aromatic a  1 single a
C21  c  2 aromatic a  1 single C
C22  c  2 aromatic a  1 single N
C23  c  2 aromatic a  1 single O
C24  c  2 aromatic a  1 single S
C25  c  2 aromatic a  1 double CNO
C26  C  1 double C  1 near a  1 near chain
C26  C  1 double C  1 near c  2 near a
C26  C h1  1 double C  1 near a
C26  C  1 double c
C27  C x4  1 near $other
CS  carbon
N1  N q0 h2  1 near chain
N2  N q0 h1  2 near chain
N3  N q0 h2  1 near a
N4  N q0 h1  1 near a  2 near heavy
N5  N q0 h1  1 double heavy
N6  N q0  1 double heavy  1 near heavy
N7  N q0  3 near chain
N8  N q0  1 near a  1 near chain  3 near heavy
N8  N q0  3 near a
N9  N q0  1 triple chain
N10  N h1 plus
N10  N h2 plus
N10  N h3 plus
N11  n q0
N12  n plus
N13  N h0 plus  4 near chain
N13  N h0 plus  1 double chain  1 near chain  2 near heavy
N13  N h0 plus  1 double carbon  1 double nitrogen
N14  N plus  1 triple chain
N14  N minus
N14  N plus  2 double N  1 double $n-
NS  nitrogen
O1  o
O2  O h1
O2  O h2
O3  O  2 near chain
O4  O  1 near a  2 near heavy
O5  O  1 double nitrogen
O5  O  1 double oxygen
O5  O x1 minus  1 near nitrogen
O6  O x1 q-1  1 near sulphur
O6  O x1 q-2  1 near sulphur
O6  O q0  1 double $s0
O12  O q-1  1 near $oxo
O7  O x1 minus  1 near $7
O8  O  1 double c
O9  O  1 double $9
O10  O  1 double $10
O11  O  1 double $11s
OS  oxygen
F  F q0
Cl  Cl q0
Br  Br q0
I  I q0
Hal  halogen q-1
Hal  I plus
Hal  alkali q1
P  P
S2  S minus
S2  S q-4
S2  S plus
S2  S q5
S2  S q6
S2  S q0  1 double NOPS
S1  S
S3  sulphur
Me1  metal1
Me2  metal2
HS  H
""")
"""The types of atoms; the first line that fits counts."""
_HYDROGENS = rules("""
$4  C x4
$other  heavy !carbon !nitrogen !oxygen !sulphur
$acid  C  1 double carbon
$acid  C  1 double nitrogen
$acid  C  1 double O
$acid  C  1 double S
H1  carbon
H1  H
H2  O  1 near $4
H2  O  1 near c
H2  O  1 near $other
H2  O h2
H2  O h3
H2  any !carbon !nitrogen !oxygen
H3  nitrogen
H3  O  1 near nitrogen
H4  O  1 near $acid
H4  O  1 near O
H4  O  1 near S
HS  any
""")
"""The types of the hydrogens that an atom bears."""


_HEAVY_ADDS, _HYDROGENS_ADD = (
    np.array([_ADDS[name] for name, _, _ in table if name[0] != "$"] + [(0.0, 0.0)])
    for table in (_HEAVY, _HYDROGENS)
)
"""(rules + 1, 2) what atoms add by the rule that fits first; nothing where none does."""


def contributions(atoms: Atoms) -> tuple[Values, Values]:
    """(atoms, 2) what every atom adds to log P and refractivity, and the same of its hydrogens."""
    heavy, borne = (_first(atoms, table) for table in (_HEAVY, _HYDROGENS))
    found = _HEAVY_ADDS[heavy]
    # A hydrogen that is an atom is of the first type that one of its neighbours gives it.
    bound = (atoms.element[atoms.atom] == 1) & np.isin(atoms.order, (1, 12))
    given = np.full(len(heavy), len(_HYDROGENS))
    np.minimum.at(given, atoms.atom[bound], borne[atoms.other[bound]])
    found[given < len(_HYDROGENS)] = _HYDROGENS_ADD[given[given < len(_HYDROGENS)]]
    return found, _HYDROGENS_ADD[borne]


def _first(atoms: Atoms, table: tuple[Rule, ...]) -> NDArray[np.int64]:
    """(atoms,) the place of the first rule that fits each, −1 where none does."""
    found = np.full(len(atoms.element), -1)
    for place, (_, fits) in enumerate(atoms.matches(table)):
        found[fits & (found < 0)] = place
    return found
