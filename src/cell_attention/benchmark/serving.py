"""The server of the local page under load: many clients at once on this machine, and its memory."""

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from cell_attention.benchmark.measure import Measurement
from cell_attention.errors import CellAttentionError

SECONDS = 30.0
"""How long the clients ask."""
CLIENTS = 64
REQUESTS = 10_000
"""Requests after which the memory must be what it was after a tenth of them."""
GROWTH = 0.05
"""How much larger the memory may be then: the parts of freed memory that cannot be given back."""
MOLECULES = ("CC(=O)Oc1ccccc1C(=O)O", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "O=[N+]([O-])c1ccccc1", "CCO")
ASKED = (
    *(("/api/predict", {"smiles": [one]}, 200) for one in (*MOLECULES, "C1CC", "")),
    ("/api/predict", {"smiles": MOLECULES, "names": MOLECULES}, 200),
    ("/api/predict", {"smiles": 3}, 422),
    ("/api/explain", {"smiles": MOLECULES[:1], "forms": ["drawing"]}, 200),
    ("/api/read", {"name": "a.csv", "text": "smiles\nC\nCC\n"}, 200),
)
"""Requests of every kind with the status of their answers."""


@dataclass
class Load:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0


def serving_benchmarks() -> Iterator[Measurement]:
    """Measure requests per second of clients that ask for one molecule each, again and again; then
    the memory after thousands of requests of every kind.
    """
    with tempfile.TemporaryDirectory() as folder:
        save_model(folder)
        with _server(folder) as (process, port):
            yield _speed(port)
            yield from _memory(process, port)


def _speed(port: int) -> Measurement:
    load, start = Load(), time.perf_counter()
    predictions = [("/api/predict", {"smiles": [one]}, 200) for one in MOLECULES]
    ask_all(port, predictions, load=load, seconds=SECONDS)
    passed = time.perf_counter() - start
    times = sorted(load.seconds) or [float("nan")]
    p50, p95 = (1000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.95))
    return Measurement(
        f"predictions of serve for {CLIENTS} clients", len(load.seconds) / passed, "requests/s",
        "no errors", load.errors == 0 and bool(load.seconds),
        f"half within {p50:.0f} ms, 95 % within {p95:.0f} ms, {load.errors} errors in "
        f"{passed:.0f} s",
    )  # fmt: skip


def _memory(process: int, port: int) -> Iterator[Measurement]:
    load, early = Load(), REQUESTS // 10
    if not Path("/proc/self/status").exists():
        return
    ask_all(port, ASKED, load=load, most=early)
    before = resident_megabytes(process)
    ask_all(port, ASKED, load=load, most=REQUESTS - early)
    growth = resident_megabytes(process) / before - 1
    yield Measurement(
        f"growth of the memory of serve from {early:,} to {REQUESTS:,} requests", 100 * growth, "%",
        f"≤ {100 * GROWTH:g} %", growth <= GROWTH and load.errors == 0,
        f"{before:.0f} MB at first in all its processes, {load.errors} errors",
    )  # fmt: skip


def save_model(folder: str) -> None:
    """Save the default network for molecules, untrained."""
    import torch

    from cell_attention.data.molecules.features import Featuriser
    from cell_attention.inference.model_folder import Model
    from cell_attention.nn.config import NetworkConfig
    from cell_attention.nn.network import CellAttentionNetwork

    torch.manual_seed(0)
    network = CellAttentionNetwork(NetworkConfig.molecules(), *Featuriser().widths, 2).eval()
    Model((network,), "classes", ("0", "1"), Featuriser().record, {}).save_pretrained(folder)


@contextmanager
def _server(folder: str) -> Iterator[tuple[int, int]]:
    """Start a server; return the number of its process and its port, and end it."""
    words = [sys.executable, "-m", "cell_attention", "serve", folder, "--port", "0"]
    process = subprocess.Popen(  # noqa: S603
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        if "127.0.0.1:" not in line:
            raise CellAttentionError("the server could not be started")
        yield process.pid, int(line.split("127.0.0.1:")[1].split("/")[0])
    finally:
        process.terminate()
        process.communicate()


def resident_megabytes(process: int) -> float:
    """Return the memory of a process and of all that it has started."""
    found = 0.0
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        found += sum(resident_megabytes(int(child)) for child in path.read_text().split())
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return found + next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def ask_all(
    port: int,
    asked: Sequence[tuple[str, object, int]],
    *,
    load: Load,
    seconds: float = 3600.0,
    most: int = sys.maxsize,
    clients: int = CLIENTS,
) -> None:
    """Let many clients ask, each one request after the other, until the time or `most` is up.

    asked: paths, bodies and the statuses that are right; any other is an error.
    """
    numbers, end = count(), time.perf_counter() + seconds

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            while (start := time.perf_counter()) < end and (number := next(numbers)) < most:
                path, body, status = asked[number % len(asked)]
                connection.request(
                    "POST", path, json.dumps(body), {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                answer.read()
                load.seconds.append(time.perf_counter() - start)
                load.errors += answer.status != status
        except (OSError, http.client.HTTPException):
            load.errors += 1
        finally:
            connection.close()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
