"""`cell-attention predict`: what a trained model says of molecules or graphs."""

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
    from cell_attention.inference.prediction_table import Truths


@dataclass(frozen=True, kw_only=True)
class Predict(Applying):
    """Predict with a trained model: the rows of SOURCE in their order with all their columns, and
    new ones for the prediction, what to be careful about, and why there is none.

    Where SOURCE has the columns that the model predicts, it is also said how good that is.
    """

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A .csv file; printed where there is none."""

    def run(self) -> None:
        """Load, read, predict, write."""
        from cell_attention.inference.prediction_table import Truths, header, truth_names

        if self.out is not None and self.out.suffix.lower() != ".csv":
            raise InputError(f"--out must end in .csv, got {self.out}")
        model = self.loaded(self.out)
        columns, chunks = self.opened(model)
        made = (*header(model), "warning", "error")
        require_free(columns, made, self.source)
        names = truth_names(model)
        known = [columns.index(name) for name in names if name in columns]
        truths, counts = Truths(model), {"rows": 0, "predicted": 0, "warned": 0}
        written: list[dict[str, Any]] = []
        rows = self._rows(model, columns, chunks, known, truths, counts)
        if self.json and self.out is None:
            keys = distinct((*columns, *made))
            written = [dict(zip(keys, row, strict=True)) for row in rows]
        else:
            with table_writer(self.out) as writer:
                writer.writerow((*columns, *made))
                writer.writerows(rows)
        reached = truths.metrics() if len(known) == len(names) else {}
        self._report(counts, reached, written)

    def _rows(
        self,
        model: Any,
        columns: tuple[str, ...],
        chunks: "Iterator[Chunk]",
        known: list[int],
        truths: "Truths",
        counts: dict[str, int],
    ) -> Iterator[tuple[str, ...]]:
        from cell_attention.inference.prediction import predict
        from cell_attention.inference.prediction_table import cells, header

        empty = ("",) * len(header(model))
        for chunk in chunks:
            predictions = predict(model, chunk.complexes)
            answers = cells(model, predictions)
            for one, place, reason, warning in zip(
                chunk.rows, chunk.place, chunk.reasons, chunk.warnings, strict=True
            ):
                row = padded(one.cells, len(columns))
                if place is None and self.on_error == "skip":
                    continue
                counts["rows"] += 1
                counts["warned"] += bool(warning)
                if place is not None:
                    counts["predicted"] += 1
                    truths.add(predictions.values[place], [row[column] for column in known])
                yield (*row, *(empty if place is None else answers[place]), warning, reason)

    def _report(
        self, counts: dict[str, int], reached: dict[str, Any], written: list[dict[str, Any]]
    ) -> None:
        from cell_attention.training.metrics import METRICS

        if self.json:
            record: dict[str, Any] = {"model": str(self.model), "source": self.source, **counts}
            record["metrics"] = reached
            if self.out is None:
                record["predictions"] = written
            else:
                record["out"] = str(self.out)
            show.as_json(record)
            return
        missing = counts["rows"] - counts["predicted"]
        text = f"{counts['predicted']:,} of {counts['rows']:,} rows predicted"
        if missing:
            text += f", {missing:,} with an error instead"
        if counts["warned"]:
            text += f", {counts['warned']:,} with a warning"
        show.note(text + (f"; written to {self.out}" if self.out else ""))
        if reached:
            listed = [f"{METRICS[n].title} {v:.3f}" for n, v in reached.items() if n in METRICS]
            show.note(f"on the {reached['rows']:,} rows with targets: {', '.join(listed)}")
            if reached["unknown_targets"]:
                count = reached["unknown_targets"]
                show.note(f"{count:,} targets are none that the model knows; they are not counted")


def distinct(names: tuple[str, ...]) -> list[str]:
    """The same names, the second of two alike with a number behind it."""
    found: list[str] = []
    for name in names:
        number, other = 1, name
        while other in found:
            number += 1
            other = f"{name}_{number}"
        found.append(other)
    return found
