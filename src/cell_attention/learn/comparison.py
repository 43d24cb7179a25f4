"""Several models side by side: a row per model, a column per set, the best and what is noise."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cell_attention.learn.paired import Difference, difference
from cell_attention.learn.protocols import Outcome
from cell_attention.learn.published import FAIR, TABLE
from cell_attention.learn.results import PROTOCOLS
from cell_attention.learn.summary import RunSummary, markdown_table

Protocol = Literal["paper", "per_fold_best", "fair"]


@dataclass(frozen=True)
class Entry:
    """One model on one data set."""

    row: str
    source: str
    folds: str
    """What they are, to be paired only with the same."""
    score: str
    outcome: Outcome


@dataclass(frozen=True)
class Comparison:
    """All that were run, by one protocol."""

    protocol: Protocol
    entries: tuple[Entry, ...]

    @property
    def sources(self) -> list[str]:
        """The columns."""
        return list(dict.fromkeys(entry.source for entry in self.entries))

    def best(self, source: str) -> Entry:
        """The model with the highest mean; the first of several."""
        return max(self._of(source), key=lambda entry: entry.outcome.mean)

    def differences(self, source: str) -> dict[str, Difference | None]:
        """Every other model minus the best, paired fold by fold; None on other folds."""
        best = self.best(source)
        return {
            entry.row: difference(entry.outcome.folds, best.outcome.folds)
            if entry.folds == best.folds and len(entry.outcome.folds) > 1
            else None
            for entry in self._of(source)
            if entry != best
        }

    def _of(self, source: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.source == source]

    def rows(self, bold: str = "{}", quoted: bool = True) -> list[tuple[str, ...]]:
        """Cells below `header`; `bold` is what the best of a column is written with; `quoted`: with
        what others printed.
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
        """What others printed for these sets."""
        printed = FAIR if self.protocol == "fair" else TABLE
        return [
            (f"{name}, quoted", *(_printed(values.get(source)) for source in self.sources))
            for name, values in printed.items()
            if values.keys() & set(self.sources)
        ]

    @property
    def header(self) -> tuple[str, ...]:
        """Of the table."""
        return "model", *self.sources

    @property
    def title(self) -> str:
        """What the numbers are."""
        return f"By {PROTOCOLS[self.protocol]}; mean ± population std over the folds"

    def notes(self) -> list[str]:
        """Per data set: which models cannot be told from the best, and which cannot be paired."""
        said = []
        for source in self.sources:
            gaps = self.differences(source)
            if not gaps:
                continue
            near = [
                f"{row} ({gap.text()}, p = {gap.p_value:.2f})"
                for row, gap in gaps.items()
                if gap is not None and gap.inside_noise
            ]
            other = [row for row, gap in gaps.items() if gap is None]
            text = f"{source}: {self.best(source).row} is best"
            text += f"; inside the noise of it: {', '.join(near)}" if near else ", beyond the noise"
            text += f"; on other folds, not paired: {', '.join(other)}" if other else ""
            said.append(f"{text}.")
        if said:
            said.append(
                "Noise: p > 0.05 in a paired t-test over the folds, its variance corrected for "
                "training sets that overlap (Nadeau and Bengio 2003); ± is the standard error of "
                "the difference."
            )
        return said


def compared(summaries: Sequence[RunSummary], protocol: Protocol) -> Comparison | None:
    """The runs that have an answer by that protocol; None where no two are on the same set."""
    done = [
        (one, outcome)
        for one in summaries
        if one.result is not None and (outcome := one.result.protocols[protocol]) is not None
    ]
    names = [(one.question.source, one.question.model) for one, _ in done]
    sources = [source for source, _ in names]
    if len(set(sources)) == len(sources):
        return None
    entries = []
    for (one, outcome), name in zip(done, names, strict=True):
        twice = names.count(name) > 1
        row = one.question.model + (f" ({one.label})" if twice else "")
        score = "" if one.result is None else one.result.score
        entries.append(Entry(row, one.question.source, one.held_out, score, outcome))
    return Comparison(protocol, tuple(entries))


def as_markdown(comparison: Comparison, quoted: bool = True) -> str:
    """The table and its notes."""
    table = markdown_table(comparison.header, comparison.rows("**{}**", quoted))
    notes = "\n".join(f"- {note}" for note in comparison.notes())
    return "\n\n".join([f"{comparison.title}.", table, notes]).rstrip()


def as_record(comparison: Comparison) -> dict[str, Any]:
    """For programs: per data set the best model, and every other minus the best."""
    return {
        "protocol": comparison.protocol,
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


def _printed(value: tuple[float, float] | None) -> str:
    return "" if value is None else f"{value[0]:.1f} ± {value[1]:.1f}"
