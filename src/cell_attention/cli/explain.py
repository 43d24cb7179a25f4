"""`cell-attention explain`: the bonds and rings that predictions depend on, in one HTML file."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cell_attention.cli import console
from cell_attention.cli.predict import InferenceOptions

if TYPE_CHECKING:
    from cell_attention.explanation.explained_rows import ExplainedRows
    from cell_attention.explanation.totals import GroupTotal


MOST_GROUPS = 10
"""Functional groups that are printed at most; the file has all."""
GROUP_COLUMNS = ("group", "molecules", "atoms", "mean", "sum", "for", "against")


@dataclass(frozen=True, kw_only=True)
class Explain(InferenceOptions):
    """Explain predictions: show every molecule with its bonds and rings coloured by their
    contribution, its attention and pooling layer by layer, and how faithful the explanation is.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A file of molecules (.csv, .tsv, .txt, .smi or .sdf, also .gz or .zst; .parquet or .xlsx),
    or, for a model trained on one, a TU name, folder or .zip."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("report.html")
    """The file to write: .html, which opens in any browser without other files or a network
    connection; or .json or .csv, for programs."""
    top: int = 1000
    """Largest number of graphs to explain: the most confident predictions or highest values."""
    target: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The label or value to explain, if the model predicts several; the first by default."""
    explained_class: Annotated[str | None, tyro.conf.arg(name="class", metavar="CLASS")] = None
    """The class that every picture is for or against; by default the second of two classes, or of
    more the one that is predicted most often."""
    no_faithfulness: bool = False
    """Do not measure how faithful explanations are, which takes hundreds of predictions each."""

    def run(self) -> None:
        """Explain, and print a summary."""
        self._report(self.result())

    def result(self) -> "ExplainedRows":
        """Explain and write the file without printing."""
        from cell_attention.api.explain import explain_source

        return explain_source(
            **self.arguments(self.source), top=self.top, target=self.target,
            explained_class=self.explained_class,
            measure=not self.no_faithfulness, out=self.out,
        )  # fmt: skip

    def _report(self, found: "ExplainedRows") -> None:
        from cell_attention.explanation.page import summary, totals_record
        from cell_attention.explanation.records import plain

        means = summary(found.explanations)
        if self.json:
            record: dict[str, Any] = {"model": str(self.model), "source": self.source}
            record |= {"graphs": len(found.entries), "read": found.read, "left_out": found.left_out}
            record |= plain(totals_record(found.groups, found.scaffolds))
            console.as_json({**record, "faithfulness": plain(means), "out": str(self.out)})
            return
        if found.left_out:
            console.note(f"rows left out: {len(found.left_out):,}")
            for text in found.left_out if self.on_error == "report" else ():
                console.note(text)
        if found.read > len(found.entries):
            console.note(
                f"explained the {len(found.entries):,} of {found.read:,} graphs that rank highest; "
                "see --top"
            )
        if means is not None:
            fall = means["fidelity_plus"]
            console.note(
                f"without the best fifth of the edges the prediction falls by {fall['ours']:.3f} "
                f"on average, by chance {fall['chance']:.3f}"
            )
        if found.groups:
            name = found.entries[0].explanation.name
            title = f"What functional groups carry of {name}, the first {MOST_GROUPS}"
            console.table(title, GROUP_COLUMNS, [*map(_group_cells, found.groups[:MOST_GROUPS])])
        size = self.out.stat().st_size / 1e6
        console.say(f"{found.counted} explained in {self.out} ({size:.1f} MB)")


def _group_cells(row: "GroupTotal") -> tuple[str, ...]:
    carried = row.mean, row.importance, row.speaks_for, row.speaks_against
    return (
        row.group,
        f"{row.molecules:,}",
        f"{row.atoms:,}",
        *(f"{value:+.3f}" for value in carried),
    )
