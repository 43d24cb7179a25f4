"""Molecules in memory as the rows of a source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rdkit import Chem

from cell_attention.data.molecules.files import Row
from cell_attention.data.molecules.molecule import as_molecule
from cell_attention.errors import InputError


@dataclass(frozen=True)
class MoleculeList:
    """Molecules in memory, with the interface of a `MoleculeFile`."""

    molecules: Sequence[Any]

    @property
    def rows(self) -> Iterator[Row]:
        """Yield one row per molecule, counted from 1."""
        for number, one in enumerate(self.molecules, 1):
            text = one if isinstance(one, str) else Chem.MolToSmiles(one)
            yield Row(number, text, (text,))

    @property
    def reader(self) -> Self:
        """Return what reads the molecules of the rows."""
        return self

    def molecule(self, row: Row) -> Chem.Mol:
        """Return the molecule of a row; raise MoleculeError if it is not valid."""
        return as_molecule(self.molecules[row.line - 1])

    def numbers(self, row: Row, names: Sequence[str]) -> list[float]:
        """Return the descriptors in columns of a table, which a list of molecules does not have."""
        raise InputError(
            f"the model needs the column {names[0]!r} of every molecule: predict a table"
        )
