"""The worker processes of the server: each does one job at a time, and is replaced when late."""

import asyncio
import json
import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cell_attention._interrupts import without_interrupts
from cell_attention.app.limits import ServeLimits
from cell_attention.app.worker import FINE, STATUS, work
from cell_attention.plugins import loaded_plugins

LOADING_SECONDS = 300.0
"""Time to import torch, load the model and, once per machine, compile the kernels."""
BUSY, LATE, FAILED = 503, 504, 500
TOGETHER = 128
"""Molecules of one batch at most."""
SMALL = 16
"""Molecules of a request that may wait for others, or make them wait."""
Job = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What a request is answered with."""

    status: int
    body: bytes
    """JSON."""


def fault(status: int, text: str) -> Answer:
    """Return an error as one line of JSON."""
    return Answer(status, json.dumps({"error": " ".join(text.split())}).encode("ascii"))


class Worker:
    """One process that holds the model."""

    def __init__(self, folder: Path, limits: ServeLimits) -> None:
        self.folder, self.limits = folder, limits
        self.ending = False
        self._process: Any = None
        self._connection: Any = None

    @property
    def alive(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.is_alive()

    def start(self) -> Answer:
        """Start a process; return the description of its model, or why it has none."""
        self.kill()
        if self.ending:
            return fault(BUSY, "the server is stopping")
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        named = {"folder": str(self.folder), "limits": self.limits, "plugins": loaded_plugins()}
        self._process = context.Process(target=work, args=(other,), kwargs=named, daemon=True)
        with without_interrupts():
            self._process.start()
        other.close()
        answer = self._receive(LOADING_SECONDS)
        if answer.status != FINE:
            self.kill()
        return answer

    def ask(self, jobs: Sequence[Job]) -> list[Answer]:
        """Do some jobs at a time; a process that dies over them, or takes too long, is ended."""
        if not self.alive and (started := self.start()).status != FINE:
            return [Answer(BUSY, started.body)] * len(jobs)
        try:
            self._connection.send_bytes(json.dumps(jobs).encode("ascii"))
        except OSError:
            self.kill()
            return [fault(FAILED, "the worker process has ended; try again")] * len(jobs)
        answers = [self._receive(self.limits.seconds)]
        while len(answers) < len(jobs):
            answers.append(self._receive(self.limits.seconds) if self.alive else answers[0])
        return answers

    def _receive(self, seconds: float) -> Answer:
        try:
            if not self._connection.poll(seconds):
                self.kill()
                late = f"this took longer than {seconds:g} s; send fewer or smaller molecules"
                return fault(LATE, late)
            data: bytes = self._connection.recv_bytes()
        except (EOFError, OSError):
            self.kill()
            if self.ending:
                return fault(BUSY, "the server is stopping")
            return fault(FAILED, "the worker process ended over this request; send less at a time")
        return Answer(int(data[:STATUS]), data[STATUS:])

    def kill(self) -> None:
        """End the process at once, if there is one."""
        if self.alive:
            self._process.kill()
            self._process.join()


@dataclass(frozen=True, eq=False)
class Waiting:
    """A request that waits for its answer."""

    job: Job
    answer: "asyncio.Future[Answer]"

    def end(self, answer: Answer) -> None:
        """Answer, if the client is still there."""
        if not self.answer.done():
            self.answer.set_result(answer)


class Pool:
    """Workers that take turns; requests wait in line, and are refused if the line is full.

    Predictions of few molecules that wait are done as one batch.
    """

    def __init__(self, folder: Path, limits: ServeLimits, count: int) -> None:
        self.limits = limits
        self.workers = [Worker(folder, limits) for _ in range(count)]
        self._free = list(self.workers)
        self._line: list[Waiting] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._working = 0

    def start(self) -> Answer:
        """Start all processes; return the description of the model, or why there is none."""
        answers: Sequence[Answer] = [worker.start() for worker in self.workers]
        return answers[0]

    @property
    def busy(self) -> int:
        """Number of requests that are waiting or worked on."""
        return len(self._line) + self._working

    async def ask(self, job: Job) -> Answer:
        """Wait for a worker and let it do a job."""
        if len(self._line) >= self.limits.waiting:
            return fault(BUSY, f"busy: {len(self._line)} requests are waiting; try again")
        loop = asyncio.get_running_loop()
        waiting = Waiting(job, loop.create_future())
        self._line.append(waiting)
        self._begin()
        late = loop.call_later(self.limits.turn, self._refuse, waiting)
        try:
            return await waiting.answer
        finally:
            late.cancel()

    def _refuse(self, waiting: Waiting) -> None:
        """Give up a request that is still in line."""
        if waiting in self._line:
            self._line.remove(waiting)
            waiting.end(fault(BUSY, f"busy: no turn within {self.limits.turn:g} s; try again"))

    def _begin(self) -> None:
        """Give work to every free worker."""
        while self._line and self._free:
            # A task of its own: it goes on if the client goes away, and gives the worker back.
            task = asyncio.create_task(self._turn(self._free.pop(), self._taken()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _taken(self) -> list[Waiting]:
        """Take the first request out of the line, and those that can be done together with it."""
        taken, rows = [self._line[0]], _rows_to_join(self._line[0].job)
        for other in self._line[1:]:
            if rows is None or (more := _rows_to_join(other.job)) is None:
                continue
            if rows + more <= TOGETHER:
                taken.append(other)
                rows += more
        self._line = [waiting for waiting in self._line if waiting not in taken]
        return taken

    async def _turn(self, worker: Worker, taken: list[Waiting]) -> None:
        """Do jobs, answer, and only then replace a process that was ended."""
        self._working += len(taken)
        jobs = [waiting.job for waiting in taken]
        answers = await asyncio.to_thread(worker.ask, jobs)
        if len(jobs) > 1 and not worker.alive and not worker.ending:
            # One of them was too much for the process: the others shall not pay for it.
            answers = [(await asyncio.to_thread(worker.ask, [job]))[0] for job in jobs]
        for waiting, answer in zip(taken, answers, strict=True):
            waiting.end(answer)
        self._working -= len(taken)
        if not worker.alive and not worker.ending:
            await asyncio.to_thread(worker.start)
        self._free.append(worker)
        self._begin()

    def end(self) -> None:
        """End all processes at once; jobs in work are answered with 503."""
        for worker in self.workers:
            worker.ending = True
            worker.kill()


def _rows_to_join(job: Job) -> int | None:
    """Return the number of molecules of a job that may be done with others; None if it may not."""
    if job["verb"] != "predict" or job["smiles"] is None or len(job["smiles"]) > SMALL:
        return None
    return len(job["smiles"])
