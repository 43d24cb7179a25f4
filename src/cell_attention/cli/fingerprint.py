"""`cell-attention fingerprint`: the vector h_C that a trained network makes of every graph."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cell_attention.cli import console as show
from cell_attention.cli.options.inference import Applying, padded, require_free, table_writer
from cell_attention.errors import InputError

if TYPE_CHECKING:
    from cell_attention.inference.molecule_stream import Chunk


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
        header, chunks = self.opened(model)
        width = model.network.config.readout_width * len(model.members)
        names = tuple(f"h{number}" for number in range(width))
        rows = self._rows(model, len(header), chunks)
        count, blank = 0, 0
        if self.out.suffix.lower() == ".npy":
            count, blank = self._write_array(rows, width)
        else:
            require_free(header, (*names, "error"), self.source)
            with table_writer(self.out) as writer:
                writer.writerow((*header, *names, "error"))
                for cells, vector, reason in rows:
                    texts = ("",) * width if vector is None else [f"{v:.7g}" for v in vector]
                    writer.writerow((*cells, *texts, reason))
                    count, blank = count + 1, blank + (vector is None)
        if self.json:
            record = {"model": str(self.model), "source": self.source, "rows": count}
            show.as_json({**record, "blank": blank, "width": width, "out": str(self.out)})
        else:
            text = f"{count - blank:,} vectors of {width} numbers written to {self.out}"
            show.note(text + (f", {blank:,} rows blank" if blank else ""))

    def _rows(self, model: Any, columns: int, chunks: "Iterator[Chunk]") -> Any:
        from cell_attention.inference.prediction import fingerprints

        for chunk in chunks:
            vectors = fingerprints(model, chunk.complexes).tolist()
            for row, place, reason in zip(chunk.rows, chunk.place, chunk.reasons, strict=True):
                if place is not None or self.on_error != "skip":
                    cells = padded(row.cells, columns)
                    yield cells, None if place is None else vectors[place], reason

    def _write_array(self, rows: Any, width: int) -> tuple[int, int]:
        import numpy as np

        from cell_attention._files import replacing

        missing = [float("nan")] * width
        table = np.array([missing if v is None else v for _, v, _ in rows], np.float32)
        with replacing(self.out) as unfinished, unfinished.open("wb") as file:
            np.save(file, table.reshape(-1, width), allow_pickle=False)
        return len(table), int(np.isnan(table[:, 0]).sum()) if len(table) else 0
