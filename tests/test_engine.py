"""Independent work over processes and over Ray: losses, errors, the same bits everywhere."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cell_attention import CellComplex, load_dataset
from cell_attention.cli.entry import run as run_words
from cell_attention.errors import CellAttentionError, InputError, WorkError
from cell_attention.parallel import engine
from learning import answer, complaints

# Ray's own: not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.long,
]
ENGINES: tuple[engine.Engine, ...] = ("processes", "ray")


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def cluster() -> Any:
    """A local Ray that all tests here share: what a user's own program would have started."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # where workers find this module
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
        object_store_memory=80 * 2**20,
    )  # fmt: skip
    del os.environ["PYTHONPATH"]
    yield ray
    ray.shutdown()


def die(folder: str, times: int, report: engine.Report) -> None:
    """End the process like a kernel that is out of memory, the first `times` times."""
    (Path(folder) / f"{len(list(Path(folder).iterdir()))}").touch()
    if len(list(Path(folder).iterdir())) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    report({"epoch": 1.0})


def refuse(report: engine.Report) -> None:
    raise InputError("no such thing")


def fail(report: engine.Report) -> None:
    raise ZeroDivisionError("by nothing")


def no_space(report: engine.Report) -> None:
    raise OSError(28, "No space left on device")


def idle(report: engine.Report) -> None:
    report({"epoch": 0.0})


def nobody(name: str, numbers: dict[str, float]) -> None:
    pass


@pytest.mark.parametrize("kind", ENGINES)
def test_a_worker_that_dies_is_tried_again_once_and_then_named(
    kind: engine.Engine, tmp_path: Path, cluster: Any
) -> None:
    for times in (0, 1, 2):
        folder = tmp_path / str(times)
        folder.mkdir()
        works = [engine.Work("fold 7", die, (str(folder), times)), engine.Work("other", idle, ())]
        if times < 2:
            engine.run_all(works, 2, nobody, engine=kind)
            assert len(list(folder.iterdir())) == times + 1
        else:
            with pytest.raises(engine.WorkerError, match="fold 7: its process died twice"):
                engine.run_all(works, 2, nobody, engine=kind)


def sleep(seconds: float, report: engine.Report) -> None:
    time.sleep(seconds)


def note_pid(path: str, report: engine.Report) -> None:
    Path(path).write_text(str(os.getpid()))


