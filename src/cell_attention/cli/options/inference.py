"""Flags of all commands that apply a trained model to a SOURCE."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from cell_attention.cli.options.source import DataDir
from cell_attention.cli.progress import ConsoleProgress


@dataclass(frozen=True, kw_only=True)
class InferenceOptions:
    """A command that applies a trained model to a SOURCE."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL_DIR")]
    """The folder of a trained model."""
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A .csv, .smi or .sdf of molecules (also gzipped), or, for a model trained on one, a TU name,
    folder or .zip."""
    smiles_column: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Column of a .csv with SMILES or InChI; by default the first."""
    on_error: Literal["report", "skip", "fail"] = "report"
    """What to do with rows that cannot be read: keep them with a reason (report), leave them out
    (skip), or stop with an error (fail)."""
    json: bool = False
    """Print one JSON object instead of text."""
    data_dir: DataDir = None
    """Folder to search first for TU names; then $CELL_ATTENTION_DATA, then the cache."""
    node_attributes: bool = False
    """Append the node attributes of a TU set to its node labels."""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `predict`, `fingerprint` and `open_rows`, by name."""
        return {
            "model": self.model,
            "data": self.source,
            "smiles_column": self.smiles_column,
            "on_error": self.on_error,
            "data_dir": self.data_dir,
            "node_attributes": self.node_attributes,
            "is_source": True,
            "progress": ConsoleProgress(silent=True),
        }
