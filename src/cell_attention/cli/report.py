"""`cell-attention report`: one table of several runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from cell_attention._files import check_writable
from cell_attention.cli import console
from cell_attention.errors import InputError


@dataclass(frozen=True)
class Report:
    """Print one table of several cross-validations, and write it as Markdown or CSV."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN_DIR")]
    """Folders of `crossval`, or files written by `pack`."""
    out: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = ()
    """Also write the table to these files, which must end in .md or .csv."""
    protocol: Literal["paper", "per_fold_best", "fair"] = "paper"
    """The protocol by which several models on one data set are compared."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        """Read the runs, print the table, and write it."""
        if not self.runs:
            raise InputError("report needs at least one RUN_DIR, got none")
        for path in self.out:
            if path.suffix not in (".md", ".csv"):
                raise InputError(f"--out must end in .md or .csv, got {path}")
            check_writable(path, "")
        from cell_attention._files import write_whole
        from cell_attention.evaluation import comparison
        from cell_attention.evaluation import run_table as report
        from cell_attention.evaluation.run_summary import summary

        places = [folder.resolve() for folder in self.runs]
        for folder, place in zip(self.runs, places, strict=True):
            if places.count(place) > 1:
                raise InputError(f"RUN_DIR {folder} is named twice; name it once")
        entries = [summary(folder) for folder in self.runs]
        joined = comparison.compared(entries, self.protocol)
        for path in self.out:
            markdown = path.suffix == ".md"
            text = report.as_markdown(entries, joined) if markdown else report.as_csv(entries)
            write_whole(path, text)
        if self.json:
            compared = None if joined is None else comparison.as_record(joined)
            runs = [report.as_record(entry) for entry in entries]
            console.as_json({"runs": runs, "comparison": compared})
            return
        title = "Mean ± population std over the folds; @ is the epoch"
        console.table(title, report.HEADER, [report.cells(entry) for entry in entries])
        if joined is None and self.protocol != "paper":
            console.note(
                f"nothing is compared: no data set has two runs with protocol {self.protocol!r}"
            )
        if joined is not None:
            print()
            console.table(joined.title, joined.header, joined.rows(console.BOLD))
            for line in joined.notes():
                print(line)
        for path in self.out:
            console.note(f"written to {path}")
