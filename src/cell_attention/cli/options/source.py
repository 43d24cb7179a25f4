"""Flags that say where graphs come from, and the reading of what they name."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cell_attention.cli import console
from cell_attention.cli.options.molecules import MoleculeFlags

if TYPE_CHECKING:
    from cell_attention.data.dataset import GraphSet

DataDir = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")]


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """A SOURCE, and how it is read."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A TU name such as MUTAG, a folder or .zip in TU format, or a .csv, .smi or .sdf of molecules
    (also gzipped)."""
    json: bool = False
    """Print one JSON object instead of a table."""
    data_dir: DataDir = None
    """Where to look for TU names first; then $CELL_ATTENTION_DATA, then the cache."""
    node_attributes: bool = False
    """Add a TU set's node attributes to its node labels."""
    molecules: tyro.conf.OmitArgPrefixes[MoleculeFlags] = field(default_factory=MoleculeFlags)
    """How a file of molecules is read."""

    def read(self, split_column: str | None = None) -> "GraphSet":
        """The graphs of the source, not lifted yet."""
        from cell_attention.data.sources import read_source

        with console.progress_bar(f"Reading {self.source}") as progress:
            return read_source(
                self.source,
                self.data_dir,
                node_attributes=self.node_attributes,
                on_error=self.molecules.on_error,
                columns=self.molecules.columns(split_column),
                progress=progress,
            )
