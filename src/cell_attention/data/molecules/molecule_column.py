"""The column of a table that holds the molecules: by its name, then by its cells."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cell_attention.data.file_format import MISSING
from cell_attention.data.molecules.molecule import read_molecule
from cell_attention.data.molecules.tables import is_molecule_name
from cell_attention.errors import DataError, InputError, MoleculeError

TITLES = ("name", "names", "title", "id", "compound id", "compound_id", "mol_id", "molecule")
"""Columns that may hold the name of a molecule, the likeliest first."""

SAMPLE = 100
"""Rows whose cells are tried."""

_NUMBER = re.compile(r"[\s\d.,eE+-]+")
_MARKS = re.compile(r"[=#()\[\]\\/@]|[A-Za-z]\d|InChI=")
"""What a molecule of some size contains, and a word such as NO or CC does not."""


def molecule_column(
    path: Path, header: Sequence[str], sample: Sequence[Sequence[str]]
) -> tuple[int, str]:
    """Return the column of the molecules, and a remark if it was chosen by its cells.

    sample: the cells of the first rows.
    """
    if len(header) < 2 or not sample:
        named = [place for place, name in enumerate(header) if is_molecule_name(name)]
        return (named[0] if len(named) == 1 else 0), ""
    exact = [place for place, name in enumerate(header) if name.lower() == "smiles"]
    if len(exact) == 1 and _evidence(sample, exact[0]).read:
        return exact[0], ""
    evidence = [_evidence(sample, place) for place in range(len(header))]
    named = exact or [place for place, name in enumerate(header) if is_molecule_name(name)]
    good = [place for place in named if evidence[place].read]
    if not good:
        return _by_cells(path, header, evidence, named=named)
    return _only(path, header, good), ""


def name_column(header: Sequence[str], molecules: str = "") -> int | None:
    """Return the column that holds the names of the molecules, if there is one.

    molecules: the column of the molecules themselves.
    """
    place_of = {name.strip().lower(): place for place, name in reversed([*enumerate(header)])}
    places = (place_of[title] for title in TITLES if title in place_of)
    return next((place for place in places if header[place] != molecules), None)


@dataclass(frozen=True)
class _Evidence:
    """What the cells of a column tell."""

    known: int
    """Cells that are not blank."""
    distinct: int
    read: int
    """Cells that are molecules."""
    marked: bool
    """Whether one of these can hardly be a word."""

    @property
    def holds(self) -> bool:
        """Whether most cells are molecules."""
        return self.read > 0 and 2 * self.read >= self.known

    @property
    def differs(self) -> bool:
        """Whether most cells differ, as molecules do and classes do not."""
        return self.distinct >= 3 and 2 * self.distinct >= self.known


def _evidence(sample: Sequence[Sequence[str]], place: int) -> _Evidence:
    cells = [row[place].strip() for row in sample if place < len(row)]
    known = [cell for cell in cells if cell.lower() not in MISSING]
    molecules = [cell for cell in known if _is_molecule(cell)]
    marked = any(map(_MARKS.search, molecules))
    return _Evidence(len(known), len(set(known)), len(molecules), marked)


def _is_molecule(text: str) -> bool:
    if _NUMBER.fullmatch(text):
        return False
    try:
        read_molecule(text)
    except MoleculeError:
        return False
    return True


def _by_cells(
    path: Path, header: Sequence[str], evidence: Sequence[_Evidence], *, named: Sequence[int]
) -> tuple[int, str]:
    """Choose by content. A column of words such as NO and CC is only taken if it is the first, or
    if most of its cells differ.
    """
    holding = [place for place, one in enumerate(evidence) if one.holds]
    found = [place for place in holding if evidence[place].marked]
    if not found and 0 in holding:
        found = [0]
    if not found:
        found = [place for place in holding if evidence[place].differs]
    if not found and len(named) == 1:
        return named[0], ""  # its rows will say what is wrong with them
    if not found:
        listed = ", ".join(repr(name) for name in header[:12]) + ", …" * (len(header) > 12)
        raise DataError(
            f"{path}: no column holds molecules (it has {listed}); SMILES or InChI are needed, in "
            "a column that can be named with smiles_column"
        )
    place = _only(path, header, found)
    return place, f"molecules are in column {header[place]!r}, found by its cells"


def _only(path: Path, header: Sequence[str], found: Sequence[int]) -> int:
    if len(found) > 1:
        listed = " and ".join(repr(header[place]) for place in found)
        raise InputError(f"{path}: columns {listed} hold molecules; choose one with smiles_column")
    return found[0]


def require_header(path: Path, line: int, header: Sequence[str]) -> None:
    """Refuse a table whose first line is a molecule already."""
    if any(map(is_molecule_name, header)):
        return
    for place, name in enumerate(header):
        if _is_molecule(name) and (place == 0 or _MARKS.search(name)):
            raise DataError(
                f"{path}, line {line}: a header is expected, got the molecule {name!r:.60}; a file "
                "without one can be named .smi"
            )
