"""Requests that wait for the server's worker: predictions are done as one batch."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cell_attention.app.limits import ServeLimits

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from cell_attention.app.pool import SMALL, TOGETHER, Answer, Pool
from cell_attention.benchmark.serving import MOLECULES, Load, ask_all
from serving import Server, started, two_members

LIMITS = ServeLimits()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = started(str(two_members(tmp_path_factory.mktemp("waiting"))))
    yield running
    running.end()


def worker_of(server: Server) -> int:
    """The process that holds the model."""
    (found,) = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()[-1:]  # fmt: skip # noqa: E501
    return int(found)


class Fake:
    """A worker that notes what it is asked, and dies over some molecules."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.alive, self.ending = True, False

    def ask(self, jobs: Sequence[Any]) -> list[Answer]:
        texts = ["".join(job["smiles"] or "?") for job in jobs]
        self.asked.append(texts)
        self.alive = "bad" not in texts
        status = 200 if self.alive else 504
        return [Answer(status, text.encode()) for text in texts]

    def start(self) -> None:
        self.alive = True


def job(*smiles: str, verb: str = "predict") -> dict[str, Any]:
    return {"verb": verb, "smiles": smiles or None}


def asked_at_once(*jobs: dict[str, Any]) -> tuple[Fake, list[Answer]]:
    """Ask a pool with one worker for several jobs at the same time."""
    pool, fake = Pool(Path(), LIMITS, 1), Fake()
    pool._free = [fake]  # type: ignore[list-item]

    async def ask() -> list[Answer]:
        return list(await asyncio.gather(*map(pool.ask, jobs)))

    found = asyncio.run(ask())
    assert pool.busy == 0
    assert pool._free == [fake]
    return fake, found


def test_predictions_that_wait_are_one_batch_and_others_go_alone() -> None:
    fake, answers = asked_at_once(
        job("A"), job("B"), job("C", verb="explain"), job("D"), job(), job("E"),
        job(*["F"] * (SMALL + 1)),
    )  # fmt: skip
    assert fake.asked == [["A"], ["B", "D", "E"], ["C"], ["?"], ["F" * (SMALL + 1)]]
    assert [answer.body for answer in answers][:6] == [b"A", b"B", b"C", b"D", b"?", b"E"]


def test_a_batch_has_a_limit() -> None:
    fake, _ = asked_at_once(job("A"), *(job(*["B"] * SMALL) for _ in range(20)))
    sizes = [sum(map(len, texts)) for texts in fake.asked]
    assert sizes == [1, TOGETHER, TOGETHER, 20 * SMALL - 2 * TOGETHER]


def test_one_that_ends_the_process_does_not_take_the_others_with_it() -> None:
    fake, answers = asked_at_once(job("A"), job("B"), job("bad"), job("C"))
    assert fake.asked == [["A"], ["B", "bad", "C"], ["B"], ["bad"], ["C"]]
    assert [answer.status for answer in answers] == [200, 200, 504, 200]


def test_answers_of_requests_that_waited_are_those_of_requests_alone(server: Server) -> None:
    bodies = [{"smiles": [one]} for one in (*MOLECULES, "C1CC", "[He]", "", "C" * 600)]
    bodies += [{"smiles": ["C", "CC"], "names": ["a", "b"]}, {"smiles": []}]
    alone = [server.ask("/api/predict", body) for body in bodies]
    assert [status for status, _ in alone] == [*[200] * 7, 413, 200, 422]
    os.kill(worker_of(server), signal.SIGSTOP)  # so that all of them wait
    with ThreadPoolExecutor(4 * len(bodies)) as pool:
        together = [pool.submit(server.ask, "/api/predict", body) for body in 4 * bodies]
        while server.ask("/health")[1]["busy"] < 4 * (len(bodies) - 1):
            pass
        os.kill(worker_of(server), signal.SIGCONT)
        for (status, answer), one in zip(4 * alone, together, strict=True):
            found, ours = one.result()
            assert found == status
            for row, other in zip(ours.get("predictions", []), answer.get("predictions", []), strict=True):  # fmt: skip # noqa: E501
                assert row.keys() == other.keys()
                for key, value in other.items():
                    if isinstance(value, float):  # the shape of a batch may change the last digit
                        assert row[key] == pytest.approx(value, rel=2e-5, abs=1e-6)
                    else:
                        assert row[key] == value
            assert ours.get("error") == answer.get("error")


def test_sixty_four_clients_are_served_without_an_error(server: Server) -> None:
    load = Load()
    asked = [("/api/predict", {"smiles": [one]}, 200) for one in MOLECULES]
    ask_all(server.port, asked, load=load, most=640)
    assert load.errors == 0
    assert len(load.seconds) == 640


def test_a_fault_in_a_batch_is_found_by_doing_its_jobs_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cell_attention.app import jobs, worker

    def perform(model: Any, job: Any, limits: Any) -> tuple[int, Any]:
        if "bad" in job["smiles"]:
            raise ValueError("secret")
        rows = [{"smiles": one, "name": "", "error": ""} for one in job["smiles"]]
        return 200, {"predictions": rows}

    monkeypatch.setattr(jobs, "perform", perform)
    three = [{**job(*texts), "names": None} for texts in (("A", "B"), ("bad",), ("C",))]
    found = worker._answers(None, three, LIMITS)
    assert [status for status, _ in found] == [200, 500, 200]
    assert json.dumps(found[1][1]) == '{"error": "this request failed (ValueError)"}'
    joined = worker._answers(None, [three[0], three[2]], LIMITS)
    assert [[row["smiles"] for row in said["predictions"]] for _, said in joined] == [["A", "B"], ["C"]]  # fmt: skip # noqa: E501
