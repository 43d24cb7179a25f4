"""Many independent pieces of work over the cores of this machine, each in a process of its own.

A piece of work is a module-level function and its arguments; it reports numbers on its way through
a callback. A worker that dies takes one piece with it, which is tried once more and then named.
"""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from cell_attention.errors import CellAttentionError

Report = Callable[[dict[str, float]], None]
Watch = Callable[[str, dict[str, float]], None]


class WorkerError(CellAttentionError, RuntimeError):
    """A piece of work that could not be finished."""


@dataclass(frozen=True)
class Work:
    """`function(*arguments, report)`, under a name that people know it by."""

    name: str
    function: Callable[..., None]
    arguments: tuple[Any, ...]


def run_all(works: Sequence[Work], jobs: int, watch: Watch) -> None:
    """Run all pieces, at most `jobs` at a time; `watch` hears what they report."""
    if jobs == 1 or len(works) == 1:
        _run_here(works, watch)
        return
    context = multiprocessing.get_context("spawn")
    waiting, tried = deque(works), dict.fromkeys((work.name for work in works), 0)
    workers = [_Worker(context) for _ in range(min(jobs, len(works)))]
    try:
        while waiting or any(worker.work for worker in workers):
            for place, worker in enumerate(workers):
                if worker.work is None and waiting:
                    work = waiting.popleft()
                    tried[work.name] += 1
                    if not worker.give(work):
                        waiting.appendleft(work)
                        workers[place] = _Worker(context)
            for connection in wait([worker.connection for worker in workers], timeout=1.0):
                place = next(i for i, w in enumerate(workers) if w.connection is connection)
                lost = workers[place].hear(watch)
                if lost is not None:
                    workers[place] = _Worker(context)
                    if tried[lost.name] > 1:
                        raise WorkerError(
                            f"{lost.name}: its process died twice; it may need more memory than "
                            "there is: use fewer --jobs"
                        )
                    waiting.appendleft(lost)
    finally:
        for worker in workers:
            worker.end()


def _run_here(works: Sequence[Work], watch: Watch) -> None:
    for work in works:

        def report(numbers: dict[str, float], name: str = work.name) -> None:
            watch(name, numbers)

        work.function(*work.arguments, report)


class _Worker:
    """One process that takes pieces of work one after the other."""

    def __init__(self, context: Any) -> None:
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.work: Work | None = None

    def give(self, work: Work) -> bool:
        """Hand over a piece; False if the process has gone."""
        try:
            self.connection.send(work)
        except OSError:
            return False
        self.work = work
        return True

    def hear(self, watch: Watch) -> Work | None:
        """Take one message; the piece that is lost if the process has died, else None."""
        work = self.work
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError):
            if work is None:
                raise WorkerError("a worker process died before it had anything to do") from None
            return work
        if kind == "report" and work is not None:
            watch(work.name, content)
        elif kind == "done":
            self.work = None
        elif kind == "refused":
            raise content
        elif kind == "failed" and work is not None:
            raise WorkerError(f"{work.name}: {content}")
        return None

    def end(self) -> None:
        """Stop at once: what is finished is on disk, the rest continues another time."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(connection: Connection) -> None:
    """The life of a worker process."""
    # Ctrl-C reaches the whole group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch

    torch.set_num_threads(1)
    parent, last = os.getppid(), 0.0

    def report(numbers: dict[str, float]) -> None:
        nonlocal last
        if os.getppid() != parent:  # the parent was killed: nobody waits for this any more
            sys.exit(1)
        if time.monotonic() - last > 0.2:
            last = time.monotonic()
            connection.send(("report", numbers))

    while True:
        try:
            work: Work = connection.recv()
        except EOFError:
            return
        try:
            work.function(*work.arguments, report)
            connection.send(("done", None))
        except CellAttentionError as error:
            connection.send(("refused", error))
        except Exception as error:
            text = traceback.format_exception_only(error)[-1].strip()
            connection.send(("failed", text))
