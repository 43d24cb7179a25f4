"""Progress of long work: bars in a terminal, a line every few seconds elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import Any, Self

from cell_attention.progress import duration

LINE_SECONDS = 10.0


class TrainingProgress:
    """Shows the progress of the jobs of a run; a context manager.

    jobs: number of jobs to do; epochs: largest number of epochs of each.
    """

    def __init__(self, jobs: int, epochs: int, silent: bool) -> None:
        self.jobs, self.epochs, self.silent = jobs, epochs, silent
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.total: dict[str, float] = {}
        self.best: dict[str, float] = {}
        self.ended: set[str] = set()
        self.began = self.said = time.monotonic()
        self.bars: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and not self.silent:
            self.bars = _Bars(self.jobs)
        return self

    def __exit__(self, *_: object) -> None:
        if self.bars is not None:
            self.bars.stop()

    def hear(self, name: str, numbers: dict[str, float]) -> None:
        """Receive one report of one job; an empty one means that it has finished."""
        if not numbers:
            self.ended.add(name)
        else:
            self.first.setdefault(name, numbers["epoch"])
            self.last[name], self.best[name] = numbers["epoch"], numbers["best"]
            self.total[name] = numbers["epochs"]
        if self.silent:
            return
        if self.bars is not None:
            self.bars.show(name, numbers, done=self._done(), overall=self._overall())
        elif numbers and time.monotonic() - self.said >= LINE_SECONDS:
            self.said = time.monotonic()
            print(f"{name}: {_state(numbers)}; {self._overall()}", file=sys.stderr, flush=True)

    def _done(self) -> float:
        """Return the number of finished jobs plus the fractions of running ones."""
        going = self.last.keys() - self.ended
        return len(self.ended) + sum(self.last[name] / self.total[name] for name in going)

    def _overall(self) -> str:
        """Format the jobs done, the mean of the best scores so far, and the time left."""
        done = sum(self.last[name] - self.first[name] for name in self.last)
        going = self.last.keys() - self.ended
        left: float = self.epochs * max(0, self.jobs - len(self.ended) - len(going))
        left += sum(self.total[name] - self.last[name] for name in going)
        seconds = (time.monotonic() - self.began) * left / max(done, 1)
        best = sum(self.best.values()) / max(len(self.best), 1)
        text = f"{len(self.ended)} of {self.jobs} done, mean best {_score(best)}"
        return f"{text}, {duration(seconds)} left" if done else text


class RowProgress:
    """Shows how many rows of a source are done, how many per second, and the time left.

    bar: shows it in a terminal. lines: whether to print a line every few seconds.
    """

    def __init__(self, bar: Callable[..., None], lines: bool) -> None:
        self.bar, self.lines, self.first = bar, lines, 0
        self.began = self.said = time.monotonic()

    def hear(self, done: int, total: int) -> None:
        """Receive how many rows are done, and about how many there are."""
        now = time.monotonic()
        if not self.first:  # what is finished already does not count
            self.began, self.first = now, done
        rate = (done - self.first) / max(now - self.began, 1e-9)
        text = f"{done:,} rows" + (f", {rate:,.0f} per second" if done > self.first else "")
        self.bar(done, total, text)
        if self.lines and done > self.first and now - self.said >= LINE_SECONDS:
            self.said = now
            left = f", {duration((total - done) / rate)} left" if total > done else ""
            print(text + left, file=sys.stderr, flush=True)


def _state(numbers: dict[str, float]) -> str:
    return (
        f"epoch {numbers['epoch']:.0f} of {numbers['epochs']:.0f}, {_score(numbers['score'])} "
        f"(best {_score(numbers['best'])})"
    )


def _score(value: float) -> str:
    """Format percents with one decimal, small numbers with three."""
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


class _Bars:
    """Rich bars: one for all jobs, and one for each running job."""

    def __init__(self, jobs: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self.bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self.all = self.bars.add_task("all", total=jobs, state="")
        self.lines: dict[str, Any] = {}
        self.bars.start()

    def show(self, name: str, numbers: dict[str, float], *, done: float, overall: str) -> None:
        """Update the bar of one job, and the bar of all jobs."""
        if not numbers:
            if name in self.lines:
                self.bars.remove_task(self.lines.pop(name))
        else:
            if name not in self.lines:
                self.lines[name] = self.bars.add_task(name, total=numbers["epochs"], state="")
            state = _state(numbers)
            self.bars.update(self.lines[name], completed=numbers["epoch"], state=state)
        self.bars.update(self.all, completed=done, state=overall)

    def stop(self) -> None:
        """Remove the bars."""
        self.bars.stop()
