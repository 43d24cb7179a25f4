"""One table of several runs: the numbers by protocol, for people and for programs."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from cell_attention.evaluation import comparison
from cell_attention.evaluation.published import PAPER
from cell_attention.evaluation.result import PROTOCOLS
from cell_attention.evaluation.run_summary import RunSummary, markdown_table

HEADER = (
    "data set", "model", "graphs", "folds", *PROTOCOLS.values(), "the paper prints",
    "largest class", "graphs with a twin",
)  # fmt: skip


def cells(entry: RunSummary) -> tuple[str, ...]:
    """Return one row for people, below HEADER."""
    settings, result = entry.settings, entry.result
    printed = PAPER.get(settings.source) if settings.model == "can" else None
    if result is None:
        shown = [f"unfinished, {entry.finished} of {entry.folds} folds", "", ""]
    else:
        shown = [
            text + (f" @{epoch}" if epoch.isdigit() else "") for _, text, epoch in result.rows()
        ]
        shown += ["no epochs"] * (len(PROTOCOLS) - len(shown))
    majority = None if result is None else result.majority
    return (
        settings.source,
        settings.model,
        str(settings.graphs),
        settings.splits,
        *shown,
        "" if printed is None else f"{printed[0]} ± {printed[1]}",
        "" if majority is None else f"{majority:.1f}",
        "" if result is None else str(result.leakage.with_twin),
    )


def as_record(entry: RunSummary) -> dict[str, Any]:
    """Return one row for programs: numbers are not rounded, missing ones are None."""
    settings, result = entry.settings, entry.result
    record: dict[str, Any] = {
        "run": entry.folder,
        "source": settings.source,
        "model": settings.model,
        "graphs": settings.graphs,
        "splits": settings.splits,
        "folds": entry.folds,
        "finished_folds": entry.finished,
        "epochs": settings.training.epochs,
        "seed": settings.training.seed,
        "score": None if result is None else result.score,
    }
    for name in PROTOCOLS:
        outcome = None if result is None else result.protocols[name]
        record |= {
            f"{name}_{part}": getattr(outcome, part, None) for part in ("mean", "std", "epoch")
        }
    leakage = None if result is None else result.leakage
    record["majority"] = getattr(result, "majority", None)
    for name in ("with_twin", "held_out_with_twin_in_training"):
        record[name] = getattr(leakage, name, None)
    return record


def as_markdown(entries: Sequence[RunSummary], joined: comparison.Comparison | None = None) -> str:
    """Return a table with a note on its numbers, and the models side by side."""
    note = (
        "Mean ± population standard deviation over the folds; @ is the epoch, the same for all "
        "folds. A twin is another graph of the set that 1-WL cannot tell from it."
    )
    blocks = [markdown_table(HEADER, [cells(entry) for entry in entries]), note]
    if joined is not None:
        blocks.append(comparison.as_markdown(joined))
    return "\n\n".join(blocks).rstrip() + "\n"


def as_csv(entries: Sequence[RunSummary]) -> str:
    """Return the rows for programs as CSV."""
    records = [as_record(entry) for entry in entries]
    names = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()
