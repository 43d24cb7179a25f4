"""One molecule from its text: SMILES, InChI or a block of an .sdf file, or the reason why not."""

import re
from typing import Any

from rdkit import Chem, rdBase

from cell_attention.errors import InputError

MOST_ATOMS = 10_000
"""Atoms beyond which a text is refused: no molecule that is meant as a graph is so large."""
LONGEST_TEXT = 200_000
"""Characters of a SMILES or InChI, likewise."""

DENSE = 60
"""Bonds from which on a text is looked at before RDKit searches it for rings."""

_STAMP = re.compile(r"^\[\d\d:\d\d:\d\d\] *")
_ECHO = re.compile(r" (?:while parsing|for input):.*$|^SMILES Parse Error: |^SMARTS Parse Error: ")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class MoleculeError(InputError):
    """A text that is no molecule; the message is the reason alone."""


def read_molecule(text: str) -> Chem.Mol:
    """The molecule that a SMILES or InChI means, hydrogens folded into their atoms."""
    if not text:
        raise MoleculeError("there is no molecule")
    if len(text) > LONGEST_TEXT:
        raise MoleculeError(f"more than {LONGEST_TEXT:,} characters")
    if text.startswith("InChI="):
        return _checked(Chem.MolFromInchi, text, f"RDKit cannot read {_short(text)}")
    if len(text.split()) > 1 or text != text.strip():
        raise MoleculeError(f"SMILES hold no spaces, got {_short(text)}")
    if _CONTROL.search(text):
        raise MoleculeError(f"SMILES hold no control characters, got {_short(text)}")
    return _checked(Chem.MolFromSmiles, text, f"RDKit cannot read {_short(text)}")


def read_block(text: str) -> Chem.Mol:
    """The molecule of an .sdf record, in the V2000 or V3000 form."""
    if not text.strip():
        raise MoleculeError("there is no molecule")
    if "\x00" in text:
        raise MoleculeError("RDKit cannot read the record (it holds a zero byte)")
    return _checked(Chem.MolFromMolBlock, text, "RDKit cannot read the record")


def _checked(reader: Any, text: str, complaint: str) -> Chem.Mol:
    """What a reader of RDKit makes of a text; its log becomes the reason where that is nothing."""
    capture = getattr(rdBase, "CaptureErrorLog", rdBase.BlockLogs)  # older RDKits keep no log
    with rdBase.BlockLogs(), capture() as log:
        try:
            if len(text) > 4 * DENSE:
                _require_sparse(reader(text, sanitize=False))
            molecule = reader(text)
        except MoleculeError:
            raise
        except (RuntimeError, ValueError, UnicodeError) as error:
            raise MoleculeError(f"{complaint} ({_reason(str(error))})") from None
    if molecule is None:
        raise MoleculeError(f"{complaint} ({_reason(_said(log))})")
    if not molecule.GetNumAtoms():
        raise MoleculeError("the molecule has no atoms")
    if molecule.GetNumAtoms() > MOST_ATOMS:
        raise MoleculeError(f"more than {MOST_ATOMS:,} atoms")
    checked: Chem.Mol = molecule
    return checked


def _said(log: Any) -> str:
    """RDKit's log, which may have cut a character in two."""
    try:
        return str(getattr(log, "messages", ""))
    except UnicodeDecodeError as error:
        return bytes(error.object).decode("utf-8", "replace")


def _require_sparse(molecule: Chem.Mol | None) -> None:
    """Refuse what no molecule is: RDKit's search for rings would take minutes."""
    if molecule is not None:
        atoms, bonds = molecule.GetNumAtoms(), molecule.GetNumBonds()
        if bonds > DENSE and bonds > 3 * atoms:
            raise MoleculeError(f"{bonds:,} bonds between {atoms:,} atoms are no molecule")


def _reason(log: str) -> str:
    """The first line of RDKit's log that says something, without its time and its echo."""
    for line in log.splitlines():
        said = _ECHO.sub("", _ECHO.sub("", _STAMP.sub("", line))).strip(" *-.:")
        if said and said != "ERROR" and not said.lower().endswith("violation"):
            return said[:160]
    return "no reason given"


def _short(text: str) -> str:
    """As a message shows it."""
    return repr(text) if len(text) <= 60 else f"{text[:57]!r}…"


def as_molecule(thing: Any) -> Chem.Mol:
    """A molecule from text, or the RDKit molecule that it is already."""
    return read_molecule(thing) if isinstance(thing, str) else thing


def largest_ring(molecule: Any) -> int:
    """Atoms of the largest ring in RDKit's ring set."""
    return max(map(len, molecule.GetRingInfo().AtomRings()), default=0)
