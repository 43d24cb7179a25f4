"""Flags for the source of graphs, and a method that reads it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import tyro

from cell_attention.cli import console
from cell_attention.cli.options.data_dir import DataDir
from cell_attention.cli.options.molecules import MoleculeFlags
from cell_attention.data.file_format import Columns, FileFormat

if TYPE_CHECKING:
    from cell_attention.data.dataset import GraphSet


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """A SOURCE, and how to read it."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A TU name such as MUTAG, a folder or .zip in TU format, or a file of molecules: .csv, .tsv,
    .txt, .smi or .sdf (also gzipped), .parquet or .xlsx."""
    json: bool = False
    """Print one JSON object instead of a table."""
    data_dir: DataDir = None
    """Folder to search first for TU names; then $CELL_ATTENTION_DATA, then the cache."""
    node_attributes: bool = False
    """Append the node attributes of a TU set to its node labels."""
    file_format: tyro.conf.OmitArgPrefixes[FileFormat] = field(default_factory=FileFormat)
    """How the files are written, and how large they may be."""
    molecules: tyro.conf.OmitArgPrefixes[MoleculeFlags] = field(default_factory=MoleculeFlags)
    """How to read a file of molecules."""

    def read(self, columns: Columns | None = None) -> "GraphSet":
        """Read the graphs of the source, without lifting them."""
        from cell_attention.data.sources import read_source

        with console.ConsoleProgress().bar(f"Reading {self.source}") as progress:
            return read_source(
                self.source,
                self.data_dir,
                node_attributes=self.node_attributes,
                on_error=self.molecules.on_error,
                file_format=self.file_format,
                columns=columns or self.molecules.columns(),
                progress=progress,
            )
