"""Flags that say which columns of a file of molecules mean what."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from cell_attention.data.dataset import AskedTask, Columns, OnError


@dataclass(frozen=True)
class MoleculeFlags:
    """How a file of molecules is read."""

    smiles_column: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Column of a .csv with SMILES or InChI; the first by default."""
    target_columns: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME…")] = None
    """Columns of a .csv or fields of an .sdf to predict; in a .csv all other columns by default."""
    task: AskedTask = "auto"
    """What the targets are; auto takes zeros and ones, and texts, as classes."""
    on_error: OnError = "fail"
    """Rows that cannot be read are refused before anything is begun, left out and counted, or
    left out and listed one by one."""

    def columns(self, split: str | None = None) -> Columns:
        """As `read_source` takes them."""
        return Columns(self.smiles_column, self.target_columns, split, self.task)
