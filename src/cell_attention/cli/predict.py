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
from cell_attention.errors import DataError, InputError, counted
from cell_attention.inference.shard_options import ShardOptions

if TYPE_CHECKING:
    from cell_attention.inference.prediction_table import PredictionTable

MOST_COLUMNS = 20
"""Most labels or columns of values whose metrics are printed one by one."""


@dataclass(frozen=True, kw_only=True)
class InferenceOptions:
    """A command that applies a trained model."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL_DIR")]
    """The folder of a trained model."""
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

    def arguments(self, data: Any, *, silent: bool = True) -> dict[str, Any]:
        """Return the arguments of `predict`, `fingerprint` and `explain_source`, by name."""
        return {
            "model": self.model,
            "data": data,
            "smiles_column": self.smiles_column,
            "file_format": self.file_format,
            "on_error": self.on_error,
            "data_dir": self.data_dir,
            "node_attributes": self.node_attributes,
            "is_source": True,
            "progress": console.ConsoleProgress(silent=silent),
        }


@dataclass(frozen=True, kw_only=True)
class RowOptions(InferenceOptions):
    """A command that computes something for every row of its sources."""

    sources: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """Files of molecules (.csv, .tsv, .txt, .smi or .sdf, also .gz or .zst; .parquet or .xlsx),
    folders of such files or patterns such as 'lib/*.smi.gz'; or, for a model trained on one, a TU
    name, folder or .zip."""
    jobs: int = 1
    """Number of processes; 0 is one per core."""
    safe_csv: bool = False
    """Write an apostrophe before cells that begin with =, +, - or @ and are no numbers, so that a
    spreadsheet does not run them."""
    shards: tyro.conf.OmitArgPrefixes[ShardOptions] = field(default_factory=ShardOptions)
    """How a folder is written, if --out names one."""

    def row_arguments(self, out: str | None) -> dict[str, Any]:
        """Return the arguments that `predict` and `fingerprint` share, by name."""
        if not self.sources:
            raise InputError("SOURCE is missing; --help says what it is")
        data = list(self.sources) if len(self.sources) > 1 else self.sources[0]
        endings = (".csv", ".npy")
        into_shards = out is not None and out_is_folder(out, endings)
        return {
            **self.arguments(data, silent=self.json or not into_shards),
            "out": out, "jobs": self.jobs, "shards": self.shards, "safe_csv": self.safe_csv,
        }  # fmt: skip

    @property
    def source(self) -> str:
        """The sources as one text."""
        return " ".join(self.sources)


def out_is_folder(out: str, endings: tuple[str, ...]) -> bool:
    """Whether --out names a folder of shards."""
    from cell_attention.api.outputs import is_folder

    return is_folder(out, endings)


@dataclass(frozen=True, kw_only=True)
class Predict(RowOptions):
    """Predict with a trained model. The output has the rows of SOURCE in the same order with all
    their columns, and new columns for predictions, warnings and errors.

    If SOURCE has the columns that the model predicts, metrics are also printed.
    """

    out: Annotated[str | None, tyro.conf.arg(metavar="FILE.csv|FOLDER/")] = None
    """The .csv file to write, or a folder for shards, which a run that was killed continues with
    the same command; without it the rows are printed."""
    positive: Annotated[str | None, tyro.conf.arg(metavar="CLASS")] = None
    """Of two classes, the one whose probability is written; by default the second."""
    filters: Annotated[
        tuple[str, ...], tyro.conf.arg(name="filter", metavar="'COLUMN>NUMBER'…")
    ] = ()
    """Keep only the rows that fulfil these conditions: >, <, >=, <=, = or !=."""
    top: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Keep only the N best rows of all sources, the best first; in a folder they are in top.csv."""
    rank_by: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None
    """The column of the output that says which rows are the best; by default the prediction."""
    lowest: bool = False
    """Take the lowest values for the best."""

    def run(self) -> None:
        """Predict, and print the counts and metrics."""
        from cell_attention.api.outputs import write_table
        from cell_attention.api.predict import predict

        table = predict(
            positive=self.positive, filters=self.filters, top=self.top, rank_by=self.rank_by,
            lowest=self.lowest, **self.row_arguments(self.out),
        )  # fmt: skip
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
                record["out"] = self.out
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
