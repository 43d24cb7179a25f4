"""The server of the local page: a real one on a free port, asked by Python's own HTTP client."""

import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cell_attention import explain
from cell_attention.app.limits import ServeLimits
from cell_attention.cli.entry import run as run_words
from cell_attention.data.molecules.features import Featuriser, featurise
from cell_attention.data.sources import load_dataset
from cell_attention.errors import InputError
from cell_attention.inference.prediction import predict_complexes
from serving import SMALL, Server, heard, made, started, two_members

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

SMILES = ["O=[N+]([O-])c1ccccc1", "C1CC", "", "c1ccc2ccccc2c1", "[He]", "<script>alert(1)</script>"]
FAST = ["--limits.seconds", "8", "--limits.patience", "1.5", "--limits.rows", "50"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with two members, which has a spread."""
    return two_members(tmp_path_factory.mktemp("serve"))


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    running = started(str(folder), *FAST)
    yield running
    running.end()


def test_predictions_are_those_of_the_command(
    server: Server, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "new.csv"
    with source.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("smiles", "name"), *((one, f"m{n}") for n, one in enumerate(SMILES))])
    assert run_words(["predict", str(folder), str(source)]) == 0
    theirs = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    names = [f"m{n}" for n in range(len(SMILES))]
    status, answer = server.ask("/api/predict", {"smiles": SMILES, "names": names})
    assert status == 200
    assert [row.pop("row") for row in answer["predictions"]] == [1, 2, 3, 4, 5, 6]
    numbers = ("active_probability", "active_spread")
    for ours, other in zip(answer["predictions"], theirs, strict=True):
        assert ours.keys() == other.keys()
        for key, value in ours.items():
            if key in numbers and other[key]:
                assert value == float(other[key])
            else:
                assert (value or "") == other[key]
    assert ["RDKit cannot read" in row["error"] for row in theirs] == [0, 1, 0, 0, 0, 1]
    assert theirs[4]["warning"] == "element He was not in training"
    assert theirs[0]["active_spread"] != ""


@pytest.mark.parametrize("task", ["values", "labels"])
def test_every_column_of_the_command_is_in_an_answer(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cell_attention.app.jobs import perform
    from cell_attention.inference.seen import neighbours_of

    model = made(
        (*Featuriser().widths, 2), 2, task=task, labels=(), featuriser=Featuriser().record,
        target_names=("logp", "dose"), margins=(0.5, None) if task == "values" else (),
        neighbours=neighbours_of([SMILES[0], "Cc1ccccc1"]),
    )  # fmt: skip
    model.save_pretrained(tmp_path / "model")
    source = tmp_path / "new.smi"
    source.write_text("\n".join(one for one in SMILES if one))
    assert run_words(["predict", str(tmp_path / "model"), str(source)]) == 0
    theirs = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    job = {"verb": "predict", "smiles": [one for one in SMILES if one], "names": None}
    status, answer = perform(model, {**job, "graphs": None}, ServeLimits())
    assert status == 200
    assert ("logp_low" in theirs[0]) == (task == "values")
    for ours, other in zip(answer["predictions"], theirs, strict=True):
        assert set(ours) - {"row"} == set(other) - {"name"}
        for name in set(ours) - {"row"}:
            if isinstance(ours[name], float):
                assert ours[name] == float(other[name])
            else:
                assert (ours[name] or "") == other[name]
    assert answer["predictions"][0]["nearest_similarity"] == 1.0


def test_graphs_as_json_are_predicted_like_their_molecules(server: Server, folder: Path) -> None:
    from cell_attention import load_model

    graph = featurise([SMILES[0]]).graphs
    assert graph.edge_features is not None
    order = list(reversed(range(graph.num_edges)))  # edges may come in any order and direction
    given = {
        "nodes": graph.node_features.tolist(),
        "edges": [graph.edge_nodes.T.tolist()[e][::-1] for e in order],
        "edge_features": [graph.edge_features.tolist()[e] for e in order],
    }
    status, answer = server.ask("/api/predict", {"graphs": [given, {**given, "edges": [[0, 99]]}]})
    assert status == 200
    good, bad = answer["predictions"]
    _, same = server.ask("/api/predict", {"smiles": SMILES[:1]})
    assert good["active_probability"] == same["predictions"][0]["active_probability"]
    assert bad["active_prediction"] is None
    assert bad["error"].startswith("edge_features must have one row per edge")
    model = load_model(folder)
    found = predict_complexes(model, load_dataset_of(SMILES[0]))
    assert good["active_probability"] == pytest.approx(float(found.values[0, 1]), rel=1e-5)


def load_dataset_of(smiles: str) -> Any:
    from cell_attention.topology.polygons import attach_polygons

    return attach_polygons(featurise([smiles]).graphs, SMALL.max_polygon)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        ({"nodes": [[1.0]], "edges": [], "edge_features": []}, "nodes must have 56 numbers each"),
        ({"nodes": [], "edges": [[0, 1, 2]]}, "edges must be pairs of node numbers"),
        ({"nodes": [], "edges": []}, "edge_features must have"),
        ({"nodes": [], "edges": [[0, 1]], "edge_features": [[]]}, "edge_features must have"),
    ],
)
def test_a_graph_that_breaks_a_rule_has_its_reason(
    server: Server, graph: dict[str, Any], reason: str
) -> None:
    reason = reason.replace("56", str(Featuriser().widths[0]))
    status, answer = server.ask("/api/predict", {"graphs": [graph]})
    assert status == 200
    assert answer["predictions"][0]["error"].startswith(reason)


def test_explanations_are_those_of_python(server: Server, folder: Path) -> None:
    forms = ["explanation", "picture", "drawing"]
    status, answer = server.ask("/api/explain", {"smiles": SMILES[:4], "forms": forms})
    assert status == 200
    rows = answer["predictions"]
    assert [row["explanation"] is None for row in rows] == [False, True, True, False]
    ours = rows[0]["explanation"]
    (one,) = explain(folder, SMILES[0], [1], measure=False)  # the second class, as in a report
    assert ours["edges"] == pytest.approx(one.edges.tolist(), abs=1e-5)
    assert ours["margin"] == pytest.approx(one.margin, abs=1e-5)
    assert ours["edge_nodes"] == one.complexes.edge_nodes.T.tolist()
    assert ours["faithfulness"] is None
    assert rows[0]["picture"].startswith("<svg")
    assert rows[3]["drawing"]["polygons"] == [list(p) for p in rows[3]["drawing"]["polygons"]]
    status, answer = server.ask("/api/explain", {"smiles": SMILES[:1], "measure": True})
    assert answer["predictions"][0]["explanation"]["faithfulness"]["area"]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "said"),
    [
        ("/api/predict", {"smiles": ["C"]}, {"Host": "evil.example"}, 421, "host 'evil.example'"),
        ("/health", None, {"Host": "evil.example"}, 421, "host 'evil.example'"),
        ("/api/predict", {"smiles": ["C"]}, {"Origin": "http://evil.example"}, 403, "evil.exam"),
        ("/api/predict", {"smiles": ["C"]}, {"Origin": "null"}, 403, "'null'"),
        ("/api/predict", {"smiles": ["C"]}, {"Content-Type": "text/plain"}, 415, "application/js"),
        ("/api/predict", {"smiles": ["C"]}, {"Content-Encoding": "gzip"}, 415, "must be JSON"),
        ("/api/predict", None, {}, 405, "Method Not Allowed"),
        ("/health", b"", {"Content-Type": "text/plain"}, 405, "Method Not Allowed"),
        ("/api/model", b"x=1", {"Content-Encoding": "gzip"}, 405, "Method Not Allowed"),
        ("/", b"{}", {}, 405, "Method Not Allowed"),
        ("/nothing", None, {}, 404, "Not Found"),
        ("/nothing", b"x=1", {"Content-Type": "text/plain"}, 404, "Not Found"),
        ("/assets/..%2f..%2frequests.py", None, {}, 404, "Not Found"),
        ("/api/predict", b"{", {}, 422, "the body is not JSON"),
        ("/api/predict", b"[" * 100_000, {}, 400, "parsing the body"),
        ("/api/predict", b"\xff\xfe", {}, 422, "not JSON"),
        ("/api/predict", {}, {}, 422, "either smiles or graphs"),
        ("/api/predict", {"smiles": ["C"], "graphs": []}, {}, 422, "either smiles or graphs"),
        ("/api/predict", {"smiles": []}, {}, 422, "no rows"),
        ("/api/predict", {"smiles": "CCO"}, {}, 422, "smiles: Input should be a valid list"),
        ("/api/predict", {"smiles": ["C", 1]}, {}, 422, "smiles, entry 1: Input should be a valid"),
        ("/api/predict", {"smile": ["C"]}, {}, 422, "smile: Unexpected"),
        ("/api/predict", {"smiles": ["C"], "names": []}, {}, 422, "names must have one entry"),
        ("/api/predict", {"smiles": ["C"] * 51}, {}, 413, "at most 50 rows in one request, got 51"),
        ("/api/predict", b" " * 1_000_001, {}, 413, "at most 1,000,000 bytes"),
        ("/api/predict", b'{"graphs":[{"nodes":[[NaN]],"edges":[]}]}', {}, 422, "finite number"),
        ("/api/explain", {"smiles": ["C"], "target": "x"}, {}, 422, "target 'x' is not predicted"),
        ("/api/explain", {"smiles": ["C"], "forms": ["x"]}, {}, 422, "forms, entry 0: Input"),
        ("/api/explain", {"smiles": ["C"] * 6, "measure": True}, {}, 413, "at most 5 rows"),
        ("/api/read", {"name": "a.pkl", "text": ""}, {}, 422, "must end in .csv, .tsv or .smi"),
        ("/api/read", {"name": "a.csv", "text": 'smiles\n"C'}, {}, 422, "a.csv, line 2: une"),
        ("/api/read", {"name": "a.csv", "text": "smiles\n" + "C\n" * 51}, {}, 422, "than 50 rows"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_one_line_of_json(
    server: Server, path: str, body: Any, headers: dict[str, str], status: int, said: str
) -> None:
    found, answer = server.ask(path, body, headers=headers)
    assert found == status
    assert list(answer) == ["error"]
    assert said in answer["error"]
    assert "\n" not in answer["error"]
    assert "Traceback" not in answer["error"]
    assert len(answer["error"]) < 400
    assert server.ask("/health")[0] == 200


def test_characters_that_are_none_come_back_as_an_error_of_their_row(server: Server) -> None:
    body = b'{"smiles": ["\\ud800", "C\\u0000", "C\\nC", "CCO"], "names": ["\\udfff", "", "", ""]}'
    status, answer = server.ask("/api/predict", body)
    assert status == 200
    assert [bool(row["error"]) for row in answer["predictions"]] == [True, True, True, False]


def test_large_molecules_and_complexes_are_refused_row_by_row(server: Server) -> None:
    cage = "C12C3C4C1C5C2C3C45"
    many = "[H]C" * 300
    status, answer = server.ask("/api/predict", {"smiles": ["C" * 501, cage, "C" * 900_000, many]})
    assert status == 200
    errors = [row["error"] for row in answer["predictions"]]
    assert errors[0] == "more than 500 atoms, the limit of this server"
    assert errors[1] == ""
    assert errors[2].startswith("more than 200,000 characters")
    dense = {
        "nodes": [[0.0] * Featuriser().widths[0]] * 60,
        "edges": [[u, v] for u in range(60) for v in range(u)],
        "edge_features": [[0.0] * Featuriser().widths[1]] * 1770,
    }
    single = {"nodes": dense["nodes"][:1], "edges": [], "edge_features": []}
    status, answer = server.ask("/api/predict", {"graphs": [dense, single]})
    assert status == 200
    reason, good = (row["error"] for row in answer["predictions"])
    assert reason.endswith("lower pairs of edges, more than 50,000, the limit of this server")
    assert good == ""


def test_a_request_of_which_no_row_is_within_the_limits_is_refused(server: Server) -> None:
    status, answer = server.ask("/api/predict", {"smiles": ["C" * 5000, "C" * 10_001]})
    assert status == 413
    assert answer["error"] == "more than 500 atoms, the limit of this server"
    assert [row["error"] for row in answer["predictions"]] == [
        answer["error"], "more than 10,000 atoms, the limit of this server",
    ]  # fmt: skip
    assert server.ask("/api/explain", {"smiles": ["C" * 5000]})[0] == 413
    assert server.ask("/api/predict", {"smiles": ["C" * 5000, "C"]})[0] == 200
    assert server.ask("/api/predict", {"smiles": ["C1CC"]})[0] == 200


def test_files_are_read_by_the_rules_of_the_command(server: Server) -> None:
    text = "\ufeffid;smiles;Name\n1;CCO;ethanol\n\n2;c1ccccc1;benzene\n"
    body = {"name": "mine.CSV", "text": text, "smiles_column": "smiles"}
    status, answer = server.ask("/api/read", body)
    assert status == 200
    assert answer["rows"] == [
        {"line": 2, "smiles": "CCO", "name": "ethanol"},
        {"line": 4, "smiles": "c1ccccc1", "name": "benzene"},
    ]
    status, answer = server.ask("/api/read", {"name": "a.smi", "text": "CCO ethyl alcohol\nC"})
    assert [row["name"] for row in answer["rows"]] == ["ethyl alcohol", ""]


def test_a_slow_body_and_slow_headers_are_answered_with_408(server: Server) -> None:
    head = b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    slow = server.raw(head + b"Content-Length: 100\r\n\r\n{")
    assert slow.startswith(b"HTTP/1.1 408 ")
    assert b'{"error": "the body did not arrive within 1.5 s"}' in slow
    assert server.raw(b"GET / HT").startswith(b"HTTP/1.1 408 ")
    assert server.raw(b"").startswith(b"HTTP/1.1 408 ")
    foreign = server.raw(b"GET / HTTP/1.0\r\n\r\n")
    assert foreign.startswith(b"HTTP/1.1 421 ")


def test_work_that_takes_too_long_is_ended_and_the_next_request_is_answered(
    server: Server,
) -> None:
    rings = "C1CC2CCC1CC2" + "C1CC2CCC1CC2" * 30
    long = {"smiles": [rings + "C" * n for n in range(50)]}
    answers: list[tuple[int, Any]] = []
    asking = threading.Thread(
        target=lambda: answers.append(server.ask("/api/explain", {**long, "forms": ["picture"]}))
    )
    asking.start()
    asking.join(60)
    status, answer = answers[0]
    assert status == 504
    assert answer["error"].startswith("this took longer than 8 s")
    for _ in range(100):  # while the model is loaded again, requests may be refused
        status, answer = server.ask("/api/predict", {"smiles": ["CCO"]})
        if status != 503:
            break
    assert status == 200


def test_pages_have_a_strict_policy_and_no_code_in_them(server: Server) -> None:
    for path in ("/", "/docs"):
        status, text = server.ask(path)
        assert status == 200
        policy = server.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'; script-src 'self'" in policy
        assert "http-equiv" not in text
        assert "<style" not in text
        assert " style=" not in text
        assert " on" not in text.replace(" one", "").replace(" only", "").split("<body")[0]
        for script in text.split("<script")[1:]:
            assert script.startswith((' src="/assets/', ' type="application/json"'))
        assert "//" not in text.replace('"http://www.w3.org', "").split("application/json")[0]
    for name in ("app.js", "app.css", "draw.js", "report.css"):
        assert server.ask(f"/assets/{name}")[0] == 200
    status, described = server.ask("/openapi.json")
    assert set(described["paths"]) == {
        "/api/predict", "/api/explain", "/api/read", "/api/model", "/health",
    }  # fmt: skip
    for path in described["paths"]:
        assert path in server.ask("/docs")[1]


def test_the_examples_of_the_description_can_be_sent(server: Server) -> None:
    described = server.ask("/openapi.json")[1]
    for path, methods in described["paths"].items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        if content:
            name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
            for example in described["components"]["schemas"][name]["examples"]:
                status, answer = server.ask(path, example)
                assert status == 200, answer


def test_the_model_says_what_it_is(server: Server) -> None:
    status, about = server.ask("/api/model")
    assert status == 200
    assert about["columns"] == ["active_prediction", "active_probability", "active_spread"]
    assert about["members"] == 2
    assert about["limits"]["atoms"] == 500
    status, health = server.ask("/health")
    assert health["status"] == "ok"
    assert health["model"] == "two-members"


def test_a_full_line_is_refused_at_once(folder: Path) -> None:
    running = started(str(folder), "--limits.waiting", "1")
    try:
        body = {"smiles": ["CCCCCCCCO" * 20] * 100}
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda: answers.append(running.ask("/api/explain", body)[0]))
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        while threads[0].is_alive() and 503 not in answers:
            time.sleep(0.05)
        assert 503 in answers
        # Ctrl-C with work in progress: every request is answered, and the end is one line.
        running.process.send_signal(signal.SIGINT)
        for thread in threads:
            thread.join(30)
        out, err = running.process.communicate(timeout=30)
    finally:
        running.process.kill()
    assert running.process.returncode == 130
    assert err.splitlines()[1:] == ["cell-attention: interrupted"]
    assert out == ""
    assert sorted(set(answers)) in ([200, 503], [503])


def test_ctrl_c_while_the_model_is_loaded_is_one_line(folder: Path) -> None:
    words = [sys.executable, "-m", "cell_attention", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heard
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("note: loading ")
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does: all processes hear it
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "cell-attention: interrupted\n"


def test_an_answer_that_is_too_large_is_refused(folder: Path) -> None:
    from cell_attention.app import worker

    class Pipe:
        """Asks once, and keeps what is answered."""

        sent: ClassVar[list[bytes]] = []
        jobs: ClassVar[list[bytes]] = [
            json.dumps([{"verb": "predict", "smiles": ["C"] * 50, "names": None, "graphs": None}])
            .encode()
        ]  # fmt: skip

        def recv_bytes(self) -> bytes:
            if not self.jobs:
                raise EOFError
            return self.jobs.pop()

        def send_bytes(self, data: bytes) -> None:
            self.sent.append(data)

    handler = signal.getsignal(signal.SIGINT)
    try:
        worker.work(Pipe(), folder=str(folder), limits=ServeLimits(answer=1000), plugins=())  # type: ignore[arg-type]
    finally:
        signal.signal(signal.SIGINT, handler)
    assert Pipe.sent[0].startswith(b'200{"model":"two-members"')
    assert Pipe.sent[1] == b'413{"error":"the answer is too large; send fewer rows"}'


def test_a_server_without_a_model_says_how_to_make_one() -> None:
    running = started()
    try:
        status, text = running.ask("/")
        assert status == 200
        assert "cell-attention demo" in text
        status, answer = running.ask("/api/predict", {"smiles": ["C"]})
        assert status == 404
        assert answer["error"].startswith("there is no model")
        assert running.ask("/docs")[0] == 200
    finally:
        running.process.send_signal(signal.SIGINT)
        _, err = running.process.communicate(timeout=30)
    assert running.process.returncode == 130
    assert err == "cell-attention: interrupted\n"


def test_a_model_trained_on_mutag_serves_smiles_and_its_graphs(tmp_path: Path) -> None:
    from cell_attention.data.sources import read_source

    record = read_source("MUTAG").featuriser
    mutag = load_dataset("MUTAG")
    made((7, 4, 2), featuriser=record).save_pretrained(tmp_path / "mutag")
    running = started(str(tmp_path / "mutag"))
    try:
        status, answer = running.ask("/api/predict", {"smiles": SMILES[:2]})
        assert status == 200
        assert answer["predictions"][0]["probability"] > 0
        assert answer["predictions"][1]["prediction"] is None
        graph = mutag[:1]
        assert graph.edge_features is not None
        given = {
            "nodes": graph.node_features.tolist(),
            "edges": graph.edge_nodes.T.tolist(),
            "edge_features": graph.edge_features.tolist(),
        }
        status, answer = running.ask("/api/explain", {"graphs": [given], "forms": ["picture"]})
        assert status == 200
        assert answer["predictions"][0]["picture"].startswith("<svg")
    finally:
        running.process.kill()
        running.process.communicate()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere is not a MODEL_DIR: config.json is missing"),
        (["--port", "70000"], "port must lie in 0…65535, got 70000"),
        (["--workers", "0"], "workers must be at least 1, got 0"),
        (["--host", "256.1.1.1", "--port", "0"], "'256.1.1.1' is not an address"),
        (["--host", "192.0.2.7", "--port", "0"], "192.0.2.7 cannot be used"),
        (["--limits.rows", "0"], "limits.rows must be positive, got 0"),
    ],
)
def test_bad_words_are_one_line_and_exit_code_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_words(["serve", "--port", "0", *words]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("cell-attention: ")
    assert said in last


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run_words(["serve", "--port", str(port)]) == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in capsys.readouterr().err


def test_without_the_extra_one_line_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert run_words(["serve"]) == 2
    assert "pip install 'cell-attention[serve]'" in capsys.readouterr().err


def test_other_machines_are_warned_of_and_their_names_must_be_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from cell_attention.app.guard import LOCAL, Guard

    async def nothing(*_: Any) -> None:
        return None

    closed, opened = (
        Guard(nothing, names, ServeLimits(), posts=())
        for names in (LOCAL, (*LOCAL, "0.0.0.0", "lab"))  # noqa: S104
    )
    for host in ("localhost", "LOCALHOST:80", "127.0.0.1:8765", "[::1]:80", "[::1]"):
        assert closed._is_known(host)
        assert opened._is_known(host)
    for host in ("lab:80", "192.168.1.7", "[fe80::1]:80"):
        assert opened._is_known(host)
        assert not closed._is_known(host)
    for host in (
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "[",
        "::1",
    ):
        assert not opened._is_known(host) or host == "::1"
        assert not closed._is_known(host)
    assert run_words(["serve", "--host", "192.0.2.7", "--port", "0"]) == 2
    assert "lets other machines use this server" in capsys.readouterr().err


def test_limits_must_be_positive() -> None:
    with pytest.raises(InputError, match=r"limits.body must be positive, got -1"):
        ServeLimits(body=-1)


def test_the_page_is_opened_when_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cell_attention.cli.serve import Serve

    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    for asked in (False, True):
        Serve(open=asked)._announce("http://127.0.0.1:1/")
    assert opened == ["http://127.0.0.1:1/"]
    assert "at http://127.0.0.1:1/ (Ctrl-C ends it)" in capsys.readouterr().out
