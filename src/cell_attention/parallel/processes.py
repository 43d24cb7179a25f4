"""Jobs in spawned processes of this machine, with one torch thread each."""

import logging
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from cell_attention._interrupts import without_interrupts
from cell_attention.parallel.engine import Attempts, Ended, JobProgress, Work, WorkerError, perform

MOST_IDLE_DEATHS = 10
"""Idle processes that die are replaced, at most so often: more means that none can run here."""


def run_in_processes(works: Sequence[Work], jobs: int, progress: JobProgress) -> dict[str, str]:
    """Run all jobs in `jobs` processes; see `engine.run_all`."""
    context = multiprocessing.get_context("spawn")
    waiting, attempts, places, deaths = deque(works), Attempts(), {}, 0
    workers = [_Worker(context) for _ in range(jobs)]
    try:
        while waiting or any(worker.work for worker in workers):
            for place, worker in enumerate(workers):
                if worker.work is None and waiting:
                    work = waiting.popleft()
                    if worker.give(work):
                        attempts.begin(work)
                        places[work.name] = f"process {place}"
                    else:
                        waiting.appendleft(work)
                        workers[place] = _Worker(context)
            for connection in wait([worker.connection for worker in workers], timeout=1.0):
                place = next(i for i, w in enumerate(workers) if w.connection is connection)
                worker = workers[place]
                if worker.hear(progress):
                    continue
                if worker.work is not None:
                    attempts.lost(worker.work)
                    waiting.appendleft(worker.work)
                elif (deaths := deaths + 1) > MOST_IDLE_DEATHS:
                    raise WorkerError("worker processes die before they start a job; use jobs=1")
                worker.end()
                workers[place] = _Worker(context)
    finally:
        for worker in workers:
            worker.end()
    return places


class _Worker:
    """One process that runs one job after the other."""

    def __init__(self, context: Any) -> None:
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        with without_interrupts():
            self.process.start()
        other.close()
        self.work: Work | None = None

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
            self.work = None
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
        connection.send(perform(work, report))
