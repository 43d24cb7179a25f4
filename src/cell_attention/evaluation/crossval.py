"""Cross-validation: all folds have the same number of epochs, and every protocol reads them.

Deviation: no fold stops early, as folds do in the released code, because the paper's protocol
averages complete curves.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from cell_attention._files import write_whole
from cell_attention.errors import DataError
from cell_attention.evaluation.columns import ColumnOutcome, column_outcomes
from cell_attention.evaluation.curves import draw_curves
from cell_attention.evaluation.fair import choice_jobs, choices, column_scores, is_fair, rerun_jobs
from cell_attention.evaluation.jobs import Job, require_record, run_job
from cell_attention.evaluation.protocols import Outcome, one_number, paper_protocol, per_fold_best
from cell_attention.evaluation.result import PROTOCOLS, FairChoice, Leakage, Result
from cell_attention.evaluation.run_folder import RunFolder
from cell_attention.evaluation.twins import signatures, with_twin, with_twin_in
from cell_attention.parallel.engine import Work, Workers
from cell_attention.topology.complex import CellComplex


def complete_run(run: RunFolder, complexes: CellComplex, workers: Workers) -> Result:
    """Run the jobs that are not finished, then compute the result from all of them."""
    settings = run.settings()
    digest, started = run.digest(), time.monotonic()
    places: dict[str, str] = {}

    def records_of(jobs: Sequence[Job]) -> list[dict[str, Any]]:
        places.update(workers.run(unfinished_work(run, jobs, complexes, workers=workers)))
        records = []
        for job in jobs:
            record = run.finished(job.stem, digest)
            if record is None:
                raise DataError(f"{run.folder}: {job.name} wrote no record; run the command again")
            require_record(run.job(job.stem), record, job, epochs=settings.epochs)
            records.append(record)
        return records

    run.complexes.unlink(missing_ok=True)  # left by a run that was killed
    folds = len(run.folds())
    records_of(first_jobs(run))  # together, so that no core waits between curves and choices
    records = records_of([Job(fold) for fold in range(folds)])
    curves = [record["score"] for record in records]
    chosen = choices(settings, folds, records_of) if is_fair(settings) else ()
    scores = [record.get("columns", []) for record in records]
    if chosen and settings.columns:
        scores = column_scores(folds, records_of)
    columns = column_outcomes(settings.columns, scores)
    result = _result(run, complexes, curves=curves, choices=chosen, columns=columns)
    paper = result.protocols["paper"]
    if paper is not None and paper.epoch is not None:
        draw_curves(
            run.folder / "curves.svg",
            curves,
            title=f"{settings.source}, {settings.model}, {settings.splits}",
            score=result.score,
            chosen=paper,
            majority=result.majority,
        )
    write_whole(run.result, result.to_json())
    if places:
        spent = round(time.monotonic() - started, 1)
        timing = {"seconds": spent, "jobs": workers.count, "engine": workers.engine}
        write_whole(
            run.folder / "timing.json", json.dumps({**timing, "places": places}, indent=2) + "\n"
        )
    run.tidy()
    return result


def complete_runs(
    runs: dict[str, RunFolder], complexes: CellComplex, workers: Workers
) -> dict[str, Result]:
    """Complete several runs on the same graphs, by name: their first jobs are done together, so
    that no core waits between two runs.
    """
    for run in runs.values():
        run.complexes.unlink(missing_ok=True)
    workers.run(
        [
            work
            for name, run in runs.items()
            for work in unfinished_work(
                run, first_jobs(run), complexes, workers=workers, prefix=f"{name}, "
            )
        ]
    )
    return {name: complete_run(run, complexes, workers) for name, run in runs.items()}


def first_jobs(run: RunFolder) -> list[Job]:
    """Return the jobs that need no other job: the curves, and the choices of the fair protocol."""
    settings, folds = run.settings(), range(len(run.folds()))
    jobs = [Job(fold) for fold in folds]
    if is_fair(settings):
        jobs += [job for fold in folds for job in choice_jobs(settings, fold)]
    return jobs


def unfinished_work(
    run: RunFolder,
    jobs: Sequence[Job],
    complexes: CellComplex,
    *,
    workers: Workers,
    prefix: str = "",
    function: Callable[..., None] = run_job,
) -> list[Work]:
    """Return the jobs that are not finished, after writing the data that they read."""
    digest = run.digest()
    missing = [job for job in jobs if run.finished(job.stem, digest) is None]
    if missing and not run.complexes.is_file():
        complexes.save(run.complexes)
    return [
        Work(prefix + job.name, function, (str(run.folder), job, workers.checkpoint_seconds))
        for job in missing
    ]


def missing_jobs(run: RunFolder) -> int:
    """Return how many trainings are left to do."""
    settings = run.settings()
    digest, folds = run.digest(), len(run.folds())
    stems = [Job(fold).stem for fold in range(folds)]
    if is_fair(settings):
        for fold in range(folds):
            more = [*choice_jobs(settings, fold), *rerun_jobs(fold, None)]
            stems += [job.stem for job in more]
    return sum(run.finished(stem, digest) is None for stem in stems)


def _result(
    run: RunFolder,
    complexes: CellComplex,
    *,
    curves: Sequence[Sequence[float]],
    choices: tuple[FairChoice, ...],
    columns: dict[str, ColumnOutcome],
) -> Result:
    settings, folds, marks = run.settings(), run.folds(), signatures(complexes)
    crossing = sum(with_twin_in(marks, fold.held_out, fold.rest) for fold in folds)
    task = settings.task_on(complexes)
    majority = None
    if task.metric == "accuracy" and task.kind == "classes" and complexes.targets is not None:
        majority = 100.0 * float(complexes.targets.bincount().max()) / len(complexes)
    protocols: dict[str, Outcome | None]
    if settings.epochs is None:
        protocols = dict.fromkeys(PROTOCOLS, one_number([curve[0] for curve in curves]))
    else:
        means = [sum(choice.tests) / len(choice.tests) for choice in choices]
        fair = one_number(means) if choices else None
        protocols = {
            "paper": paper_protocol(curves), "per_fold_best": per_fold_best(curves), "fair": fair
        }  # fmt: skip
    leakage = Leakage(len(complexes), with_twin(marks), crossing)
    watched = settings.training.schedule == "plateau" and settings.epochs is not None
    leaks = ["the plateau schedule watches the reported fold"] if watched else []
    if settings.searched:
        leaks.append(settings.leak)
    return Result(
        settings.source, settings.model, settings.grid, task.score_name, protocols, choices,
        majority, leakage, tuple(leaks), columns,
    )  # fmt: skip
