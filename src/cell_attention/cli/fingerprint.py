"""`cell-attention fingerprint`: the vector h_C that a trained network makes of every graph."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from cell_attention.cli import show
from cell_attention.cli.applying import Applying, require_free, table_writer
from cell_attention.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Fingerprint(Applying):
    """Write the readout vector h_C of every molecule or graph, row by row; of an ensemble those of
    all its networks side by side.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """A .csv with all columns of SOURCE before the vector, or a .npy with the vectors alone; a row
    that is no molecule is blank there, or not a number."""

    def run(self) -> None:
        """Load, read, embed, write."""
        if self.out.suffix.lower() not in (".csv", ".npy"):
            raise InputError(f"--out must end in .csv or .npy, got {self.out}")
        model = self.loaded(self.out)
        header, batches = self.opened(model)
        width = model.network.config.readout_width * len(model.members)
        names = tuple(f"h{number}" for number in range(width))
        rows = self._rows(model, batches, width)
        count = 0
        if self.out.suffix.lower() == ".npy":
            count = self._write_array(rows, width)
        else:
            require_free(header, (*names, "error"), self.source)
            with table_writer(self.out) as writer:
                writer.writerow((*header, *names, "error"))
                for cells, vector, reason in rows:
                    texts = ("",) * width if vector is None else [f"{v:.7g}" for v in vector]
                    writer.writerow((*cells, *texts, reason))
                    count += 1
        if self.json:
            record = {"model": str(self.model), "source": self.source, "rows": count}
            show.as_json({**record, "width": width, "out": str(self.out)})
        else:
            show.note(f"{count:,} vectors of {width} numbers written to {self.out}")

    def _rows(self, model: Any, batches: Any, width: int) -> Any:
        from cell_attention.learn.prediction import fingerprints

        for batch in batches:
            vectors = fingerprints(model, batch.complexes).tolist()
            for cells, place, reason in zip(batch.cells, batch.place, batch.reasons, strict=True):
                if place is not None or self.on_error != "skip":
                    yield cells, None if place is None else vectors[place], reason

    def _write_array(self, rows: Any, width: int) -> int:
        import numpy as np

        from cell_attention._files import replacing

        missing = [float("nan")] * width
        table = np.array([missing if v is None else v for _, v, _ in rows], np.float32)
        with replacing(self.out) as unfinished, unfinished.open("wb") as file:
            np.save(file, table.reshape(-1, width), allow_pickle=False)
        return len(table)
