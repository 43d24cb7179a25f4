"""The worker processes of the server: each does one job at a time, and is replaced when late."""

import asyncio
import json
import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cell_attention.app.limits import ServeLimits
from cell_attention.app.worker import FINE, STATUS, work
from cell_attention.parallel.interrupts import without_interrupts
from cell_attention.plugins import loaded_plugins

LOADING_SECONDS = 300.0
"""Time to import torch, load the model and, once per machine, compile the kernels."""
BUSY, LATE, FAILED = 503, 504, 500


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

    def ask(self, job: bytes) -> Answer:
        """Do one job; a process that dies over it, or takes too long, is ended."""
        if not self.alive and (started := self.start()).status != FINE:
            return Answer(BUSY, started.body)
        try:
            self._connection.send_bytes(job)
        except OSError:
            self.kill()
            return fault(FAILED, "the worker process has ended; try again")
        return self._receive(self.limits.seconds)

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


class Pool:
    """Workers that take turns; requests wait in line, and are refused if the line is full."""

    def __init__(self, folder: Path, limits: ServeLimits, count: int) -> None:
        self.limits = limits
        self.workers = [Worker(folder, limits) for _ in range(count)]
        self._free: asyncio.Queue[Worker] = asyncio.Queue()
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> Answer:
        """Start all processes; return the description of the model, or why there is none."""
        answers: Sequence[Answer] = [worker.start() for worker in self.workers]
        for worker in self.workers:
            self._free.put_nowait(worker)
        return answers[0]

    @property
    def busy(self) -> int:
        """Number of requests that are waiting or worked on."""
        return self._waiting + len(self.workers) - self._free.qsize()

    async def ask(self, job: dict[str, Any]) -> Answer:
        """Wait for a worker and let it do a job."""
        if self._waiting >= self.limits.waiting:
            return fault(BUSY, f"busy: {self._waiting} requests are waiting; try again")
        self._waiting += 1
        try:
            async with asyncio.timeout(self.limits.turn):
                worker = await self._free.get()
        except TimeoutError:
            return fault(BUSY, f"busy: no turn within {self.limits.turn:g} s; try again")
        finally:
            self._waiting -= 1
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        # A task of its own: it goes on if the client goes away, and gives the worker back.
        task = asyncio.create_task(self._turn(worker, json.dumps(job).encode("ascii"), answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await answer

    async def _turn(self, worker: Worker, job: bytes, answer: "asyncio.Future[Answer]") -> None:
        """Do a job, answer, and only then replace a process that was ended."""
        found = await asyncio.to_thread(worker.ask, job)
        if not answer.done():
            answer.set_result(found)
        if not worker.alive and not worker.ending:
            await asyncio.to_thread(worker.start)
        self._free.put_nowait(worker)

    def end(self) -> None:
        """End all processes at once; jobs in work are answered with 503."""
        for worker in self.workers:
            worker.ending = True
            worker.kill()
