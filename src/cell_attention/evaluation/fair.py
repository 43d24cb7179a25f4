"""The fair protocol (Errica et al. 2020): inner validation chooses, held-out graphs come last.

Deviation: Errica et al. draw a new inner division for every rerun; here all three keep the fold's
own, which a splits file may state.
"""

from collections.abc import Callable, Sequence
from typing import Any

from cell_attention.evaluation.jobs import RERUNS, Job
from cell_attention.evaluation.result import FairChoice
from cell_attention.models.registry import find_model
from cell_attention.models.settings import Settings

Records = Callable[[Sequence[Job]], list[dict[str, Any]]]
"""The records of jobs, after those that were missing have been done."""


def is_fair(settings: Settings) -> bool:
    """Whether the protocol is asked for, and there is anything for it to choose."""
    return settings.protocol == "fair" and find_model(settings.model).epochs


def choice_jobs(settings: Settings, fold: int) -> list[Job]:
    """One training per configuration; a single configuration needs no choice."""
    return [Job(fold, "choice", number, number) for number in range(len(settings.grid))]


def rerun_jobs(fold: int, configuration: int | None) -> list[Job]:
    """The trainings that meet the held-out graphs."""
    return [Job(fold, "rerun", number, configuration) for number in range(RERUNS)]


def choices(settings: Settings, folds: int, records_of: Records) -> tuple[FairChoice, ...]:
    """What was chosen in every fold, and what it came to."""
    ranks = [
        [_rank(record) for record in records_of(choice_jobs(settings, fold))]
        for fold in range(folds)
    ]
    best = [of.index(max(of)) if of else None for of in ranks]
    records_of([job for fold in range(folds) for job in rerun_jobs(fold, best[fold])])
    made = []
    for fold in range(folds):
        reruns = records_of(rerun_jobs(fold, best[fold]))
        made.append(
            FairChoice(
                best[fold] or 0,
                tuple(score for score, _ in ranks[fold]),
                tuple(record["epoch"] for record in reruns),
                tuple(record["test"] for record in reruns),
            )
        )
    return tuple(made)


def _rank(record: dict[str, Any]) -> tuple[float, float]:
    """Score on the inner validation graphs at the best epoch; the loss decides between equals."""
    place = record["epoch"] - 1
    return record["score"][place], -record["watched_loss"][place]
