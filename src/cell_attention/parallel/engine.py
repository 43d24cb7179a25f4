"""Many independent pieces of work, here, over processes of this machine, or over a Ray cluster.

A piece of work is a module-level function and its arguments; it reports numbers on its way through
a callback. A worker that dies takes one piece with it, which is tried once more and then named.
"""

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cell_attention.errors import CellAttentionError, WorkError

Report = Callable[[dict[str, float]], None]
Watch = Callable[[str, dict[str, float]], None]
"""Hears the name of a piece and what it reports; nothing at all when it is finished."""
Engine = Literal["processes", "ray"]


class WorkerError(WorkError):
    """A piece of work that could not be finished."""


@dataclass(frozen=True)
class Work:
    """`function(*arguments, report)`, under a name that people know it by."""

    name: str
    function: Callable[..., None]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Ended:
    """How a piece of work ended in another process: with an error for the parent to raise, or
    without.
    """

    error: Exception | None = None


def run_all(
    works: Sequence[Work], jobs: int, watch: Watch, engine: Engine = "processes"
) -> dict[str, str]:
    """Run all pieces, at most `jobs` at a time (0: one per core); `watch` hears what they report.

    Returns where each piece was run, by its name.
    """
    if not works:
        return {}
    if engine == "ray":
        from cell_attention.parallel.ray_tasks import run_on_ray

        return run_on_ray(works, jobs, watch)
    jobs = min(jobs or cores(), len(works))
    if jobs > 1:
        from cell_attention.parallel.processes import run_in_processes

        return run_in_processes(works, jobs, watch)
    for work in works:
        work.function(*work.arguments, _named(watch, work.name))
        watch(work.name, {})
    return {work.name: "here" for work in works}


def cores() -> int:
    """How many processes this machine can run at a time."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def perform(work: Work, report: Report) -> Ended:
    """Do a piece of work in a process that is not the parent, on one thread."""
    import torch

    torch.set_num_threads(1)
    try:
        work.function(*work.arguments, report)
    except (CellAttentionError, OSError) as error:
        return Ended(error)
    except Exception as error:
        text = traceback.format_exception_only(error)[-1].strip()
        return Ended(WorkerError(f"{work.name}: {text}"))
    return Ended()


class Attempts:
    """Counts how often each piece was begun; the second loss of one is the end."""

    def __init__(self) -> None:
        self.begun: dict[str, int] = {}

    def begin(self, work: Work) -> None:
        """One more attempt."""
        self.begun[work.name] = self.begun.get(work.name, 0) + 1

    def lost(self, work: Work) -> None:
        """The worker died; raises if it was not the first time."""
        if self.begun[work.name] > 1:
            raise WorkerError(
                f"{work.name}: its process died twice; it may need more memory than there is: use "
                "fewer --jobs"
            )


def _named(watch: Watch, name: str) -> Report:
    return lambda numbers: watch(name, numbers)
