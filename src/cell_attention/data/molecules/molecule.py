"""One molecule: read from text (SMILES, InChI or .sdf block) with reasons, and its traits."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rdkit import Chem, rdBase

from cell_attention.errors import LargeMoleculeError, MoleculeError

MOST_ATOMS = 10_000
"""A molecule with more atoms is refused: none that is meant as a graph is so large."""
LONGEST_TEXT = 200_000
"""A SMILES or InChI with more characters is refused, for the same reason."""

DENSE = 60
"""From this number of bonds on, density is checked before RDKit searches for rings."""

_STAMP = re.compile(r"^\[\d\d:\d\d:\d\d\] *")
_ECHO = re.compile(r" (?:while parsing|for input):.*$|^SMILES Parse Error: |^SMARTS Parse Error: ")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def read_molecule(text: str) -> Chem.Mol:
    """Read a SMILES or InChI; hydrogens become counts of their atoms."""
    if not text:
        raise MoleculeError("there is no molecule")
    if len(text) > LONGEST_TEXT:
        raise LargeMoleculeError(f"more than {LONGEST_TEXT:,} characters")
    if text.startswith("InChI="):
        return _checked(Chem.MolFromInchi, text)
    if len(text.split()) > 1 or text != text.strip():
        raise MoleculeError(
            f"a SMILES must not contain spaces, got {_short(text)}; "
            "the cells of a table are separated by commas, semicolons or tabs"
        )
    if _CONTROL.search(text):
        raise MoleculeError(f"a SMILES must not contain control characters, got {_short(text)}")
    return _checked(Chem.MolFromSmiles, text)


def read_block(text: str) -> Chem.Mol:
    """Read the molecule of an .sdf record, in the V2000 or V3000 form."""
    if not text.strip():
        raise MoleculeError("there is no molecule")
    if "\x00" in text:
        raise MoleculeError("RDKit cannot read the record (it contains a zero byte)")
    return _checked(Chem.MolFromMolBlock, text, "the record")


def _checked(reader: Any, text: str, name: str = "") -> Chem.Mol:
    """Read a text with RDKit; if that fails, raise an error with RDKit's log as the reason.

    name: what the error calls the text; by default the text itself, shortened.
    """
    capture = getattr(rdBase, "CaptureErrorLog", rdBase.BlockLogs)  # older versions keep no log
    with rdBase.BlockLogs(), capture() as log:
        try:
            if len(text) > 4 * DENSE:
                _require_sparse(reader(text, sanitize=False))
            molecule = reader(text)
        except MoleculeError:
            raise
        except (RuntimeError, ValueError, UnicodeError) as error:
            reason = _reason(str(error))
            raise MoleculeError(f"RDKit cannot read {name or _short(text)} ({reason})") from None
    if molecule is None:
        reason = _reason(_said(log))
        raise MoleculeError(f"RDKit cannot read {name or _short(text)} ({reason})")
    if not molecule.GetNumAtoms():
        raise MoleculeError("the molecule has no atoms")
    if molecule.GetNumAtoms() > MOST_ATOMS:
        raise LargeMoleculeError(f"more than {MOST_ATOMS:,} atoms")
    checked: Chem.Mol = molecule
    return checked


def _said(log: Any) -> str:
    """Return RDKit's log, which may have cut a character in two."""
    try:
        return str(getattr(log, "messages", ""))
    except UnicodeDecodeError as error:
        return bytes(error.object).decode("utf-8", "replace")


def _require_sparse(molecule: Chem.Mol | None) -> None:
    """Refuse more bonds than a molecule has: RDKit's search for rings would take minutes."""
    if molecule is not None:
        atoms, bonds = molecule.GetNumAtoms(), molecule.GetNumBonds()
        if bonds > DENSE and bonds > 3 * atoms:
            raise MoleculeError(f"{bonds:,} bonds are too many for {atoms:,} atoms")


def _reason(log: str) -> str:
    """Return the first informative line of RDKit's log, without time and echoed input."""
    for line in log.splitlines():
        said = _ECHO.sub("", _ECHO.sub("", _STAMP.sub("", line))).strip(" *-.:")
        if said and said != "ERROR" and not said.lower().endswith("violation"):
            return said[:160]
    return "no reason given"


def _short(text: str) -> str:
    """Shorten a text for a message."""
    return repr(text) if len(text) <= 60 else f"{text[:57]!r}…"


def as_molecule(thing: Any) -> Chem.Mol:
    """Read a molecule from text; return an RDKit molecule unchanged."""
    return read_molecule(thing) if isinstance(thing, str) else thing


def reread(texts: Iterable[str]) -> Iterator[Any]:
    """Yield the molecules of canonical SMILES; leave out those that RDKit cannot read again."""
    as_written: Any = Chem.SmilesParserParams()
    as_written.removeHs = False  # hydrogens that are still atoms were kept when they were read
    with rdBase.BlockLogs():
        for text in texts:
            molecule = Chem.MolFromSmiles(text, as_written)
            if molecule is not None:
                yield molecule


def traits_of(molecule: Any) -> dict[str, tuple[int, ...]]:
    """Return what tells whether a model has seen its like, by the names that a model has for them:
    the net charge, the charges of the atoms, the unpaired electrons, and the size of the largest
    ring of RDKit's ring set.
    """
    atoms = [*map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms()))]
    charges = {*map(Chem.Atom.GetFormalCharge, atoms)}
    radicals = sum(map(Chem.Atom.GetNumRadicalElectrons, atoms))
    return {
        "charges": (Chem.GetFormalCharge(molecule),),
        "atom_charges": tuple(sorted(charges)),
        "radicals": (radicals,),
        "rings": (max(map(len, molecule.GetRingInfo().AtomRings()), default=0),),
    }
