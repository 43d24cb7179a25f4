"""Several models side by side: a row per model, a column per data set, and tests for noise."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cell_attention.evaluation.paired import Difference, difference
from cell_attention.evaluation.protocols import Outcome
from cell_attention.evaluation.published import FAIR, TABLE, printed_text
from cell_attention.evaluation.result import PROTOCOLS
from cell_attention.evaluation.run_summary import RunSummary, markdown_table

Protocol = Literal["paper", "per_fold_best", "fair"]


@dataclass(frozen=True)
class ComparedRun:
    """One model on one data set."""

    row: str
    source: str
    folds: str
    """Digest of the held-out graphs: only runs with the same folds are paired."""
    score: str
    outcome: Outcome


@dataclass(frozen=True)
class Comparison:
    """The runs of several models, compared by one protocol."""

    protocol: Protocol
    entries: tuple[ComparedRun, ...]
    remarks: tuple[str, ...] = ()
    """Further notes about the runs."""

    @property
    def sources(self) -> list[str]:
        """The data sets, one per column."""
        return list(dict.fromkeys(entry.source for entry in self.entries))

    def best(self, source: str) -> ComparedRun:
        """Return the run with the highest mean; of several the first."""
        return max(self._of(source), key=lambda entry: entry.outcome.mean)

    def differences(self, source: str) -> dict[str, Difference | None]:
        """Return every other model minus the best, paired by fold; None if its folds differ."""
        best = self.best(source)
        return {
            entry.row: difference(entry.outcome.folds, best.outcome.folds)
            if entry.folds == best.folds and len(entry.outcome.folds) > 1
            else None
            for entry in self._of(source)
            if entry != best
        }

    def _of(self, source: str) -> list[ComparedRun]:
        return [entry for entry in self.entries if entry.source == source]

    def rows(self, bold: str = "{}", quoted: bool = True) -> list[tuple[str, ...]]:
        """Return the cells below `header`.

        bold: the format of the best cell of a column; quoted: add rows of published numbers.
        """
        several = [source for source in self.sources if len(self._of(source)) > 1]
        best = {source: self.best(source) for source in several}
        found = []
        for row in dict.fromkeys(entry.row for entry in self.entries):
            cells = [row]
            for source in self.sources:
                mine = [entry for entry in self._of(source) if entry.row == row]
                text = "".join(entry.outcome.text(entry.score) for entry in mine)
                cells.append(bold.format(text) if best.get(source) in mine else text)
            found.append(tuple(cells))
        return found + (self._quoted() if quoted else [])

    def _quoted(self) -> list[tuple[str, ...]]:
        """Return rows of published numbers for these data sets."""
        printed = FAIR if self.protocol == "fair" else TABLE
        return [
            (f"{name}, quoted", *(printed_text(values.get(source)) for source in self.sources))
            for name, values in printed.items()
            if values.keys() & set(self.sources)
        ]

    @property
    def header(self) -> tuple[str, ...]:
        """The header of the table."""
        return "model", *self.sources

    @property
    def title(self) -> str:
        """What the numbers mean."""
        return f"By {PROTOCOLS[self.protocol]}; mean ± population std over the folds"

    def notes(self) -> list[str]:
        """Return notes per data set: which models are inside the noise of the best, and which
        cannot be paired.
        """
        said = [note for source in self.sources if (note := self._noise(source))]
        if any(gap for source in self.sources for gap in self.differences(source).values()):
            said.append(
                "Noise: p > 0.05 in a paired t-test over the folds, its variance corrected for "
                "training sets that overlap (Nadeau and Bengio 2003); ± is the standard error of "
                "the difference."
            )
        return [*said, *self.remarks]

    def _noise(self, source: str) -> str:
        best, gaps = self.best(source), self.differences(source)
        paired = {row: gap for row, gap in gaps.items() if gap is not None}
        if not gaps:
            return ""
        text = f"{source}: {best.row} is best"
        near = [
            f"{row} ({gap.text(best.score)}, p = {gap.p_value:.2f})"
            for row, gap in paired.items()
            if gap.inside_noise
        ]
        if near:
            text += f"; inside the noise of it: {', '.join(near)}"
        elif paired:
            text += ", beyond the noise"
        other = [row for row, gap in gaps.items() if gap is None]
        text += f"; on other folds, not paired: {', '.join(other)}" if other else ""
        return f"{text}."


def compared(summaries: Sequence[RunSummary], protocol: Protocol) -> Comparison | None:
    """Compare the runs that have a result by this protocol; None if no two share a data set."""
    done = {
        one: outcome
        for one in summaries
        if one.result is not None and (outcome := one.result.protocols[protocol]) is not None
    }
    sources = [one.settings.source for one in done]
    clashing = [source for source in dict.fromkeys(sources) if _clash(done, source)]
    if all(sources.count(source) < 2 or source in clashing for source in sources):
        return None
    names, entries, remarks = _rows(list(done)), [], []
    for one, outcome in done.items():
        if one.settings.source not in clashing and one.result is not None:
            entries.append(
                ComparedRun(
                    names[one], one.settings.source, one.held_out, one.result.score, outcome
                )
            )
            where = f"{one.settings.source}, {names[one]}"
            remarks += [f"{where}: {leak}." for leak in one.result.leaks]
    remarks += [
        f"{source} is not compared: runs of that name are of other graphs, or scored otherwise."
        for source in clashing
    ]
    if any(one.settings.epochs is None for one in done) and protocol != "fair":
        remarks.append(
            "Networks chose their epoch by the graphs that are reported, which models without "
            "epochs did not: this protocol favours the networks."
        )
    return Comparison(protocol, tuple(entries), tuple(remarks))


def _clash(runs: Iterable[RunSummary], source: str) -> bool:
    """Whether runs with this source have different graphs or different scores."""
    mine = [one for one in runs if one.settings.source == source]
    # The lifted graphs depend on the largest polygon; if that is the same, they must be too.
    data = {(one.settings.network.max_polygon, one.settings.data) for one in mine}
    scores = {one.result.score for one in mine if one.result is not None}
    sizes = {one.settings.graphs for one in mine}
    return len(data) > len(dict(data)) or len(scores) > 1 or len(sizes) > 1


def _rows(runs: list[RunSummary]) -> dict[RunSummary, str]:
    """Name the row of every run: its model, and the folder if a data set has it twice."""
    models = [(one.settings.source, one.settings.row) for one in runs]
    labels = [(*model, one.label) for model, one in zip(models, runs, strict=True)]
    names = {}
    for one, model, label in zip(runs, models, labels, strict=True):
        place = one.label if labels.count(label) == 1 else one.folder
        names[one] = model[1] + (f" ({place})" if models.count(model) > 1 else "")
    return names


def as_markdown(comparison: Comparison, quoted: bool = True) -> str:
    """Return the table and its notes."""
    table = markdown_table(comparison.header, comparison.rows("**{}**", quoted))
    notes = "\n".join(f"- {note}" for note in comparison.notes())
    return "\n\n".join([f"{comparison.title}.", table, notes]).rstrip()


def as_record(comparison: Comparison) -> dict[str, Any]:
    """Return a record for programs: per data set the best model, and every other minus the best."""
    return {
        "protocol": comparison.protocol,
        "remarks": list(comparison.remarks),
        "sets": {
            source: {
                "best": comparison.best(source).row,
                "minus_best": {
                    row: None if gap is None else asdict(gap)
                    for row, gap in comparison.differences(source).items()
                },
            }
            for source in comparison.sources
        },
    }
