"""Search for a configuration by inner validation scores, plain or nested.

Plain: one study, whose trials train on the inner training graphs of every fold and are scored by
the mean over the inner validation graphs. Together these cover every graph, so a cross-validation
of the winner is not an honest estimate. Nested: every fold has its own study, whose winner is
scored once on the held-out graphs of that fold; this estimates "search, then train".

A RUN_DIR holds `search.json` (the settings), a journal, and a folder per trial with a file per
finished training. A search that was killed at any moment resumes with the same trials.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cell_attention._files import lock_folder, write_whole
from cell_attention.data.splits.folds import Splits
from cell_attention.errors import InputError
from cell_attention.evaluation.crossval import unfinished_work
from cell_attention.evaluation.fair import rerun_jobs
from cell_attention.evaluation.jobs import Job, require_record, run_job
from cell_attention.evaluation.protocols import Outcome, one_number
from cell_attention.evaluation.run_folder import FORMAT, RunFolder
from cell_attention.models.settings import Settings
from cell_attention.parallel.engine import Report, Workers
from cell_attention.topology.complex import CellComplex
from cell_attention.training.curves import DivergedError
from cell_attention.tuning.search_folder import (
    JOURNAL,
    START,
    BestTrial,
    SearchResult,
    SearchSettings,
    Trial,
    begin,
    write,
)
from cell_attention.tuning.space import Changes, applied
from cell_attention.tuning.study import Study, is_complete


@dataclass(frozen=True)
class Branch:
    """One study: over all folds, or over one fold of a nested search."""

    folder: Path
    folds: tuple[int, ...]
    study: Study

    @property
    def rungs(self) -> list[tuple[int, ...]]:
        """The folds in up to three groups; after each but the last a trial may be pruned."""
        third = -(-len(self.folds) // 3)
        return [self.folds[at : at + third] for at in range(0, len(self.folds), third)]


@dataclass
class _Attempt:
    """A trial that is running."""

    branch: Branch
    number: int
    trial: Any
    run: RunFolder
    scores: list[float] = field(default_factory=list)


def run_search(
    folder: Path,
    asked: SearchSettings,
    *,
    splits: Splits,
    complexes: CellComplex,
    trials: int,
    workers: Workers,
    fresh: bool = False,
) -> SearchResult:
    """Run the trials that are not finished, then choose the best."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"folder {folder} is a file; name another")
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        begin(folder, asked, fresh)
        steps = _Search(asked, splits, complexes, workers=workers)
        branches = list(_branches(folder, asked, len(splits.folds)))
        starts = steps.starts(branches)
        for first in range(0, trials, asked.at_once):
            steps.round(branches, range(first, min(first + asked.at_once, trials)))
        tried = tuple(
            (Trial(START, "start", start, len(branch.folds), {}), *steps.tried(branch, trials))
            for branch, start in zip(branches, starts, strict=True)
        )
        winners = tuple(
            steps.winner(branch, start, trials)
            for branch, start in zip(branches, starts, strict=True)
        )
        nested = steps.estimate(branches, winners) if asked.nested else None
        settings = asked.settings
        leaks = (settings.leak,) if settings.searched else ()
        score = settings.task_on(complexes).score_name
        found = SearchResult(score, trials, tried, winners, nested, leaks)
        write(folder, asked, found)
        return found


