"""Cross-validation: all folds with the same number of epochs, read by every protocol at once."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from cell_attention._files import write_whole
from cell_attention.errors import DataError
from cell_attention.learn import engine as engines
from cell_attention.learn.baselines import WITHOUT_EPOCHS
from cell_attention.learn.curves import draw_curves
from cell_attention.learn.parts import RERUNS, Part, run_part
from cell_attention.learn.protocols import Outcome, one_number, paper_protocol, per_fold_best
from cell_attention.learn.runs import Question, Run, read_object
from cell_attention.learn.tasks import task_of
from cell_attention.learn.training import Training
from cell_attention.learn.twins import signatures, with_twin, with_twin_in
from cell_attention.topology.complex import CellComplex

PROTOCOLS = {
    "paper": "best mean epoch (paper)",
    "per_fold_best": "each fold's best epoch",
    "fair": "fair (inner validation)",
}
CHECKPOINT_SECONDS = 10.0
"""How much work a kill may cost, at most, unless the caller says otherwise."""


Done = Callable[[Sequence[Part]], list[dict[str, Any]]]
"""Gives the records of parts, after those that were missing have been done."""


@dataclass(frozen=True)
class Leakage:
    """Graphs that 1-WL with node labels cannot tell from another one."""

    graphs: int
    with_twin: int
    held_out_with_twin_in_training: int
    """Summed over the folds."""

    def sentence(self) -> str:
        """For people."""
        return (
            f"Of {self.graphs} graphs, {self.with_twin} have a twin that 1-WL cannot tell from "
            f"them; {self.held_out_with_twin_in_training} held-out ones have it in training."
        )


@dataclass(frozen=True)
class Choice:
    """What the fair protocol did in one fold."""

    configuration: int
    """Of the grid, counted from 0."""
    validation: tuple[float, ...]
    """Best score on the inner validation graphs, of every configuration; empty without a grid."""
    epochs: tuple[int, ...]
    """Chosen in every rerun."""
    tests: tuple[float, ...]
    """Score on the held-out graphs, of every rerun."""


@dataclass(frozen=True)
class Result:
    """What a cross-validation came to."""

    score: str
    """What the numbers are; higher is better."""
    protocols: dict[str, Outcome | None]
    """paper, per_fold_best, fair; None where one was not run."""
    choices: tuple[Choice, ...]
    """One per fold where the fair protocol was run."""
    majority: float | None
    """Percent of the graphs in the largest class, where there are classes."""
    leakage: Leakage

    def rows(self) -> list[tuple[str, str, str]]:
        """(protocol, result, epoch) for people; a single row where there are no epochs."""
        paper = self.protocols["paper"]
        if paper is not None and paper.epoch is None:
            return [("no epochs: one number", paper.text(self.score), "none")]
        found = []
        for key, name in PROTOCOLS.items():
            outcome = self.protocols[key]
            if outcome is None:
                found.append((name, "not run", ""))
            else:
                epoch = "its own" if outcome.epoch is None else str(outcome.epoch)
                found.append((name, outcome.text(self.score), epoch))
        return found


def crossvalidate(
    run: Run,
    complexes: CellComplex,
    jobs: int = 0,
    watch: engines.Watch = lambda name, numbers: None,
    engine: engines.Engine = "processes",
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Result:
    """Do the parts that are not finished yet, then read all of them."""
    question = run.question()
    digest, started = question.digest(), time.monotonic()
    places: dict[str, str] = {}

    def done(parts: Sequence[Part]) -> list[dict[str, Any]]:
        missing = [part for part in parts if run.finished(part.stem, digest) is None]
        if missing and not run.complexes.is_file():
            complexes.save(run.complexes)
        works = [
            engines.Work(part.name, run_part, (str(run.folder), part, checkpoint_seconds))
            for part in missing
        ]
        places.update(engines.run_all(works, jobs, watch, engine))
        records = [run.finished(part.stem, digest) for part in parts]
        for part, record in zip(parts, records, strict=True):
            if record is None:
                raise DataError(f"{run.folder}: {part.name} has left no file")
        return [record for record in records if record is not None]

    run.complexes.unlink(missing_ok=True)  # of a run that was killed
    curves, choices = _all_parts(question, len(run.folds()), done)
    result = _result(complexes, curves, choices, run)
    paper = result.protocols["paper"]
    if paper is not None and paper.epoch is not None:
        title = f"{question.source}, {question.model}, {question.splits}"
        draw_curves(run.folder / "curves.svg", title, result.score, curves, paper, result.majority)
    write_whole(run.result, json.dumps(_record(result, question), indent=2) + "\n")
    if places:
        spent = round(time.monotonic() - started, 1)
        timing = {"seconds": spent, "jobs": jobs, "engine": engine, "places": places}
        write_whole(run.folder / "timing.json", json.dumps(timing, indent=2) + "\n")
    run.tidy()
    return result


def read_result(path: Path) -> Result:
    """What a `result.json` says."""
    record = read_object(path)
    try:
        return Result(
            str(record["score"]),
            {
                name: None if entry is None else Outcome(**entry)
                for name, entry in record["protocols"].items()
            },
            tuple(Choice(**entry) for entry in record["choices"]),
            record["majority"],
            Leakage(**record["leakage"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not the result of a run ({error!r})") from None


def missing_parts(run: Run) -> int:
    """How many trainings there are left to do."""
    question = run.question()
    digest, folds = question.digest(), len(run.folds())
    stems = [Part(fold).stem for fold in range(folds)]
    if _is_fair(question):
        for fold in range(folds):
            stems += [Part(fold, "choice", c).stem for c in range(len(question.grid))]
            stems += [Part(fold, "rerun", r).stem for r in range(RERUNS)]
    return sum(run.finished(stem, digest) is None for stem in stems)


def _is_fair(question: Question) -> bool:
    """Whether there is anything for the fair protocol to choose."""
    return question.protocol == "fair" and question.model not in WITHOUT_EPOCHS


def prepare(question: Question, complexes: CellComplex) -> None:
    """One small step, so that kernels are compiled once, here, and not in every process."""
    if question.model in WITHOUT_EPOCHS:
        return
    largest = complexes.edge_complex.bincount(minlength=len(complexes)).topk(min(2, len(complexes)))
    few = complexes[largest.indices]
    every = range(len(few))
    task = task_of(few, torch.arange(len(few)))
    Training(few, every, every, task, question.network, question.training, seed=(0,)).epoch()


def _all_parts(
    question: Question, folds: int, done: Done
) -> tuple[list[list[float]], tuple[Choice, ...]]:
    """The curve of every fold; what the fair protocol chose in each, where it was asked for."""
    curve_parts = [Part(fold) for fold in range(folds)]
    if not _is_fair(question):
        return [record["score"] for record in done(curve_parts)], ()
    grid = range(len(question.grid))  # a single configuration needs no choice
    choice_parts = [Part(fold, "choice", c, c) for fold in range(folds) for c in grid]
    records = done([*curve_parts, *choice_parts])
    curves, tried = [record["score"] for record in records[:folds]], records[folds:]
    best: list[int | None] = [None] * folds
    validation: list[tuple[float, ...]] = [()] * folds
    for fold in range(folds if grid else 0):
        ranks = [_rank(record) for record in tried[fold * len(grid) : (fold + 1) * len(grid)]]
        best[fold] = ranks.index(max(ranks))
        validation[fold] = tuple(score for score, _ in ranks)
    rerun_parts = [
        Part(fold, "rerun", r, best[fold]) for fold in range(folds) for r in range(RERUNS)
    ]
    tested = done(rerun_parts)
    choices = []
    for fold in range(folds):
        reruns = tested[fold * RERUNS : (fold + 1) * RERUNS]
        epochs = tuple(record["epoch"] for record in reruns)
        tests = tuple(record["test"] for record in reruns)
        choices.append(Choice(best[fold] or 0, validation[fold], epochs, tests))
    return curves, tuple(choices)


def _rank(record: dict[str, Any]) -> tuple[float, float]:
    """Score on the inner validation graphs at the best epoch; the loss decides between equals."""
    place = record["epoch"] - 1
    return record["score"][place], -record["watched_loss"][place]


def _result(
    complexes: CellComplex,
    curves: Sequence[Sequence[float]],
    choices: tuple[Choice, ...],
    run: Run,
) -> Result:
    folds, marks = run.folds(), signatures(complexes)
    crossing = sum(with_twin_in(marks, fold.held_out, fold.rest) for fold in folds)
    task = task_of(complexes, torch.arange(len(complexes)))
    majority = None
    if task.kind == "classes" and complexes.targets is not None:
        majority = 100.0 * float(complexes.targets.bincount().max()) / len(complexes)
    protocols: dict[str, Outcome | None]
    if run.question().model in WITHOUT_EPOCHS:
        protocols = dict.fromkeys(PROTOCOLS, one_number([curve[0] for curve in curves]))
    else:
        means = [sum(choice.tests) / len(choice.tests) for choice in choices]
        fair = one_number(means) if choices else None
        protocols = {
            "paper": paper_protocol(curves), "per_fold_best": per_fold_best(curves), "fair": fair
        }  # fmt: skip
    leakage = Leakage(len(complexes), with_twin(marks), crossing)
    return Result(task.score_name, protocols, choices, majority, leakage)


def _record(result: Result, question: Question) -> dict[str, Any]:
    watched = question.training.schedule == "plateau" and question.model not in WITHOUT_EPOCHS
    return {
        "format": 1,
        "source": question.source,
        "model": question.model,
        **asdict(result),
        "std": "population",
        "grid": question.grid,
        "leaks": ["the plateau schedule watches the reported fold"] if watched else [],
    }
