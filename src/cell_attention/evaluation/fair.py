"""The fair protocol (Errica et al. 2020): inner validation graphs choose the configuration and the
epoch; the held-out graphs are used only for the final score.

Deviation: Errica et al. draw a new inner split for every rerun; here all three use the fold's own,
which a splits file may define.
"""

from collections.abc import Callable, Sequence
from typing import Any

from cell_attention.evaluation.columns import Scores, mean_columns
from cell_attention.evaluation.jobs import RERUNS, Job
from cell_attention.evaluation.result import FairChoice
from cell_attention.models.settings import Settings

Records = Callable[[Sequence[Job]], list[dict[str, Any]]]
"""A function that runs the jobs that are not finished, and returns the records of all."""


def is_fair(settings: Settings) -> bool:
    """Whether the fair protocol was requested, and the model has epochs to choose from."""
    return settings.protocol == "fair" and settings.epochs is not None


def choice_jobs(settings: Settings, fold: int) -> list[Job]:
    """Return one training per configuration of the grid; none without a grid."""
    return [Job(fold, "choice", number, number) for number in range(len(settings.grid))]


def rerun_jobs(fold: int, configuration: int | None) -> list[Job]:
    """Return the trainings that are scored on the held-out graphs."""
    return [Job(fold, "rerun", number, configuration) for number in range(RERUNS)]


def choices(settings: Settings, folds: int, records_of: Records) -> tuple[FairChoice, ...]:
    """Choose a configuration in every fold, rerun it, and return the results."""
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


def column_scores(folds: int, records_of: Records) -> list[Scores]:
    """Return the mean scores of every target column in every fold, of reruns that are finished."""
    reruns = [records_of(rerun_jobs(fold, None)) for fold in range(folds)]
    return [mean_columns([record.get("columns", []) for record in of]) for of in reruns]


def _rank(record: dict[str, Any]) -> tuple[float, float]:
    """Return the inner validation score at the best epoch, and the negative loss for ties."""
    place = record["epoch"] - 1
    return record["score"][place], -record["watched_loss"][place]
