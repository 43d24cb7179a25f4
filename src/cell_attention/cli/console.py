"""Output for people: rich tables and progress bars in a terminal, plain lines elsewhere."""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cell_attention.errors import printable
from cell_attention.progress import JobProgress, Progress

BOLD = "*{}*"
"""Marks a cell of `table` as bold."""


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; outside a terminal, one line per row with aligned cells."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        # As Text, because brackets in a file name are not rich's markup.
        drawn = Table(title=Text(printable(title)), title_justify="left", title_style="bold")
        for position, name in enumerate(header):
            drawn.add_column(name, justify="right" if position else "left")
        for row in rows:
            drawn.add_row(
                *(Text(printable(cell), style="bold" if _marked(cell) else "") for cell in row)
            )
        Console().print(drawn)
        return
    say(title)
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        first, *others = (
            cell.ljust if not place else cell.rjust for place, cell in enumerate(line)
        )
        cells = [
            first(widths[0]),
            *(just(width) for just, width in zip(others, widths[1:], strict=True)),
        ]
        say("  ".join(cells).rstrip())


def _marked(cell: str) -> bool:
    """Whether a cell was made with BOLD."""
    return len(cell) > 2 and cell == BOLD.format(cell[1:-1])


def as_json(record: dict[str, object]) -> None:
    """Print one JSON object."""
    print(printable(json.dumps(record, indent=2, ensure_ascii=False), form="\\u{:04x}"))


def note(text: str) -> None:
    """Print a note on stderr, apart from the output that programs read."""
    print(printable(f"note: {text}"), file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Print lines; characters that a terminal would obey are escaped."""
    print(printable(text))


def with_flags(message: str) -> str:
    """Write the advice of a message and the arguments it is about as flags: `task=regression` as
    `--task regression`. Names that come from files are left alone.
    """
    for pattern, flag in _FLAGS:
        message = re.sub(pattern, flag, message)
    return message


_FLAGS = (
    (r"^(folder|out) (?!of )(?!.*: no such)", "--out "),
    (r"\bfrom_model\b", "--from"),
    (r"^freeze (?=must|needs|')", "--freeze "),
    (r"\bon_error=(?=(report|skip)\b)", "--on-error "),
    (r"\bclass_weights=False(?= would\b)", "--no-class-weights"),
    (r"\btask=(?=(regression|classification) would\b)", "--task "),
    (r"\bpass data_dir=FOLDER$", "pass --data-dir FOLDER"),
    (r"\btry encoding=", "try --encoding "),
    (r"; max_bytes allows more$", "; --max-bytes allows more"),
    (r"\buse jobs=1$", "use --jobs 1"),
    (r"\buse fewer jobs$", "use fewer --jobs"),
    (r"(?<=: )(target|smiles)_column(s?)(?= ')", r"--\1-column\2"),
    (r"\b(with|check|in) (target|smiles)_column(s?)(?=$|, such as '|; )", r"\1 --\2-column\3"),
    (r"; node_attributes=True appends", "; --node-attributes appends"),
    (r"; try decimal=,$", "; try --decimal ,"),
    (r"\braise Limits\.(polygons|steps|pairs)\b", r"raise Limits.\1 (lift --limits.\1)"),
    (r"load_plugins\(\[FILE\]\)", "--plugin FILE"),
    (r"\buse fresh(?=$| to )", "use --fresh"),
)
"""Parts of messages, and how they are written at the command line."""


class LogNotes(logging.Handler):
    """Prints what the package logs as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        note(record.getMessage())


@dataclass(frozen=True)
class ConsoleProgress(Progress):
    """Notes and bars on stderr; also bars and lines of jobs, unless `silent`."""

    silent: bool = False

    @property
    def shows_time(self) -> bool:
        """Whether to measure how long a training will take."""
        return not self.silent

    def note(self, text: str) -> None:
        """Print that something was repaired, assumed or left out."""
        note(with_flags(text))

    def remark(self, text: str) -> None:
        """Print something worth knowing."""
        note(with_flags(text))

    @contextmanager
    def reading(self, source: str) -> Iterator[Callable[[int, int], None]]:
        """Show a bar, with rows per second, while the rows of a source are read; outside a
        terminal a line every few seconds, unless `silent`.
        """
        from cell_attention.cli.progress import RowProgress

        lines = not (self.silent or sys.stderr.isatty())
        with self.bar(f"Reading {source}") as report:
            yield RowProgress(report, lines).hear

    @contextmanager
    def bar(self, task: str) -> Iterator[Callable[..., None]]:
        """Show a bar with the time left, only in a terminal, starting with the first report."""
        if not sys.stderr.isatty():
            yield lambda done, total, text="": None
            return
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bars
        from rich.progress import TimeRemainingColumn as TimeLeft

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            TimeLeft(),
        )
        bars = Bars(*columns, console=Console(stderr=True), transient=True)
        line = bars.add_task(task, total=None, text="")

        def report(done: int, total: int, text: str = "") -> None:
            bars.start()
            bars.update(line, completed=done, total=total, text=text)

        try:
            yield report
        finally:
            bars.stop()

    @contextmanager
    def jobs(self, count: int, epochs: int) -> Iterator[JobProgress]:
        """Show a bar per job, or a line every few seconds."""
        from cell_attention.cli.progress import TrainingProgress

        with TrainingProgress(count, epochs, self.silent) as shown:
            yield shown.hear


def kept(provenance: dict[str, Any], judged: str) -> str:
    """Say which epoch of a training is kept: the last, or the best as judged."""
    if provenance["training"].get("patience", 1):
        return f"the best of {provenance['epochs']} {judged}"
    return "the last"
