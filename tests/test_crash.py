"""Kills at any moment: the same command goes on, and ends with the bytes of a whole run.

`make test` kills three times per engine, `make test-crash` twenty times (`--kills`).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cell_attention.cli.entry import run as run_words
from learning import complaints

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc"),
    pytest.mark.long,
]

WORDS = (
    "crossval", "MUTAG", "--folds", "3", "--epochs", "60", "--hidden", "4", "4",
    "--heads", "1", "1", "--checkpoint-seconds", "0.05", "--quiet",
)  # fmt: skip
KEPT = ("result.json", "fold-00.json", "fold-01.json", "fold-02.json", "run.json", "curves.svg")


def started(out: Path, engine: str) -> "subprocess.Popen[bytes]":
    # A shell that starts tests in the background has them ignore Ctrl-C, and so their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(
        [
            sys.executable, "-m", "cell_attention", *WORDS, "--jobs", "2", "--out", str(out),
            "--engine", engine,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def finished(out: Path, engine: str) -> None:
    process = started(out, engine)
    said = process.communicate(timeout=300)
    assert process.returncode == 0, said


def below(pid: int) -> list[int]:
    """Processes that `pid` started, and those that they did."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def running(pid: int) -> bool:
    """Whether a process is there and not a mere entry that nobody has collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def workers(pid: int, engine: str) -> list[int]:
    """The processes that train."""
    found = []
    for child in below(pid):
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if words.startswith(b"ray::fold") if engine == "ray" else b"spawn_main" in words:
            found.append(child)
    return found


def killed(pid: int) -> None:
    """End a process, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def writer(out: Path, process: "subprocess.Popen[bytes]") -> int | None:
    """A process in the middle of a write: the name of the unfinished file tells which."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        parts = [name for name in os.listdir(out) if name.endswith(".part")]  # noqa: PTH208 - quick
        if parts:
            return int(parts[0].split(".")[-2])
    return None


def begun(out: Path, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a fold is on its way."""
    deadline = time.monotonic() + 120
    before = time.time()
    while process.poll() is None and time.monotonic() < deadline:
        for path in out.glob("fold-*"):
            try:
                if path.stat().st_mtime > before:
                    return
            except OSError:
                continue
        time.sleep(0.02)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run that nobody kills, in this process."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert run_words([*WORDS, "--jobs", "1", "--out", str(out)]) == 0
    return {name: (out / name).read_bytes() for name in KEPT}


@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(
    engine: str, tmp_path: Path, pytestconfig: pytest.Config, expected: dict[str, bytes]
) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    random, out, hits = np.random.default_rng(0), tmp_path / "cut", 0
    ways = ("parent", "worker", "write")
    while hits < pytestconfig.getoption("kills"):
        process = started(out, engine)
        begun(out, process)
        time.sleep(float(random.uniform(0.0, 0.5)))
        way = ways[hits % 3]
        victim = process.pid
        if way == "worker":
            victim = (workers(process.pid, engine) or [process.pid])[-1]
        elif way == "write":
            victim = writer(out, process) or process.pid
        if process.poll() is None:
            killed(victim)
            hits += 1
            if victim != process.pid:  # the parent tries again; then it is killed too
                time.sleep(float(random.uniform(0.0, 1.0)))
        killed(process.pid)
        _, said = process.communicate()
        if process.returncode == 0:
            assert {name: (out / name).read_bytes() for name in KEPT} == expected
            shutil.rmtree(out)
        else:
            assert process.returncode == -signal.SIGKILL, said
    finished(out, engine)
    assert {name: (out / name).read_bytes() for name in KEPT} == expected
    assert not list(out.glob(".*.part"))


EVERY_WRITE = """
import os, signal, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from learning import answer
from cell_attention import load_dataset

mutag, root = load_dataset("MUTAG"), Path(sys.argv[2])
fsync, replace = os.fsync, Path.replace


def attempt(out, moment, place):
    # A child that is killed in its write number `place`, before or after the file is in its place.
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == signal.SIGKILL
    count = 0

    def die_at(when):
        nonlocal count
        count += when == moment
        if when == moment and count == place:
            os.kill(os.getpid(), signal.SIGKILL)

    def dying_fsync(handle):
        if moment == "before":
            die_at("before")
        fsync(handle)

    def dying_replace(self, target):
        replace(self, target)
        die_at("after")

    os.fsync, Path.replace = dying_fsync, dying_replace
    answer(out, mutag, jobs=1, epochs=1, checkpoint_seconds=0.0, folds=2, protocol="fair")
    os._exit(0)


answer(root / "warm", mutag, jobs=1, epochs=1)  # what is loaded now is not loaded in every child
assert not attempt(root / "whole", "never", 1)
expected = {p.name: p.read_bytes() for p in (root / "whole").iterdir() if p.name != "timing.json"}
kills = 0
for moment in ("before", "after"):
    place = 1
    while True:
        out = root / f"{moment}-{place}"
        if not attempt(out, moment, place):
            break
        assert not attempt(out, "never", 1)
        found = {p.name: p.read_bytes() for p in out.iterdir() if p.name != "timing.json"}
        assert found == expected, (moment, place, found.keys() ^ expected.keys())
        kills += 1
        place += 1
print(kills)
"""


def test_a_kill_in_any_single_write_costs_nothing(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", EVERY_WRITE, str(Path(__file__).parent), str(tmp_path)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    # run, splits, complexes; a checkpoint and a file of two curves and six reruns, each of one
    # epoch; curves, result, timing
    assert int(ended.stdout) == 2 * (3 + (2 + 6) * (1 + 1) + 3)


@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_ctrl_c_ends_at_once_and_says_how_to_go_on(engine: str, tmp_path: Path) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    process = started(tmp_path / "run", engine)
    begun(tmp_path / "run", process)
    below_it = below(process.pid)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"run the same command to resume" in said
    assert b"Traceback" not in said
    while any(running(pid) for pid in below_it) and time.monotonic() < sent + 30:
        time.sleep(0.1)
    assert not any(running(pid) for pid in below_it)


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    first = started(tmp_path / "run", "processes")
    begun(tmp_path / "run", first)
    second = started(tmp_path / "run", "processes")
    _, said = second.communicate(timeout=60)
    assert second.returncode == 2
    assert b"another cell-attention process is using this folder" in said
    assert len(complaints(said.decode())) == 1
    said = first.communicate(timeout=120)
    assert first.returncode == 0, said
    assert json.loads((tmp_path / "run" / "result.json").read_text())["format"] == 1
