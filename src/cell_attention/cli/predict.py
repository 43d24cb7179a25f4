"""`cell-attention predict`: what a trained model says of molecules or graphs.

The flags of `InferenceOptions` are those of every verb that asks a model about a source.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from cell_attention.cli import console
from cell_attention.cli.options.source import DataDir

if TYPE_CHECKING:
    from cell_attention.inference.prediction_table import PredictionTable


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
            "progress": console.ConsoleProgress(silent=True),
        }


@dataclass(frozen=True, kw_only=True)
class Predict(InferenceOptions):
    """Predict with a trained model: the rows of SOURCE in their order with all their columns, and
    new ones for the prediction, what to be careful about, and why there is none.

    Where SOURCE has the columns that the model predicts, it is also said how good that is.
    """

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A .csv file; printed where there is none."""

    def run(self) -> None:
        """Predict, and say how many rows and how well."""
        from cell_attention.api.predict import predict, require_output, table_writer

        if self.out is not None:
            require_output(self.out, (".csv",), self.model, self.source)
        table = predict(out=self.out, **self.arguments())
        if self.out is None and not self.json:
            with table_writer(None) as writer:
                writer.writerow(table.header)
                writer.writerows(table.rows)
        self._report(table)

    def _report(self, table: "PredictionTable") -> None:
        counts, reached = table.counts, table.metrics
        if self.json:
            record: dict[str, Any] = {"model": str(self.model), "source": self.source, **counts}
            record["metrics"] = reached
            if self.out is None:
                keys = distinct(table.header)
                record["predictions"] = [dict(zip(keys, row, strict=True)) for row in table.rows]
            else:
                record["out"] = str(self.out)
            console.as_json(record)
            return
        missing = counts["rows"] - counts["predicted"]
        text = f"{counts['predicted']:,} of {counts['rows']:,} rows predicted"
        if missing:
            text += f", {missing:,} with an error instead"
        if counts["warned"]:
            text += f", {counts['warned']:,} with a warning"
        console.note(text + (f"; written to {self.out}" if self.out else ""))
        if reached:
            from cell_attention.training.metrics import METRICS

            listed = [f"{METRICS[n].title} {v:.3f}" for n, v in reached.items() if n in METRICS]
            console.note(f"on the {reached['rows']:,} rows with targets: {', '.join(listed)}")
            if reached["unknown_targets"]:
                count = reached["unknown_targets"]
                console.note(
                    f"{count:,} targets are none that the model knows; they are not counted"
                )


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
