"""Progress of long work: notes, progress bars and the time left, for any kind of display."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cell_attention.errors import warn

JobProgress = Callable[[str, dict[str, float]], None]
"""Called with a job's name and the numbers it reports; with an empty dict when it has finished."""


class Progress:
    """The default in Python: silent, except that notes become warnings."""

    @property
    def shows_time(self) -> bool:
        """Whether to measure how long a training will take."""
        return False

    def note(self, text: str) -> None:
        """Report that something was repaired, assumed or left out."""
        warn(text)

    def remark(self, text: str) -> None:
        """Report something worth knowing, though nothing is wrong."""

    @contextmanager
    def bar(self, task: str) -> Iterator[Callable[[int, int], None]]:
        """Show how far a task is; call the result with (done, total)."""
        yield lambda done, total: None

    @contextmanager
    def reading(self, source: str) -> Iterator[Callable[[int, int], None]]:
        """Show that rows are read; call the result with (rows, expected rows)."""
        with self.bar(f"Reading {source}") as report:
            yield report

    @contextmanager
    def jobs(self, count: int, epochs: int) -> Iterator[JobProgress]:
        """Show the progress of `count` jobs of at most `epochs` epochs each."""
        yield lambda name, numbers: None


def duration(seconds: float) -> str:
    """Format seconds for people."""
    if seconds < 1:
        return "a second"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
