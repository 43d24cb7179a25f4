"""Many independent jobs, run in this process, in several processes, or on a Ray cluster.

A job is a module-level function and its arguments; it reports its progress through a callback. If
a worker dies, its job is tried once more; the second time is an error that names the job.
"""

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, get_args

from cell_attention.errors import CellAttentionError, InputError, WorkError
from cell_attention.models.registered import registering_modules
from cell_attention.plugins import load_same, loaded_plugins, plugin_line
from cell_attention.training.threads import settle_process

Report = Callable[[dict[str, float]], None]
JobProgress = Callable[[str, dict[str, float]], None]
"""Called with a job's name and the numbers it reports; with an empty dict when it has finished."""
Engine = Literal["processes", "ray"]
AHEAD = 4
"""Items per process that may be taken before the first of them is done."""


class WorkerError(WorkError):
    """A job that could not be finished."""


@dataclass(frozen=True)
class Work:
    """A job: `function(*arguments, report=…)`, with a name for people."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    plugins: tuple[tuple[str, str], ...] = field(default_factory=loaded_plugins)
    """Files that register layers and models, which the worker must load too, with their SHA-256."""
    modules: tuple[str, ...] = field(default_factory=registering_modules)
    """Modules that the program has imported for the same purpose."""


@dataclass(frozen=True)
class Ended:
    """The end of a job in another process; `error` is for the parent to raise."""

    error: Exception | None = None
    value: Any = None
    """What the function returned."""


@dataclass(frozen=True)
class Finished:
    """A job that is done."""

    work: Work
    place: str
    """Where it ran."""
    value: Any
    """What the function returned."""


@dataclass(frozen=True)
class Workers:
    """How jobs are run: how many at a time, by which engine, and where progress is reported."""

    count: int = 0
    """Number of jobs at a time; 0 is one per core."""
    engine: Engine = "processes"
    """Processes of this machine, or tasks of a Ray cluster."""
    checkpoint_seconds: float = 10.0
    """Seconds between two checkpoints of a training: the most that an interruption can cost."""
    progress: JobProgress = lambda name, numbers: None

    def __post_init__(self) -> None:
        if self.count < 0:
            raise InputError(f"jobs must not be negative, got {self.count}")
        if self.engine not in get_args(Engine):
            raise InputError(f"engine must be 'processes' or 'ray', got {self.engine!r}")
        if not self.checkpoint_seconds >= 0:
            raise InputError(
                f"checkpoint_seconds must not be negative, got {self.checkpoint_seconds}"
            )

    def run(self, works: Sequence[Work]) -> dict[str, str]:
        """Run all jobs; return where each one ran, by its name."""
        return run_all(works, self.count, self.progress, engine=self.engine)


def run_all(
    works: Sequence[Work], jobs: int, progress: JobProgress, *, engine: Engine = "processes"
) -> dict[str, str]:
    """Run all jobs, at most `jobs` at a time (0: one per core); report to `progress`.

    Returns where each job ran, by its name.
    """
    if not works:
        return {}
    if engine == "ray":
        from cell_attention.parallel.ray_tasks import run_on_ray

        return run_on_ray(works, jobs, progress)
    jobs = min(jobs or cores(), len(works))
    if jobs > 1:
        from cell_attention.parallel.processes import run_in_processes

        done = run_in_processes(works, jobs, progress)
        return {one.work.name: one.place for one in done}
    for work in works:
        work.function(*work.arguments, report=_named(progress, work.name))
        progress(work.name, {})
    return {work.name: "here" for work in works}


def results(
    function: Callable[..., Any], items: Iterable[Any], *, name: str, jobs: int
) -> Iterator[tuple[Any, Any]]:
    """Yield every item with `function(item, report=…)`, in their order.

    jobs: number of processes; 0 is one per core. items: may be endless; a few per process are taken
    before the first of them is done. name: what an item is called.
    """
    from cell_attention.parallel.processes import run_in_processes

    plugins, modules = loaded_plugins(), registering_modules()
    numbers = count(1)
    works = (Work(f"{name} {next(numbers)}", function, (item,), plugins, modules) for item in items)
    jobs = jobs or cores()
    for one in run_in_processes(works, jobs, lambda name, numbers: None, ahead=AHEAD * jobs):
        yield one.work.arguments[0], one.value


def cores() -> int:
    """Return how many processes this machine can run at a time."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def perform(work: Work, report: Report) -> Ended:
    """Run a job in a worker process, on one thread."""
    settle_process()
    missing = ""
    try:
        missing = load_same(work.plugins, work.modules)
        value = work.function(*work.arguments, report=report)
    except (CellAttentionError, OSError) as error:
        if missing and isinstance(error, CellAttentionError):
            return Ended(InputError(f"{error}; {missing}"))
        return Ended(error)
    except Exception as error:
        text = traceback.format_exception_only(error)[-1].strip()
        return Ended(WorkerError(f"{work.name}: {plugin_line(error)}{text}"))
    return Ended(value=value)


class Attempts:
    """Counts how often each job was started; losing a job twice is an error."""

    def __init__(self) -> None:
        self.begun: dict[str, int] = {}

    def begin(self, work: Work) -> None:
        """Count one more attempt."""
        self.begun[work.name] = self.begun.get(work.name, 0) + 1

    def end(self, work: Work) -> None:
        """Forget a job that is finished."""
        del self.begun[work.name]

    def lost(self, work: Work) -> None:
        """Record that the worker died; raise WorkerError the second time."""
        if self.begun[work.name] > 1:
            raise WorkerError(
                f"{work.name}: its process died twice, perhaps because memory ran out; use fewer "
                "jobs"
            )


def _named(progress: JobProgress, name: str) -> Report:
    return lambda numbers: progress(name, numbers)
