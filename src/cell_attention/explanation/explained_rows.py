"""The explanations of a source, and the file that they are written to: .html, .json or .csv."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cell_attention._files import write_whole
from cell_attention.errors import DataError, InputError
from cell_attention.explanation.explanation import Explanation
from cell_attention.explanation.page import ReportEntry, Unread, page
from cell_attention.explanation.picture import printable
from cell_attention.explanation.records import plain, table
from cell_attention.explanation.report_entries import class_of, collected, entries, target_of
from cell_attention.explanation.totals import (
    GroupTotal,
    ScaffoldTotal,
    group_totals,
    scaffold_totals,
)
from cell_attention.inference.chunks import Chunk
from cell_attention.inference.model_folder import Model
from cell_attention.inference.rows import OpenedRows
from cell_attention.progress import Progress

ENDINGS = (".html", ".json", ".csv")


@dataclass(frozen=True)
class ExplainedRows:
    """The explained graphs of a source, in its order, and counts of its rows."""

    model: Model
    entries: list[ReportEntry]
    read: int
    """Number of graphs in the source; not all are explained if `top` is smaller."""
    unread: list[Unread]
    """The rows without a graph."""

    @property
    def left_out(self) -> list[str]:
        """The rows without a graph, with the reason."""
        return [f"row {one.row}: {one.reason}" for one in self.unread]

    @property
    def explanations(self) -> list[Explanation]:
        """The explanations alone."""
        return [entry.explanation for entry in self.entries]

    @cached_property
    def groups(self) -> list[GroupTotal]:
        """What functional groups carry over all explained molecules."""
        return group_totals(self.explanations)

    @cached_property
    def scaffolds(self) -> list[ScaffoldTotal]:
        """What scaffolds carry over all explained molecules."""
        return scaffold_totals(self.explanations)

    @property
    def counted(self) -> str:
        """The number of explained graphs, for people."""
        return f"{len(self.entries):,} graph" + "s" * (len(self.entries) != 1)

    def write(self, out: Path, source: str, model_name: str) -> None:
        """Write the file; the two names are for people."""
        ending = out.suffix.lower()
        if ending == ".csv":
            named = [(entry.known.row, entry.known.name) for entry in self.entries]
            text = table(self.explanations, named)
        elif ending == ".json":
            rows = [one.record() for one in self.entries]
            text = json.dumps(plain(rows), ensure_ascii=False, allow_nan=False) + "\n"
        else:
            title = f"What the predictions for {source} rest on"
            about = self._about(model_name)
            text = page(title, about, self.entries, model=self.model, unread=self.unread)
        write_whole(out, text)

    def _about(self, model_name: str) -> str:
        trained, several = self.model.provenance.get("source", ""), len(self.model.members)
        origin = f"trained on {trained}" if trained else f"in {model_name}"
        mean = f", the mean of {several} networks; attention and pooling are those of the first"
        name = self.entries[0].explanation.name
        colours = f"orange speaks for {name} and blue against it"
        if self.model.task == "values":
            colours = f"orange raises {name} and blue lowers it"
        return f"{self.counted}; a model {origin}{mean * (several > 1)}; in every picture {colours}"


def explain_rows(
    model: Model,
    opened: OpenedRows,
    source: str,
    *,
    top: int | None,
    target: str | None,
    explained_class: str | None,
    measure: bool,
    progress: Progress,
) -> ExplainedRows:
    """Predict all rows and explain the `top` most confident ones."""
    if top is not None and top < 1:
        raise InputError(f"top must be at least 1, got {top}")
    chosen, seen, output = target_of(model, target), _Seen(), class_of(model, explained_class)
    pieces = collected(model, opened.header, seen.counted(opened.chunks), target=chosen, top=top)
    if not pieces:
        raise DataError(f"{source}: there is no graph to explain")
    with progress.bar("Explaining") as report:
        found = list(
            entries(model, pieces, measure=measure, explained_class=output, progress=report)
        )
    return ExplainedRows(model, found, seen.graphs, seen.unread)


@dataclass
class _Seen:
    """Counts of the rows read so far."""

    graphs: int = 0
    unread: list[Unread] = field(default_factory=list)

    def counted(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield the chunks unchanged, and count them."""
        for chunk in chunks:
            self.graphs += len(chunk.complexes)
            self.unread += [
                Unread(row.line, printable(row.text), printable(reason))
                for row, reason in zip(chunk.rows, chunk.reasons, strict=True)
                if reason
            ]
            yield chunk
