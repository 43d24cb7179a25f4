"""Jobs as Ray tasks, on the cluster at RAY_ADDRESS or else on a temporary one started here.

All nodes must share the folders that the jobs read and write.
"""

import logging
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from cell_attention.errors import InputError, WorkError
from cell_attention.parallel.engine import Attempts, Ended, JobProgress, Work, cores, perform

OBJECT_STORE = 80 * 2**20
"""Bytes for a cluster started here, little more than Ray's minimum: our messages are small."""


def run_on_ray(works: Sequence[Work], jobs: int, progress: JobProgress) -> dict[str, str]:
    """Run all jobs, one Ray task each, at most `jobs` at a time (0: as many as the cluster has
    processors); see `engine.run_all`.
    """
    ray = _imported()
    waiting, attempts, places = deque(works), Attempts(), {}
    with _cluster(ray, min(jobs or cores(), len(works))):
        most = jobs or max(1, int(_processors(ray)))
        # The board is on the driver's node, so that no lost node takes the messages with it.
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        board = ray.remote(num_cpus=0, scheduling_strategy=here)(_Board).remote()
        task = ray.remote(num_cpus=1, max_retries=0)(_run)
        running: dict[Any, Work] = {}
        look = time.monotonic() + 10.0
        while waiting or running:
            while waiting and len(running) < most:
                work = waiting.popleft()
                attempts.begin(work)
                running[task.options(name=work.name).remote(work, board)] = work
            finished, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
            for name, numbers in _heard(ray, board):
                progress(name, numbers)
            if not finished and time.monotonic() > look:
                look = time.monotonic() + 10.0
                _processors(ray)  # raises if no processor is left
            for reference in finished:
                work = running.pop(reference)
                try:
                    places[work.name], ended = ray.get(reference)
                except ray.exceptions.RayTaskError as error:
                    # Raised outside our function, as when the package is not installed there.
                    reason = str(error.cause).strip().partition("\n")[0]
                    raise WorkError(f"{work.name}: {reason}") from None
                except ray.exceptions.RayError:  # the process or its node died, or memory ran out
                    attempts.lost(work)
                    waiting.appendleft(work)
                    continue
                if ended.error is not None:
                    raise ended.error
                progress(work.name, {})
    return places


class _Board:
    """The last progress report of every running job."""

    def __init__(self) -> None:
        self.said: dict[str, dict[str, float]] = {}

    def put(self, name: str, numbers: dict[str, float]) -> None:
        self.said[name] = numbers

    def take(self) -> list[tuple[str, dict[str, float]]]:
        said, self.said = self.said, {}
        return list(said.items())


def _heard(ray: Any, board: Any) -> list[tuple[str, dict[str, float]]]:
    """Return the new reports; none if the board has died, since jobs can go on without it."""
    try:
        news: list[tuple[str, dict[str, float]]] = ray.get(board.take.remote(), timeout=10.0)
    except ray.exceptions.RayError:
        return []
    return news


def _run(work: Work, board: Any) -> tuple[str, Ended]:
    """Run a job as a Ray task; return where it ran, and how it ended."""
    import ray

    parent, last = os.getppid(), 0.0

    def report(numbers: dict[str, float]) -> None:
        nonlocal last
        if os.getppid() != parent:  # Ray's own process has died, so the result is not needed
            os._exit(1)
        if time.monotonic() - last > 0.2:
            last = time.monotonic()
            board.put.remote(work.name, numbers)

    node: str = ray.get_runtime_context().get_node_id()
    return f"node {node[:8]}", perform(work, report)


@contextmanager
def _cluster(ray: Any, processors: int) -> Iterator[None]:
    """Connect to Ray within this block, unless the calling program is connected already."""
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS")
    if address and "://" in address:
        raise InputError(f"RAY_ADDRESS must have the form HOST:PORT, got {address}")
    quiet = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    try:
        if address:
            _check_answer(address)
            ray.init(address=address, **quiet)
        else:
            ray.init(
                address="local", num_cpus=processors, include_dashboard=False,
                object_store_memory=OBJECT_STORE, **quiet,
            )  # fmt: skip
    except (OSError, ValueError, RuntimeError) as error:
        where = f"RAY_ADDRESS {address}" if address else "a local Ray"
        raise WorkError(f"{where}: no connection ({str(error).splitlines()[0]})") from None
    with redirect_stdout(sys.stderr):  # Ray prints messages about lost workers there
        try:
            yield
        finally:
            ray.shutdown()


def _check_answer(address: str) -> None:
    """Refuse an address where no Ray answers; Ray itself would retry for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10.0).close()
        words = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address]
        try:
            done = subprocess.run(words, capture_output=True, timeout=20.0, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            raise ConnectionError("a server answers there, but it is not Ray") from None
        if done.returncode:
            raise ConnectionError("a server answers there, but not this version of Ray")


def _processors(ray: Any) -> float:
    found: float = ray.cluster_resources().get("CPU", 0.0)
    if found < 1:
        raise WorkError("the Ray cluster has no processor left; start a node, or do not use Ray")
    return found


def _imported() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics are sent
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise InputError("engine 'ray' needs Ray: pip install 'cell-attention[ray]'") from None
    return ray
