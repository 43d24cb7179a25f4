"""Flags of all verbs that ask a trained model about a SOURCE."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from cell_attention.cli.options.source import DataDir
from cell_attention.cli.progress import ConsoleProgress


@dataclass(frozen=True, kw_only=True)
class InferenceOptions:
    """A verb that asks a trained model about a SOURCE."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL_DIR")]
    """The folder of a trained model."""
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A .csv, .smi or .sdf of molecules (also gzipped), or a set in TU format as the model was
    trained on."""
    smiles_column: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Column of a .csv with SMILES or InChI; the first by default."""
    on_error: Literal["report", "skip", "fail"] = "report"
    """Rows that cannot be read keep their place with a reason, are left out, or are refused."""
    json: bool = False
    """Print one JSON object."""
    data_dir: DataDir = None
    """Where to look for TU names first; then $CELL_ATTENTION_DATA, then the cache."""
    node_attributes: bool = False
    """Add a TU set's node attributes to its node labels."""

    def arguments(self) -> dict[str, Any]:
        """What all functions that ask a model take, by name."""
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
