"""Cross-validation: all folds with the same number of epochs, read by every protocol at once.

Deviation: no fold stops early, as it does in the released code, because the paper's own protocol
averages whole curves.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from cell_attention._files import write_whole
from cell_attention.errors import DataError, InputError
from cell_attention.evaluation.curves import draw_curves
from cell_attention.evaluation.fair import choice_parts, choices, is_fair, rerun_parts
from cell_attention.evaluation.jobs import Part, check_record, run_part
from cell_attention.evaluation.protocols import Outcome, one_number, paper_protocol, per_fold_best
from cell_attention.evaluation.result import PROTOCOLS, Choice, Leakage, Result
from cell_attention.evaluation.run_folder import Run
from cell_attention.evaluation.twins import signatures, with_twin, with_twin_in
from cell_attention.models.registry import MODELS
from cell_attention.parallel import engine as engines
from cell_attention.topology.complex import CellComplex
from cell_attention.training.loop import Training
from cell_attention.training.settings import Question
from cell_attention.training.tasks import task_of

CHECKPOINT_SECONDS = 10.0
"""How much work a kill may cost, at most, unless the caller says otherwise."""


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
    digest, started = run.digest(), time.monotonic()
    epochs = question.training.epochs if MODELS[question.model].epochs else None
    places: dict[str, str] = {}

    def done(parts: Sequence[Part]) -> list[dict[str, Any]]:
        works = works_of(run, parts, complexes, checkpoint_seconds)
        places.update(engines.run_all(works, jobs, watch, engine))
        records = []
        for part in parts:
            record = run.finished(part.stem, digest)
            if record is None:
                raise DataError(f"{run.folder}: {part.name} has left no file")
            check_record(run.part(part.stem), record, part, epochs)
            records.append(record)
        return records

    run.complexes.unlink(missing_ok=True)  # of a run that was killed
    folds = len(run.folds())
    parts = [Part(fold) for fold in range(folds)]
    done(first_parts(run))  # at once, so that no core waits between the two
    curves = [record["score"] for record in done(parts)]
    chosen = choices(question, folds, done) if is_fair(question) else ()
    result = _result(complexes, curves, chosen, run)
    paper = result.protocols["paper"]
    if paper is not None and paper.epoch is not None:
        title = f"{question.source}, {question.model}, {question.splits}"
        draw_curves(run.folder / "curves.svg", title, result.score, curves, paper, result.majority)
    write_whole(run.result, json.dumps(result.record(question), indent=2) + "\n")
    if places:
        spent = round(time.monotonic() - started, 1)
        timing = {"seconds": spent, "jobs": jobs, "engine": engine, "places": places}
        write_whole(run.folder / "timing.json", json.dumps(timing, indent=2) + "\n")
    run.tidy()
    return result


def crossvalidate_all(
    runs: dict[str, Run],
    complexes: CellComplex,
    jobs: int = 0,
    watch: engines.Watch = lambda name, numbers: None,
    engine: engines.Engine = "processes",
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> dict[str, Result]:
    """Several runs on the same graphs, by name: what all of them begin with is done at once, so
    that no core waits between two runs.
    """
    for run in runs.values():
        run.complexes.unlink(missing_ok=True)
    works = [
        work
        for name, run in runs.items()
        for work in works_of(run, first_parts(run), complexes, checkpoint_seconds, f"{name}, ")
    ]
    engines.run_all(works, jobs, watch, engine)
    rest = (complexes, jobs, watch, engine, checkpoint_seconds)
    return {name: crossvalidate(run, *rest) for name, run in runs.items()}


def first_parts(run: Run) -> list[Part]:
    """What does not wait for anything else: the curves, and what the fair protocol chooses from."""
    question, folds = run.question(), range(len(run.folds()))
    parts = [Part(fold) for fold in folds]
    if is_fair(question):
        parts += [part for fold in folds for part in choice_parts(question, fold)]
    return parts


def works_of(
    run: Run,
    parts: Sequence[Part],
    complexes: CellComplex,
    checkpoint_seconds: float,
    prefix: str = "",
    function: Callable[..., None] = run_part,
) -> list[engines.Work]:
    """The parts that are not finished yet as pieces of work, after the data that they read were
    written for them.
    """
    digest = run.digest()
    missing = [part for part in parts if run.finished(part.stem, digest) is None]
    if missing and not run.complexes.is_file():
        complexes.save(run.complexes)
    arguments = [(str(run.folder), part, checkpoint_seconds) for part in missing]
    return [engines.Work(prefix + given[1].name, function, given) for given in arguments]


def missing_parts(run: Run) -> int:
    """How many trainings there are left to do."""
    question = run.question()
    digest, folds = run.digest(), len(run.folds())
    stems = [Part(fold).stem for fold in range(folds)]
    if is_fair(question):
        for fold in range(folds):
            more = [*choice_parts(question, fold), *rerun_parts(fold, None)]
            stems += [part.stem for part in more]
    return sum(run.finished(stem, digest) is None for stem in stems)


def require_possible(question: Question, complexes: CellComplex) -> None:
    """Refuse what could not be answered, before anything is begun."""
    if MODELS[question.model].molecules or MODELS[question.model].epochs:
        return
    from cell_attention.models.majority import require

    require(question.model, complexes)
    if question.metric not in (None, "accuracy"):
        raise InputError(f"model {question.model!r} knows accuracy alone, not {question.metric}")


def prepare(question: Question, complexes: CellComplex) -> None:
    """One small step, so that kernels are compiled once, here, and not in every process."""
    if not MODELS[question.model].epochs:
        return
    edges = complexes.edge_complex.bincount(minlength=len(complexes))
    few = edges.topk(min(2, len(complexes))).indices
    graphs = few.tolist()
    task = task_of(complexes, few, kind=question.task)
    training = Training(
        complexes, graphs, graphs, task, question.network, question.training, (0,),
        model=question.model,
    )  # fmt: skip
    training.network(complexes[few]).sum().backward()
    training.outputs(few)


def _result(
    complexes: CellComplex,
    curves: Sequence[Sequence[float]],
    choices: tuple[Choice, ...],
    run: Run,
) -> Result:
    question, folds, marks = run.question(), run.folds(), signatures(complexes)
    crossing = sum(with_twin_in(marks, fold.held_out, fold.rest) for fold in folds)
    task = question.task_on(complexes)
    majority = None
    if task.metric == "accuracy" and task.kind == "classes" and complexes.targets is not None:
        majority = 100.0 * float(complexes.targets.bincount().max()) / len(complexes)
    protocols: dict[str, Outcome | None]
    if not MODELS[question.model].epochs:
        protocols = dict.fromkeys(PROTOCOLS, one_number([curve[0] for curve in curves]))
    else:
        means = [sum(choice.tests) / len(choice.tests) for choice in choices]
        fair = one_number(means) if choices else None
        protocols = {
            "paper": paper_protocol(curves), "per_fold_best": per_fold_best(curves), "fair": fair
        }  # fmt: skip
    leakage = Leakage(len(complexes), with_twin(marks), crossing)
    watched = question.training.schedule == "plateau" and MODELS[question.model].epochs
    leaks = ["the plateau schedule watches the reported fold"] if watched else []
    if question.searched:
        leaks.append(question.leak)
    return Result(task.score_name, protocols, choices, majority, leakage, tuple(leaks))
