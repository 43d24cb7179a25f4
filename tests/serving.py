"""A real server on a free port, a model for it, and requests by Python's own HTTP client."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cell_attention import CellAttentionNetwork, Model, NetworkConfig
from cell_attention.data.molecules.features import Featuriser

SMALL = NetworkConfig(hidden=(4, 4), heads=(2, 2), counts=0)


def made(sizes: tuple[int, int, int], members: int = 1, **more: Any) -> Model:
    """An untrained model."""
    torch.manual_seed(3)
    networks = tuple(CellAttentionNetwork(SMALL, *sizes).eval() for _ in range(members))
    return Model(networks, **{"task": "classes", "labels": ("0", "1"), "provenance": {}, **more})


def two_members(folder: Path) -> Path:
    """Save a model for molecules with two members, which has a spread."""
    nodes, edges = Featuriser().widths
    model = made(
        (nodes, edges, 2), 2, featuriser=Featuriser().record, target_names=("active",),
        seen={"elements": (6, 7, 8), "bonds": (1, 2, 12)},
    )  # fmt: skip
    model.save_pretrained(folder / "two-members")
    return folder / "two-members"


@dataclass
class Server:
    """A running server."""

    process: "subprocess.Popen[str]"
    port: int

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        method: str = "",
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Send a request; return the status and the JSON, or the text, of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = json.dumps(body).encode() if isinstance(body, dict | list) else body
        kind = {"Content-Type": "application/json"} if data is not None else {}
        connection.request(
            method or ("GET" if data is None else "POST"), path, data, {**kind, **(headers or {})}
        )
        answer = connection.getresponse()
        text = answer.read().decode()
        self.headers = dict(answer.getheaders())
        connection.close()
        return answer.status, json.loads(text) if "json" in self.headers["content-type"] else text

    def raw(self, data: bytes, seconds: float = 10.0) -> bytes:
        """Send bytes and return all that comes back."""
        with self.connection(seconds) as opened:
            opened.sendall(data)
            found = b""
            while part := opened.recv(65536):
                found += part
        return found

    def connection(self, seconds: float = 10.0) -> socket.socket:
        """Open a connection and send nothing."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    def end(self) -> None:
        """End the server, which must still be there."""
        assert self.process.poll() is None, "the server went on serving"
        self.process.kill()
        self.process.communicate()


def heard() -> None:
    """Ctrl-C is heard, also where the tests run in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def started(*words: str) -> Server:
    """Start a server and wait until it answers."""
    command = [sys.executable, "-m", "cell_attention", "serve", "--port", "0", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"}, preexec_fn=heard,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    assert " at http://127.0.0.1:" in line, line + (process.stderr.read() if process.stderr else "")
    return Server(process, int(line.split("127.0.0.1:")[1].split("/")[0]))
