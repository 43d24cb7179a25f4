"""Jobs in spawned processes of this machine, with one torch thread each."""

import logging
import math
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from cell_attention._interrupts import without_interrupts
from cell_attention.errors import CellAttentionError
from cell_attention.parallel.engine import (
    Attempts,
    Ended,
    Finished,
    JobProgress,
    Work,
    WorkerError,
    perform,
)

MOST_IDLE_DEATHS = 10
"""Idle processes that die are replaced, at most so often: more means that none can run here."""


def run_in_processes(
    works: Iterable[Work], jobs: int, progress: JobProgress, *, ahead: float = math.inf
) -> Iterator[Finished]:
    """Run jobs in at most `jobs` processes and yield them in their order; see `engine.run_all`.

    ahead: how many jobs may have begun that were not yielded yet.
    """
    context = multiprocessing.get_context("spawn")
    queue, attempts, deaths = _Queue(iter(works), ahead), Attempts(), 0
    workers: list[_Worker] = []
    try:
        while True:
            while (place := _idle(workers, jobs)) is not None and (work := queue.take()):
                if place == len(workers):
                    workers.append(_Worker(context))
                if workers[place].give(work):
                    attempts.begin(work)
                else:
                    queue.again.appendleft(work)
                    workers[place] = _Worker(context)
            if done := queue.finished():
                yield from done
                continue
            if not queue.begun:
                break
            for connection in wait([worker.connection for worker in workers], timeout=1.0):
                place = next(i for i, w in enumerate(workers) if w.connection is connection)
                worker, given = workers[place], workers[place].work
                if worker.hear(progress):
                    if given is not None and worker.work is None:
                        attempts.end(given)
                        queue.end(Finished(given, f"process {place}", worker.value))
                    continue
                if given is not None:
                    attempts.lost(given)
                    queue.again.appendleft(given)
                elif (deaths := deaths + 1) > MOST_IDLE_DEATHS:
                    raise WorkerError("worker processes die before they start a job; use jobs=1")
                worker.end()
                workers[place] = _Worker(context)
        if queue.failure is not None:
            raise queue.failure
    finally:
        for worker in workers:
            worker.end()


@dataclass
class _Queue:
    """The jobs that wait, and the finished ones until all before them are finished too."""

    works: Iterator[Work]
    ahead: float
    begun: deque[Work] = field(default_factory=deque)
    again: deque[Work] = field(default_factory=deque)
    """Those whose process has died."""
    ended: dict[str, Finished] = field(default_factory=dict)
    failure: Exception | None = None
    """Why there are no more jobs; raised when those before are finished."""

    def take(self) -> Work | None:
        """Return the next job; None if there is none, or if enough have begun."""
        if self.again:
            return self.again.popleft()
        if self.failure is not None or len(self.begun) >= self.ahead:
            return None
        try:
            work = next(self.works, None)
        except (CellAttentionError, OSError) as error:
            self.failure, work = error, None
        if work is not None:
            self.begun.append(work)
        return work

    def end(self, finished: Finished) -> None:
        """Keep a finished job until it is its turn."""
        self.ended[finished.work.name] = finished

    def finished(self) -> list[Finished]:
        """Return the finished jobs before which none is unfinished."""
        found = []
        while self.begun and self.begun[0].name in self.ended:
            found.append(self.ended.pop(self.begun.popleft().name))
        return found


def _idle(workers: "Sequence[_Worker]", most: int) -> int | None:
    """Return the place of a worker without a job, or of one that may still be started."""
    free = (place for place, worker in enumerate(workers) if worker.work is None)
    return next(free, len(workers) if len(workers) < most else None)


class _Worker:
    """One process that runs one job after the other."""

    def __init__(self, context: Any) -> None:
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        with without_interrupts():
            self.process.start()
        other.close()
        self.work: Work | None = None
        self.value: Any = None
        """What the last job returned."""

    def give(self, work: Work) -> bool:
        """Send a job to the process; return False if it has died."""
        try:
            self.connection.send(work)
        except OSError:
            return False
        self.work = work
        return True

    def hear(self, progress: JobProgress) -> bool:
        """Receive one message; return False if the process has died."""
        work = self.work
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            return False
        if isinstance(message, Ended):
            if message.error is not None:
                raise message.error
            self.work, self.value = None, message.value
            if work is not None:
                progress(work.name, {})
        elif work is not None:
            progress(work.name, message)
        return True

    def end(self) -> None:
        """Stop at once: finished jobs are on disk, unfinished ones can be resumed."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(connection: Connection) -> None:
    """Run jobs until the connection closes; the main function of a worker process."""
    # Ctrl-C reaches all processes of the group; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("cell_attention").setLevel(logging.ERROR)  # the parent has said it
    parent, last = os.getppid(), 0.0

    def report(numbers: dict[str, float]) -> None:
        nonlocal last
        if os.getppid() != parent:  # the parent was killed, so the result is not needed
            sys.exit(1)
        if time.monotonic() - last > 0.2:
            last = time.monotonic()
            connection.send(numbers)

    while True:
        try:
            work: Work = connection.recv()
        except EOFError:
            return
        try:
            connection.send(perform(work, report))
        except OSError:  # the parent is gone
            return
