"""Flags for the columns of a file of molecules."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from cell_attention.data.file_format import AskedTask, Columns, OnError


@dataclass(frozen=True)
class MoleculeFlags:
    """How to read a file of molecules."""

    smiles_column: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Column of a table with SMILES or InChI; by default found by its name, then by its cells."""
    target_columns: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME…")] = None
    """Columns of a table or fields of an .sdf to predict; by default all other columns of a table,
    except identifiers and texts beside numbers."""
    task: AskedTask = "auto"
    """The kind of targets; auto treats zeros and ones, and texts, as classes."""
    descriptors: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="WORD…")] = None
    """What the network reads of whole molecules: rdkit, a quick set of descriptors (the default),
    rdkit-all, columns of the table, morgan, exact counts of surroundings (see --counts), both,
    rdkit and morgan, or none."""
    on_error: OnError = "fail"
    """What to do with rows that cannot be read: stop with an error before any work (fail), leave
    them out and count them (skip), or leave them out and list them one by one (report)."""

    def columns(self, split: str | None = None) -> Columns:
        """Return the columns for `read_source`."""
        return Columns(self.smiles_column, self.target_columns, split, self.task, self.descriptors)
