"""What is sent to harm the server: each is answered with a 4xx, and the server goes on serving."""

import contextlib
import json
import random
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from cell_attention.app.server import CONNECTIONS
from cell_attention.data.molecules.features import Featuriser

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from cell_attention.benchmark.serving import ASKED, Load, ask_all, resident_megabytes
from serving import Server, started, two_members

PREDICT = b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
PATIENCE = 2.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = two_members(tmp_path_factory.mktemp("hostile"))
    running = started(str(folder), "--limits.patience", str(PATIENCE), "--limits.answer", "4000000")
    yield running
    running.end()


@pytest.fixture(autouse=True)
def serving(server: Server) -> Iterator[None]:
    """After every test the server answers as before."""
    yield
    status, answer = server.ask("/api/predict", {"smiles": ["CCO"]})
    assert status == 200
    assert answer["predictions"][0]["error"] == ""


def refused(answer: bytes) -> dict[str, Any]:
    """The JSON of an answer that is a 4xx with one line."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 4"), head
    assert b"Traceback" not in body
    found: dict[str, Any] = json.loads(body) if body.startswith(b"{") else {}
    return found


def test_fifty_megabytes_are_refused_with_a_line_that_arrives(server: Server) -> None:
    before = resident_megabytes(server.process.pid)
    status, answer = server.ask("/api/predict", b" " * 50_000_000)
    assert (status, answer) == (413, {"error": "the body must have at most 1,000,000 bytes"})
    parts = b"".join(b"%x\r\n%s\r\n" % (10**6, b" " * 10**6) for _ in range(50)) + b"0\r\n\r\n"
    chunked = server.raw(PREDICT + b"Transfer-Encoding: chunked\r\n\r\n" + parts)
    assert chunked.startswith(b"HTTP/1.1 413 ")
    assert resident_megabytes(server.process.pid) - before < 25, "bodies are not kept"


def test_five_thousand_atoms_are_refused(server: Server) -> None:
    for path in ("/api/predict", "/api/explain"):
        status, answer = server.ask(path, {"smiles": ["C" * 5000]})
        assert status == 413
        assert answer["error"] == "more than 500 atoms, the limit of this server"


def ring_lattice(degree: int, nodes: int = 500) -> dict[str, Any]:
    """A random graph in which most nodes have this degree: sparse, with millions of cycles."""
    draw, edges = random.Random(0), set()
    for _ in range(degree):
        order = draw.sample(range(nodes), nodes)
        edges |= {(min(u, v), max(u, v)) for u, v in zip(order[::2], order[1::2], strict=True)}
    width, of_edge = Featuriser().widths
    return {
        "nodes": [[0] * width] * nodes,
        "edges": sorted(edges),
        "edge_features": [[0] * of_edge] * len(edges),
    }


def test_graphs_with_millions_of_cycles_are_refused_within_seconds(server: Server) -> None:
    said = set()
    for degree in (3, 6, 9):
        start = time.perf_counter()
        graph = ring_lattice(degree)
        assert len(json.dumps(graph)) < 1_000_000
        status, answer = server.ask("/api/predict", {"graphs": [graph]})
        assert time.perf_counter() - start < 8
        said.add(status)
        if status == 413:
            assert "the limit of this server" in answer["error"]
            assert "Limits." not in answer["error"]
    assert said == {200, 413}, "sparse ones are predicted"


def test_slow_headers_hold_up_nobody_else(server: Server) -> None:
    """As many as the server takes: a new connection ends the one that is silent for longest."""
    opened = []
    with contextlib.ExitStack() as stack:
        for number in range(CONNECTIONS + 50):
            slow = stack.enter_context(server.connection())
            with contextlib.suppress(OSError):
                slow.sendall(b"GET / HTTP/1.1\r\nHost: local" if number % 2 else b"")
            opened.append(slow)
        start = time.perf_counter()
        assert server.ask("/api/predict", {"smiles": ["CCO"]})[0] == 200
        assert time.perf_counter() - start < PATIENCE
        with contextlib.suppress(ConnectionResetError):
            assert opened[0].recv(100) == b"", "the first were ended"
        last = b"".join(iter(lambda: opened[-1].recv(65536), b""))
        assert last.startswith(b"HTTP/1.1 408 ")


def test_slow_bodies_are_answered_with_408_and_hold_up_nobody_else(server: Server) -> None:
    with ThreadPoolExecutor(50) as pool:
        head = PREDICT + b"Content-Length: 1000\r\n\r\n{"
        slow = [pool.submit(server.raw, head) for _ in range(50)]
        start = time.perf_counter()
        assert server.ask("/api/predict", {"smiles": ["CCO"]})[0] == 200
        assert time.perf_counter() - start < PATIENCE
        for one in slow:
            assert refused(one.result()) == {"error": "the body did not arrive within 2 s"}


def test_a_client_that_does_not_read_its_answers_is_dropped(server: Server) -> None:
    # An answer writes one of these as twelve bytes: more than the kernel keeps for a connection.
    body = json.dumps({"smiles": ["C"], "names": ["😀" * 240_000]}, ensure_ascii=False).encode()
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", server.port))
        for _ in range(2):
            deaf.sendall(PREDICT + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        ended = select.poll()
        ended.register(deaf, 0)  # only its end is waited for
        assert ended.poll(10_000 * PATIENCE), "the server has ended the connection"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
        "/assets/..%5c..%5cpool.py", "/assets//etc/passwd", "/assets/app.js%00.css", "/assets/",
        "/assets/app.js/..", "/%c0%ae%c0%ae/etc/passwd", "/api/predict/../../etc/passwd",
        "/openapi.json%0d%0aX:%20y", "/" + "a" * 20_000, "/etc/passwd", "/.git/config",
        "http://evil.example/etc/passwd", "*",
    ],
)  # fmt: skip
def test_path_tricks_find_nothing(server: Server, path: str) -> None:
    answer = server.raw(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    )
    refused(answer)
    assert b"root:" not in answer


@pytest.mark.parametrize(
    "line",
    [
        b"PUT /api/predict HTTP/1.1", b"DELETE / HTTP/1.1", b"TRACE / HTTP/1.1",
        b"OPTIONS /api/predict HTTP/1.1", b"PATCH /health HTTP/1.1", b"POST / HTTP/1.1",
        b"CONNECT evil.example:80 HTTP/1.1", b"HEAD /api/predict HTTP/1.1", b"BREW / HTTP/1.1",
        b"GET /api/explain HTTP/1.1", b"GET /", b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/1.1\r\nHost: evil.example",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2",
        b"POST /api/predict HTTP/1.1\r\nContent-Length: -1",
        b"POST /api/predict HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 9e9",
        b"POST /api/predict HTTP/1.1\r\nTransfer-Encoding: gzip, chunked",
    ],
)  # fmt: skip
def test_wrong_methods_and_headers_are_refused(server: Server, line: bytes) -> None:
    answer = server.raw(line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    refused(answer)


def test_endless_headers_are_refused_before_they_are_late(server: Server) -> None:
    start = time.perf_counter()
    assert server.raw(b"GET / HTTP/1.1\r\nX: " + b"y" * 40_000).startswith(b"HTTP/1.1 400 ")
    assert time.perf_counter() - start < PATIENCE


def test_memory_does_not_grow_with_requests(server: Server) -> None:
    """One in two has a body or answer of 200 kB, of which a kept copy would be seen."""
    long = "x" * 200_001
    asked = [("/api/predict", {"smiles": ["C"], "names": [long]}, 200)]
    asked += [("/api/predict", {"smiles": [long]}, 413), ("/api/predict", {long: 1}, 422)]
    asked += [("/api/explain", {"smiles": ["C", "C1CC"], "forms": [long]}, 422)]
    asked += ASKED[-4:]
    load = Load()
    ask_all(server.port, asked, load=load, most=80, clients=4)
    before = resident_megabytes(server.process.pid)
    ask_all(server.port, asked, load=load, most=320, clients=4)
    assert resident_megabytes(server.process.pid) - before < 8
    assert load.errors == 0
    assert len(load.seconds) == 400


@pytest.fixture(scope="module")
def described(server: Server) -> dict[str, Any]:
    """The OpenAPI description that the server has of itself."""
    found: dict[str, Any] = server.ask("/openapi.json")[1]
    return found


def written(described: dict[str, Any], schema: dict[str, Any]) -> some.SearchStrategy[Any]:
    """Values as a schema of the OpenAPI description has them, small and strange ones."""
    if "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return some.one_of([written(described, one) for one in schema["anyOf"]])
    if "enum" in schema:
        return some.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind == "array":
        return some.lists(written(described, schema["items"]), max_size=3)
    if kind == "object":
        of = {name: written(described, one) for name, one in schema["properties"].items()}
        needed = {name: of.pop(name) for name in schema.get("required", ())}
        return some.fixed_dictionaries(needed, optional=of)
    return KINDS[kind]


TEXTS = ["C", "c1ccccc1", "[He]", "C1CC", "InChI=1S/", "a.csv", "a.smi", "smiles\nC", ""]
KINDS: dict[str, some.SearchStrategy[Any]] = {
    "string": some.text(max_size=20) | some.sampled_from(TEXTS),
    "number": some.floats() | some.integers(-2, 10**30),
    "integer": some.integers(-(2**70), 2**70) | some.integers(-1, 3),
    "boolean": some.booleans(),
    "null": some.none(),
}  # fmt: skip
ANYTHING: some.SearchStrategy[Any] = some.recursive(
    some.one_of(list(KINDS.values())),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(data=some.data())
@settings(
    max_examples=120, deadline=None, database=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
def test_whatever_follows_the_description_or_breaks_it_has_an_answer_that_it_names(
    server: Server, described: dict[str, Any], data: some.DataObject
) -> None:
    paths = {path: ways["post"] for path, ways in described["paths"].items() if "post" in ways}
    path = data.draw(some.sampled_from(sorted(paths)))
    content = paths[path]["requestBody"]["content"]
    body = data.draw(written(described, content["application/json"]["schema"]) | ANYTHING)
    if isinstance(body, dict) and body and data.draw(some.booleans()):
        body[data.draw(some.sampled_from(sorted(body)))] = data.draw(ANYTHING)
    sent = json.dumps(body).encode()
    if data.draw(some.integers(0, 4)) == 0:
        place = data.draw(some.integers(0, len(sent)))
        sent = sent[:place] + data.draw(some.binary(min_size=1, max_size=3)) + sent[place:]
        body = {}
    status, answer = server.ask(path, sent)
    assert str(status) in paths[path]["responses"]
    assert status != 500
    if status == 200:
        rows = body.get("smiles") or body.get("graphs")
        assert not rows or len(answer["predictions"]) == len(rows)
    else:
        assert len(answer["error"].splitlines()) == 1
        assert "Traceback" not in answer["error"]
