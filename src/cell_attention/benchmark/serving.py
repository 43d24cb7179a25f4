"""The server of the local page under load: many clients at once, on this machine."""

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cell_attention.benchmark.measure import Measurement
from cell_attention.errors import CellAttentionError

SECONDS = 5.0
"""How long the clients ask."""
CLIENTS = 64
MOLECULES = ("CC(=O)Oc1ccccc1C(=O)O", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "O=[N+]([O-])c1ccccc1", "CCO")


@dataclass
class _Load:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0


def serving_benchmark() -> Measurement:
    """Measure requests per second of clients that ask for one molecule each, again and again."""
    with tempfile.TemporaryDirectory() as folder:
        _save_model(folder)
        with _server(folder) as port:
            load, end = _Load(), time.perf_counter() + SECONDS
            clients = [
                threading.Thread(target=_client, args=(port, number, end), kwargs={"load": load})
                for number in range(CLIENTS)
            ]
            start = time.perf_counter()
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            passed = time.perf_counter() - start
    times = sorted(load.seconds) or [float("nan")]
    p50, p95 = (1000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.95))
    return Measurement(
        f"predictions of serve for {CLIENTS} clients", len(load.seconds) / passed, "requests/s",
        "no errors", load.errors == 0 and bool(load.seconds),
        f"half within {p50:.0f} ms, 95 % within {p95:.0f} ms, {load.errors} errors",
    )  # fmt: skip


def _save_model(folder: str) -> None:
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
def _server(folder: str) -> Iterator[int]:
    """Start a server on a free port, and end it."""
    words = [sys.executable, "-m", "cell_attention", "serve", folder, "--port", "0"]
    process = subprocess.Popen(  # noqa: S603
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        if "127.0.0.1:" not in line:
            raise CellAttentionError("the server could not be started")
        yield int(line.split("127.0.0.1:")[1].split("/")[0])
    finally:
        process.terminate()
        process.communicate()


def _client(port: int, number: int, end: float, *, load: _Load) -> None:
    """Ask until the time is up, over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"smiles": [MOLECULES[number % len(MOLECULES)]]})
    try:
        while (start := time.perf_counter()) < end:
            connection.request("POST", "/api/predict", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            load.seconds.append(time.perf_counter() - start)
            load.errors += answer.status != 200
    except (OSError, http.client.HTTPException):
        load.errors += 1
    finally:
        connection.close()
