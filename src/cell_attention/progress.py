"""What long work reports to: notes, bars and time left, for whoever shows them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cell_attention.errors import warn

JobProgress = Callable[[str, dict[str, float]], None]
"""Called with the name of a job and the numbers that it reports; with none when it is finished."""


class Progress:
    """The usual one in Python: silent, but for what was repaired or assumed, which is a warning."""

    shows_time = False
    """Whether it is worth measuring how long a training will take."""

    def note(self, text: str) -> None:
        """Something was repaired, assumed or left out."""
        warn(text)

    def remark(self, text: str) -> None:
        """Something is worth knowing, though nothing is wrong."""

    def compiling(self) -> None:
        """Kernels are being compiled, which happens once on a machine."""

    @contextmanager
    def reading(self, source: str) -> Iterator[Callable[[int, int], None]]:
        """While a source is read; called with how much of how much."""
        yield lambda done, total: None

    @contextmanager
    def jobs(self, count: int, epochs: int) -> Iterator[JobProgress]:
        """While so many jobs of at most so many epochs are done."""
        yield lambda name, numbers: None


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 1:
        return "a second"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
