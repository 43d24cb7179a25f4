"""Cross-validation: all folds with the same number of epochs, read by every protocol at once."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from cell_attention._files import write_whole
from cell_attention.errors import DataError
from cell_attention.learn import engine
from cell_attention.learn.curves import draw_curves
from cell_attention.learn.protocols import Outcome, paper_protocol, per_fold_best
from cell_attention.learn.runs import Question, Run
from cell_attention.learn.tasks import task_of
from cell_attention.learn.training import Training
from cell_attention.learn.twins import signatures, with_twin, with_twin_in
from cell_attention.topology.complex import CellComplex

CHECKPOINT_SECONDS = 10.0
"""How much work a kill may cost, at most."""


@dataclass(frozen=True)
class Leakage:
    """Graphs that 1-WL with node labels cannot tell from another one."""

    graphs: int
    with_twin: int
    held_out_with_twin_in_training: int
    """Summed over the folds."""


@dataclass(frozen=True)
class Result:
    """What a cross-validation came to."""

    protocols: dict[str, Outcome | None]
    """paper, per_fold_best, fair; None where one was not run."""
    majority: float
    """Percent of the graphs in the largest class."""
    leakage: Leakage


def run_fold(folder: str, number: int, report: engine.Report) -> None:
    """Train one fold of a run to the end, from its last checkpoint if there is one."""
    run = Run(Path(folder))
    question = run.question()
    digest = question.digest()
    complexes, fold = CellComplex.load(run.complexes), run.folds()[number]
    task = task_of(complexes, torch.tensor(fold.train), question.class_weights)
    training = Training(
        complexes, fold.train, fold.validation, task, question.network, question.training,
        seed=question.training.seed * 1_000 + number,
    )  # fmt: skip
    checkpoint = run.checkpoint(number)
    if checkpoint.is_file():
        training.restore(checkpoint, digest)
    saved = time.monotonic()
    while training.epochs_done < question.training.epochs:
        training.epoch()
        score = training.curves.score
        report({"epoch": len(score), "score": score[-1], "best": max(score)})
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            training.save(checkpoint, digest)
            saved = time.monotonic()
    record = {"format": 1, "fold": number, "question": digest, **asdict(training.curves)}
    write_whole(run.fold(number), json.dumps(record) + "\n")
    checkpoint.unlink(missing_ok=True)


def crossvalidate(run: Run, complexes: CellComplex, jobs: int, watch: engine.Watch) -> Result:
    """Run the folds that are not finished yet, then read all of them."""
    question = run.question()
    digest, folds = question.digest(), run.folds()
    started = time.monotonic()
    waiting = [n for n in range(len(folds)) if run.finished(n, digest) is None]
    works = [engine.Work(f"fold {n}", run_fold, (str(run.folder), n)) for n in waiting]
    if works:
        complexes.save(run.complexes)
        engine.run_all(works, jobs, watch)
    records = [run.finished(number, digest) for number in range(len(folds))]
    curves = [record["score"] for record in records if record is not None]
    if len(curves) < len(folds):
        raise DataError(f"{run.folder}: {len(folds) - len(curves)} folds have left no file")
    result = _result(complexes, curves, run)
    chosen = paper_protocol(curves)
    title = f"{question.source}, {question.splits}"
    draw_curves(run.folder / "curves.svg", title, curves, chosen, result.majority)
    write_whole(run.result, json.dumps(_record(result, question), indent=2) + "\n")
    if works:
        spent = {"seconds": round(time.monotonic() - started, 1), "folds": waiting, "jobs": jobs}
        write_whole(run.folder / "timing.json", json.dumps(spent) + "\n")
    run.complexes.unlink(missing_ok=True)
    return result


def _result(complexes: CellComplex, curves: Sequence[Sequence[float]], run: Run) -> Result:
    folds, marks = run.folds(), signatures(complexes)
    crossing = sum(with_twin_in(marks, fold.validation, fold.train) for fold in folds)
    majority = 0.0
    if complexes.targets is not None and not complexes.targets.is_floating_point():
        majority = 100.0 * float(complexes.targets.bincount().max()) / complexes.num_complexes
    return Result(
        {"paper": paper_protocol(curves), "per_fold_best": per_fold_best(curves), "fair": None},
        majority,
        Leakage(complexes.num_complexes, with_twin(marks), crossing),
    )


def _record(result: Result, question: Question) -> dict[str, Any]:
    watched = question.training.schedule == "plateau"
    return {
        "format": 1,
        "source": question.source,
        **asdict(result),
        "std": "population",
        "leaks": ["the plateau schedule watches the reported fold"] if watched else [],
    }