def test_an_idle_worker_that_dies_is_nobodys_loss(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    works = [engine.Work("short", note_pid, (str(path),)), engine.Work("long", sleep, (3.0,))]
    kills = []

    def kill_the_idle(name: str, numbers: dict[str, float]) -> None:
        if name == "short" and not numbers:
            kills.append(name)
            os.kill(int(path.read_text()), signal.SIGKILL)

    assert engine.run_all(works, 2, kill_the_idle).keys() == {"short", "long"}
    assert kills == ["short"]


def test_work_goes_on_when_the_board_of_messages_dies(cluster: Any) -> None:
    kills = []

    def kill_the_board(name: str, numbers: dict[str, float]) -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes().startswith(b"ray::_Board"):
                    os.kill(int(path.parent.name), signal.SIGKILL)
                    kills.append(name)
            except OSError:
                continue

    works = [engine.Work("short", idle, ()), engine.Work("long", sleep, (3.0,))]
    assert engine.run_all(works, 2, kill_the_board, engine="ray").keys() == {"short", "long"}
    assert kills


@pytest.mark.parametrize("kind", ENGINES)
def test_errors_of_a_worker_reach_the_parent(kind: engine.Engine, cluster: Any) -> None:
    idles = [engine.Work(f"idle {n}", idle, ()) for n in range(2)]
    for function, expected, text in (
        (refuse, InputError, "no such thing"),
        (fail, engine.WorkerError, "bad: ZeroDivisionError: by nothing"),
        (no_space, OSError, "No space left"),
    ):
        with pytest.raises(expected, match=text):
            engine.run_all([*idles, engine.Work("bad", function, ())], 2, nobody, engine=kind)
    assert issubclass(engine.WorkerError, WorkError)
    assert issubclass(WorkError, CellAttentionError)


@pytest.mark.parametrize(("kind", "jobs"), [("processes", 1), ("processes", 2), ("ray", 2)])
def test_every_piece_is_heard_of_and_its_end_too(kind: Any, jobs: int, cluster: Any) -> None:
    heard: list[tuple[str, dict[str, float]]] = []
    works = [engine.Work(f"idle {n}", idle, ()) for n in range(3)]
    places = engine.run_all(works, jobs, lambda name, said: heard.append((name, said)), engine=kind)
    assert places.keys() == {work.name for work in works}
    for work in works:
        assert heard.count((work.name, {})) == 1
    assert engine.run_all([], jobs, nobody, engine=kind) == {}


def test_a_run_gives_the_same_bytes_with_one_process_with_two_and_over_ray(
    mutag: CellComplex, tmp_path: Path, cluster: Any
) -> None:
    ways: dict[str, Any] = {"1": ("processes", 1), "2": ("processes", 2), "ray": ("ray", 0)}
    results = [
        answer(tmp_path / name, mutag, jobs, engine=kind) for name, (kind, jobs) in ways.items()
    ]
    assert results[0] == results[1] == results[2]
    for name in ("fold-00.json", "fold-01.json", "fold-02.json", "curves.svg", "run.json"):
        assert len({(tmp_path / way / name).read_bytes() for way in ways}) == 1
    for way in ways:
        assert not (tmp_path / way / "complexes.safetensors").exists()
        timing = json.loads((tmp_path / way / "timing.json").read_text())
        assert timing["places"].keys() == {"fold 0", "fold 1", "fold 2"}


WORDS = ("crossval", "MUTAG", "--hidden", "4", "4", "--heads", "1", "1", "--json")


def command(out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "cell_attention", *WORDS, "--out", str(out), *more]


def test_two_nodes_share_the_folds_and_losing_one_loses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    few = ("--folds", "4", "--epochs", "120", "--checkpoint-seconds", "0.1")
    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    second = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    out = tmp_path / "cut"
    process = subprocess.Popen(
        command(out, *few, "--engine", "ray"),
        env={**os.environ, "RAY_ADDRESS": cluster.address},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        # Both nodes have finished a fold and are in the middle of another.
        while len(list(out.glob("fold-*.json"))) < 2 or len(list(out.glob("*.checkpoint"))) < 2:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)
        said = process.communicate(timeout=240)
        assert process.returncode == 0, said
        assert json.loads(said[0]) == json.loads((out / "result.json").read_text())
    finally:
        process.kill()
        process.wait()
        cluster.shutdown()
    places = json.loads((out / "timing.json").read_text())["places"]
    assert len(set(places.values())) == 2
    # In this process, which has everything loaded.
    assert run_words([*WORDS, "--out", str(tmp_path / "whole"), *few, "--jobs", "1"]) == 0
    whole, cut = (tmp_path / name / "result.json" for name in ("whole", "cut"))
    assert cut.read_bytes() == whole.read_bytes()


def test_an_address_without_a_cluster_and_a_missing_ray_are_one_line(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    few = command(tmp_path / "run", "--folds", "2", "--epochs", "1", "--engine", "ray")
    deaf = socket.create_server(("127.0.0.1", 0))  # answers, but is not Ray
    port = deaf.getsockname()[1]
    hidden = tmp_path / "hidden"
    (hidden / "ray").mkdir(parents=True)
    (hidden / "ray" / "__init__.py").write_text("raise ImportError('no ray here')")
    for variable, code, message in (
        ({"PYTHONPATH": str(hidden)}, 2, "pip install 'cell-attention[ray]'"),
        ({"RAY_ADDRESS": "127.0.0.1:1"}, 1, "RAY_ADDRESS 127.0.0.1:1: no connection"),
        ({"RAY_ADDRESS": f"127.0.0.1:{port}"}, 1, f"RAY_ADDRESS 127.0.0.1:{port}: no connection"),
        (
            {"RAY_ADDRESS": "ray://a:1"},
            2,
            "RAY_ADDRESS must have the form HOST:PORT, got ray://a:1",
        ),
    ):
        ended = subprocess.run(
            few, env={**os.environ, **variable}, capture_output=True, text=True, timeout=120
        )
        assert ended.returncode == code, ended.stderr
        assert message in ended.stderr
        assert len(complaints(ended.stderr)) == 1
