"""`cell-attention fingerprint`: the readout vector h_C of every graph."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from cell_attention.cli import console
from cell_attention.cli.predict import RowOptions, out_is_folder
from cell_attention.errors import counted


@dataclass(frozen=True, kw_only=True)
class Fingerprint(RowOptions):
    """Write the readout vector h_C of every molecule or graph; the vectors of an ensemble are
    concatenated.
    """

    out: Annotated[str, tyro.conf.arg(metavar="FILE|FOLDER/")]
    """The file to write: a .csv with all columns of SOURCE before the vector, or a .npy with the
    vectors only; or a folder for shards, which a run that was killed continues with the same
    command. Rows that cannot be read are blank, in a .npy NaN."""

    def run(self) -> None:
        """Write the vectors, and print how many."""
        from cell_attention.api.predict import fingerprint

        table = fingerprint(**self.row_arguments(self.out))
        found: dict[str, Any] = {"rows": table.size(0), "blank": 0, "width": table.size(1)}
        if out_is_folder(self.out, (".csv", ".npy")):
            counts = json.loads((Path(self.out) / "result.json").read_text(encoding="utf-8"))
            found = {"rows": counts["rows"], "blank": counts["rows"] - counts["predicted"]}
        else:
            found["blank"] = int(table[:, :1].isnan().any(1).sum())
        if self.json:
            record = {"model": str(self.model), "source": self.source, **found}
            console.as_json({**record, "out": self.out})
        else:
            width = f" of {found['width']} numbers" if "width" in found else ""
            text = f"{found['rows'] - found['blank']:,} vectors{width} written to {self.out}"
            console.note(
                text
                + (f", {counted(found['blank'], 'row', 'rows')} blank" if found["blank"] else "")
            )
