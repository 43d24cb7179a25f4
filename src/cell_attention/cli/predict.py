"""`cell-attention predict`: predict with a trained model.

`InferenceOptions` has the flags of every command that applies a trained model to a source.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from cell_attention.cli import console
from cell_attention.cli.options.data_dir import DataDir
from cell_attention.data.file_format import FileFormat
from cell_attention.errors import DataError, counted

if TYPE_CHECKING:
    from cell_attention.inference.prediction_table import PredictionTable

MOST_COLUMNS = 20
"""Most labels or columns of values whose metrics are printed one by one."""


@dataclass(frozen=True, kw_only=True)
class InferenceOptions:
    """A command that applies a trained model to a SOURCE."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL_DIR")]
    """The folder of a trained model."""
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A file of molecules (.csv, .tsv, .txt, .smi or .sdf, also gzipped; .parquet or .xlsx), or,
    for a model trained on one, a TU name, folder or .zip."""
    smiles_column: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Column of a table with SMILES or InChI; by default that of the training data if
    SOURCE has it, else found by its name or its cells."""
    on_error: Literal["report", "skip", "fail"] = "report"
    """What to do with rows that cannot be read: keep them with a reason (report), leave them out
    (skip), or stop with an error (fail)."""
    json: bool = False
    """Print one JSON object instead of text."""
    data_dir: DataDir = None
    """Folder to search first for TU names; then $CELL_ATTENTION_DATA, then the cache."""
    node_attributes: bool = False
    """Append the node attributes of a TU set to its node labels."""
    file_format: tyro.conf.OmitArgPrefixes[FileFormat] = field(default_factory=FileFormat)
    """How the files are written, and how large they may be."""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `predict`, `fingerprint` and `open_rows`, by name."""
        return {
            "model": self.model,
            "data": self.source,
            "smiles_column": self.smiles_column,
            "file_format": self.file_format,
            "on_error": self.on_error,
            "data_dir": self.data_dir,
            "node_attributes": self.node_attributes,
            "is_source": True,
            "progress": console.ConsoleProgress(silent=True),
        }


@dataclass(frozen=True, kw_only=True)
class Predict(InferenceOptions):
    """Predict with a trained model. The output has the rows of SOURCE in the same order with all
    their columns, and new columns for predictions, warnings and errors.

    If SOURCE has the columns that the model predicts, metrics are also printed.
    """

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The .csv file to write; without it the rows are printed."""

    positive: Annotated[str | None, tyro.conf.arg(metavar="CLASS")] = None
    """Of two classes, the one whose probability is written; by default the second."""

    safe_csv: bool = False
    """Write an apostrophe before cells that begin with =, +, - or @ and are no numbers, so that a
    spreadsheet does not run them."""

    def run(self) -> None:
        """Predict, and print the counts and metrics."""
        from cell_attention.api.predict import predict, require_output, write_table

        if self.out is not None:
            require_output(self.out, (".csv",), model=self.model, source=self.source)
        table = predict(
            out=self.out, positive=self.positive, safe_csv=self.safe_csv, **self.arguments()
        )
        if self.out is None and not self.json:
            write_table(None, table.header, table.rows, safe=self.safe_csv)
        self._report(table)
        rows = table.counts["predicted"] + table.unread
        if 2 * table.unread > rows:
            raise DataError(
                f"{self.source}: {table.unread:,} of {rows:,} rows cannot be read, more than half; "
                "check smiles_column"
            )

    def _report(self, table: "PredictionTable") -> None:
        counts, reached = table.counts, table.metrics
        if self.json:
            record: dict[str, Any] = {"model": str(self.model), "source": self.source, **counts}
            record["metrics"] = reached
            if self.out is None:
                record["predictions"] = [table.record(row) for row in table.rows]
            else:
                record["out"] = str(self.out)
            console.as_json(record)
            return
        missing = counts["rows"] - counts["predicted"]
        text = f"{counts['predicted']:,} of {counts['rows']:,} rows predicted"
        if missing:
            text += f", {counted(missing, 'has', 'have')} an error instead"
        if counts["warned"]:
            text += f", {counted(counts['warned'], 'has', 'have')} a warning"
        console.note(text + (f"; written to {self.out}" if self.out else ""))
        if reached:
            from cell_attention.training.metrics import METRICS

            listed = [f"{METRICS[n].title} {v:.3f}" for n, v in reached.items() if n in METRICS]
            rows = counted(reached["rows"], "row", "rows")
            console.note(f"on the {rows} with targets: {', '.join(listed)}")
            if "rmse" in reached and "columns" in reached:
                console.note("RMSE and MAE of all columns together are in standard deviations")
            for column, found in list(reached.get("columns", {}).items())[:MOST_COLUMNS]:
                each = [f"{METRICS[n].title} {v:.3f}" for n, v in found.items()]
                console.note(f"{column}: {', '.join(each) or 'no metric is defined'}")
            if reached["unknown_targets"]:
                words = "target value is unknown", "target values are unknown"
                found = counted(reached["unknown_targets"], *words)
                console.note(f"{found} to the model and ignored")
            if reached.get("bounds"):
                words = "value is a bound (>, <) and is", "values are bounds (>, <) and are"
                console.note(f"{counted(reached['bounds'], *words)} not counted")
