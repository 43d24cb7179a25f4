"""The fair protocol (Errica et al. 2020): inner validation chooses, held-out graphs come last.

Deviation: Errica et al. draw a new inner division for every rerun; here all three keep the fold's
own, which a splits file may state.
"""

from collections.abc import Callable, Sequence
from typing import Any

from cell_attention.evaluation.jobs import RERUNS, Part
from cell_attention.evaluation.result import Choice
from cell_attention.models.registry import MODELS
from cell_attention.training.settings import Question

Done = Callable[[Sequence[Part]], list[dict[str, Any]]]
"""Gives the records of parts, after those that were missing have been done."""


def is_fair(question: Question) -> bool:
    """Whether the protocol is asked for, and there is anything for it to choose."""
    return question.protocol == "fair" and MODELS[question.model].epochs


def choice_parts(question: Question, fold: int) -> list[Part]:
    """One training per configuration; a single configuration needs no choice."""
    return [Part(fold, "choice", number, number) for number in range(len(question.grid))]


def rerun_parts(fold: int, configuration: int | None) -> list[Part]:
    """The trainings that meet the held-out graphs."""
    return [Part(fold, "rerun", number, configuration) for number in range(RERUNS)]


def choices(question: Question, folds: int, done: Done) -> tuple[Choice, ...]:
    """What was chosen in every fold, and what it came to."""
    ranks = [
        [_rank(record) for record in done(choice_parts(question, fold))] for fold in range(folds)
    ]
    best = [of.index(max(of)) if of else None for of in ranks]
    done([part for fold in range(folds) for part in rerun_parts(fold, best[fold])])
    made = []
    for fold in range(folds):
        reruns = done(rerun_parts(fold, best[fold]))
        made.append(
            Choice(
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
