"""The pictures that are drawn from results/: the small table as a plot, and learning curves.

`scripts/tables.py` calls this. A comment at the end of each picture says which
numbers are in it, and a test fails where results/ has others.
"""

import hashlib
import json
from pathlib import Path

import tables

from cell_attention.evaluation.archive import run_folder
from cell_attention.evaluation.curves import draw_curves
from cell_attention.evaluation.figures import picture
from cell_attention.evaluation.run_summary import RunSummary

OUT = tables.ROOT / "docs" / "pictures"
COLOURS = ("#1f4e79", "#2a9d8f", "#d9822b", "#8a5a9e", "#5f6b76", "#b3261e")
CURVES = "MUTAG"
"""The set whose learning curves are shown."""


def comparison_plot(path: Path) -> None:
    """Draw the small table: a row per set, a mark per model, a line of one deviation."""
    reached = tables.reached()
    names = [*tables.SHOWN.values(), "the paper prints"]
    with picture(path, "accuracy in %: mean ± deviation over ten folds, best mean epoch") as axes:
        for place, (name, colour) in enumerate(zip(names, COLOURS, strict=True)):
            found = [(row, cells[name]) for row, cells in enumerate(reached.values())]
            marks = [(*cell, row + 0.13 * (place - 2.5)) for row, cell in found if cell]
            means, deviations, at = zip(*marks, strict=True)
            axes.errorbar(
                means, at, xerr=deviations, fmt="o", color=colour, markersize=4, linewidth=1,
                label=name,
            )  # fmt: skip
        axes.set_yticks(range(len(reached)), list(reached))
        axes.set_ylim(len(reached) + 0.5, -0.6)
        axes.legend(loc="lower center", ncols=3, fontsize=8, edgecolor="none")
    add_mark(path, compared_numbers())


def compared_numbers() -> str:
    """Return what the plot shows, as text."""
    return json.dumps(tables.reached())


def curves_plot(path: Path) -> None:
    """Draw the curve of every fold, their mean, and the epoch that is reported."""
    run = shown_run()
    if run.result is None:
        raise ValueError(f"{run.folder} is not finished")
    title = f"{CURVES}, the default network"
    draw_curves(
        path, curves(run), title=title, score="accuracy in %",
        chosen=run.result.protocols["paper"], majority=run.result.majority,
    )  # fmt: skip
    add_mark(path, json.dumps(curves(run)))


def shown_run() -> RunSummary:
    """Return the run whose curves are shown."""
    (run,) = (
        one for one in tables.runs() if (one.settings.row, one.settings.source) == ("can", CURVES)
    )
    return run


def curves(run: RunSummary) -> list[list[float]]:
    """Return the score of every epoch, fold by fold."""
    with run_folder(Path(run.folder)) as folder:
        folds = sorted(folder.glob("fold-*.json"))
        return [json.loads(file.read_text(encoding="utf-8"))["score"] for file in folds]


def mark(numbers: str) -> str:
    """Return the comment for these numbers."""
    return f"<!-- numbers: {hashlib.sha256(numbers.encode()).hexdigest()} -->\n"


def add_mark(path: Path, numbers: str) -> None:
    """Write at the end of a picture which numbers are in it."""
    path.write_text(path.read_text(encoding="utf-8") + mark(numbers), encoding="utf-8")


def main() -> None:
    """Draw both."""
    comparison_plot(OUT / "comparison.svg")
    curves_plot(OUT / "curves.svg")
