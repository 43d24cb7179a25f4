"""Measurements: the shortest of several calls, and whether a target is met."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """One line of a benchmark."""

    name: str
    value: float
    unit: str
    target: str = ""
    """The target in words; empty if there is none."""
    met: bool | None = None
    """Whether the target is met; None if there is none or if it could not be measured."""
    detail: str = ""


def best_seconds(work: Callable[[], object], repeats: int = 5, warm_up: bool = True) -> float:
    """Return the shortest of `repeats` calls: noise of a shared machine only adds time."""
    if warm_up:
        work()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def best_seconds_in_turn(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Return the shortest call of each; all are called in every round, so that noise hits all."""
    best = [best_seconds(work, repeats=1) for work in works]
    for _ in range(rounds):
        for place, work in enumerate(works):
            best[place] = min(best[place], best_seconds(work, repeats=1, warm_up=False))
    return best