class _Search:
    """The steps of a search, with the data that all of them need."""

    def __init__(
        self, asked: SearchSettings, splits: Splits, complexes: CellComplex, *, workers: Workers
    ) -> None:
        self.asked, self.splits, self.complexes = asked, splits, complexes
        self.workers = workers

    def starts(self, branches: list[Branch]) -> list[float | None]:
        """Return the inner validation score of the first configuration of every study."""
        with ExitStack() as held:
            runs = [
                self._run(held, branch, name=START, settings=self.asked.settings)
                for branch in branches
            ]
            self._train([(run, b.folds, START) for run, b in zip(runs, branches, strict=True)])
            scores = [
                self._scores(run, branch.folds) for run, branch in zip(runs, branches, strict=True)
            ]
            return [None if values is None else _mean(values) for values in scores]

    def round(self, branches: list[Branch], numbers: range) -> None:
        """Run the trials with these numbers in every study, rung by rung."""
        with ExitStack() as held:
            begun = [
                self._attempt(held, branch, number)
                for branch in branches
                for number in numbers
                if branch.study.is_running(number)
            ]
            live = [attempt for attempt in begun if attempt is not None]
            for rung in range(len(branches[0].rungs)):
                self._train([(a.run, a.branch.rungs[rung], f"trial {a.number}") for a in live])
                live = [attempt for attempt in live if self._goes_on(attempt, rung)]
            for attempt in live:
                attempt.branch.study.record(attempt.trial, _mean(attempt.scores))

    def _goes_on(self, attempt: _Attempt, rung: int) -> bool:
        """Read the scores of a rung; return whether the trial continues."""
        study, rungs = attempt.branch.study, attempt.branch.rungs
        scores = self._scores(attempt.run, rungs[rung])
        if scores is None:
            study.record(attempt.trial, None)
            return False
        attempt.scores += scores
        last = rung == len(rungs) - 1
        return last or not study.judged(attempt.trial, _mean(attempt.scores), len(attempt.scores))

    def _attempt(self, held: ExitStack, branch: Branch, number: int) -> _Attempt | None:
        """Start or resume a trial; None if its values cannot be combined."""
        trial = branch.study.begun(number)
        changes = branch.study.changes(trial, self.asked.space)
        try:
            settings = self._question(changes)
        except InputError:
            branch.study.record(trial, None)
            return None
        run = self._run(held, branch, name=_name(number), settings=settings)
        return _Attempt(branch, number, trial, run)

    def _question(self, changes: Changes) -> Settings:
        settings = self.asked.settings
        usual = settings.network, settings.training
        network, training = applied(settings.model, changes, usual)
        return replace(settings, network=network, training=training)

    def _run(self, held: ExitStack, branch: Branch, *, name: str, settings: Settings) -> RunFolder:
        run = held.enter_context(
            RunFolder.begin(branch.folder / name, settings, self.splits, fresh=False)
        )
        held.callback(run.tidy_data)
        return run

    def _train(self, wanted: list[tuple[RunFolder, tuple[int, ...], str]]) -> None:
        """Train these folds of these runs, all at the same time."""
        self.workers.run(
            [
                work
                for run, folds, name in wanted
                for work in unfinished_work(
                    run,
                    _choice_jobs(folds),
                    self.complexes,
                    workers=self.workers,
                    prefix=f"{name}, ",
                    function=run_trial_job,
                )
            ]
        )

    def _scores(self, run: RunFolder, folds: tuple[int, ...]) -> list[float] | None:
        """Return the best inner validation score of every fold; None if one diverged."""
        scores = []
        for job in _choice_jobs(folds):
            record = run.finished(job.stem, run.digest()) or {}
            if "diverged" in record:
                return None
            require_record(run.job(job.stem), record, job, epochs=None)
            scores.append(float(record["score"][record["epoch"] - 1]))
        return scores

    def tried(self, branch: Branch, trials: int) -> tuple[Trial, ...]:
        """Return the results of all trials of a study."""
        found = []
        for number, trial in enumerate(branch.study.trials()[:trials]):
            steps = trial.intermediate_values
            last = steps[max(steps)] if steps else None
            whole = is_complete(trial)
            found.append(
                Trial(
                    _name(number),
                    trial.state.name.lower(),
                    trial.value if whole else last,
                    len(branch.folds) if whole else max(steps, default=0),
                    dict(trial.params),
                )
            )
        return tuple(found)

    def winner(self, branch: Branch, start: float | None, trials: int) -> BestTrial:
        """Return the best configuration, including the first one; of several the first."""
        settings, best, name = self.asked.settings, start, START
        for number, trial in enumerate(branch.study.trials()[:trials]):
            if is_complete(trial) and (best is None or trial.value > best):
                best, name = trial.value, _name(number)
        if best is None:
            raise InputError("all trainings diverged; search among lower learning rates")
        if name != START:
            settings = RunFolder(branch.folder / name).settings()
        return BestTrial(name, best, settings.network, settings.training)

    def estimate(self, branches: list[Branch], winners: tuple[BestTrial, ...]) -> Outcome:
        """Train every fold's winner again and score it on the held-out graphs."""
        with ExitStack() as held:
            runs, works = [], []
            for branch, winner in zip(branches, winners, strict=True):
                settings = replace(
                    self.asked.settings, network=winner.network, training=winner.training
                )
                # With more trials another one may win, so every winner has its own folder.
                runs.append(
                    self._run(held, branch, name=f"winner-{winner.name}", settings=settings)
                )
                jobs = rerun_jobs(branch.folds[0], None)
                works += unfinished_work(
                    runs[-1], jobs, self.complexes, workers=self.workers, prefix="winner, "
                )
            self.workers.run(works)
            means = []
            for run, branch in zip(runs, branches, strict=True):
                tests = []
                for job in rerun_jobs(branch.folds[0], None):
                    record = run.finished(job.stem, run.digest()) or {}
                    require_record(run.job(job.stem), record, job, epochs=None)
                    tests.append(float(record["test"]))
                means.append(_mean(tests))
        return one_number(means)


def run_trial_job(folder: str, job: Job, checkpoint_seconds: float, *, report: Report) -> None:
    """Run a job like `run_job`, but record a training that diverges instead of failing."""
    try:
        run_job(folder, job, checkpoint_seconds, report=report)
    except DivergedError as error:
        run = RunFolder(Path(folder))
        record = {"format": FORMAT, "job": job.stem, "settings": run.digest()}
        text = json.dumps({**record, "diverged": str(error)})
        write_whole(run.job(job.stem), text + "\n")


def _branches(folder: Path, asked: SearchSettings, folds: int) -> Iterator[Branch]:
    seed = asked.settings.training.seed
    if not asked.nested:
        yield Branch(folder, tuple(range(folds)), Study(folder / JOURNAL, seed))
        return
    for fold in range(folds):
        below = folder / f"outer-{fold:02}"
        below.mkdir(exist_ok=True)
        yield Branch(below, (fold,), Study(below / JOURNAL, seed * 1_000 + fold))


def _name(number: int) -> str:
    return f"trial-{number:04}"


def _choice_jobs(folds: tuple[int, ...]) -> list[Job]:
    return [Job(fold, "choice", 0, None) for fold in folds]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
