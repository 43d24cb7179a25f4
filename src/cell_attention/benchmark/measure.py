"""Times that can be compared: the best of several calls, and a verdict against a stated target."""

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
    """What is asked for, in words; empty where nothing is."""
    met: bool | None = None
    """Whether the target is met; None where there is none or where this could not be measured."""
    detail: str = ""


def best_seconds(work: Callable[[], object], repeats: int = 5, warm_up: bool = True) -> float:
    """The shortest of `repeats` calls: noise of a shared machine only ever adds."""
    if warm_up:
        work()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def best_seconds_in_turn(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The shortest call of each, all of them in every round: what slows one slows the others."""
    best = [best_seconds(work, repeats=1) for work in works]
    for _ in range(rounds):
        for place, work in enumerate(works):
            best[place] = min(best[place], best_seconds(work, repeats=1, warm_up=False))
    return best
