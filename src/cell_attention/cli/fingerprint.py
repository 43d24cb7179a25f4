"""`cell-attention fingerprint`: the readout vector h_C of every graph."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cell_attention.cli import console
from cell_attention.cli.predict import InferenceOptions
from cell_attention.errors import counted


@dataclass(frozen=True, kw_only=True)
class Fingerprint(InferenceOptions):
    """Write the readout vector h_C of every molecule or graph; the vectors of an ensemble are
    concatenated.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """The file to write: a .csv with all columns of SOURCE before the vector, or a .npy with the
    vectors only. Rows that cannot be read are blank in a .csv and NaN in a .npy."""

    safe_csv: bool = False
    """Write an apostrophe before cells that begin with =, +, - or @ and are no numbers, so that a
    spreadsheet does not run them."""

    def run(self) -> None:
        """Write the vectors, and print how many."""
        from cell_attention.api.predict import fingerprint, require_output

        require_output(self.out, (".csv", ".npy"), model=self.model, source=self.source)
        table = fingerprint(out=self.out, safe_csv=self.safe_csv, **self.arguments())
        count, width = table.shape
        blank = int(table[:, :1].isnan().any(1).sum())
        if self.json:
            record = {"model": str(self.model), "source": self.source, "rows": count}
            console.as_json({**record, "blank": blank, "width": width, "out": str(self.out)})
        else:
            text = f"{count - blank:,} vectors of {width} numbers written to {self.out}"
            console.note(text + (f", {counted(blank, 'row', 'rows')} blank" if blank else ""))
