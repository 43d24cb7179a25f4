"""The parts of a cross-validation: independent trainings, each with a file of its own.

A fold's curve watches the held-out graphs and is what protocols 1 and 2 read. The fair protocol
never shows them to a training: a choice trains one configuration, a rerun the chosen one, both stop
by the inner validation graphs, and a rerun's best weights meet the held-out graphs once.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor

from cell_attention._files import write_whole
from cell_attention.data.splits.folds import Fold
from cell_attention.errors import DataError, WorkError
from cell_attention.evaluation.run_folder import AGAIN, FORMAT, Run
from cell_attention.models.registry import MODELS
from cell_attention.parallel.engine import Report
from cell_attention.topology.complex import CellComplex
from cell_attention.training.loop import Training
from cell_attention.training.settings import Question

RERUNS = 3
"""Of the chosen configuration in the fair protocol, as Errica et al. 2020 do."""

Stage = Literal["curve", "choice", "rerun"]


@dataclass(frozen=True)
class Part:
    """One training."""

    fold: int
    stage: Stage = "curve"
    number: int = 0
    """Of the choice or of the rerun."""
    configuration: int | None = None
    """One of the question's; None is the one that it names first, which curves belong to."""

    @property
    def stem(self) -> str:
        """Its file's name."""
        if self.stage == "curve":
            return f"fold-{self.fold:02}"
        return f"fair-{self.fold:02}-{self.stage}-{self.number}"

    @property
    def name(self) -> str:
        """For people."""
        return f"fold {self.fold}" + (
            "" if self.stage == "curve" else f", {self.stage} {self.number}"
        )

    def seed(self, training_seed: int) -> tuple[int, ...]:
        """Its own, whichever process runs it and whatever ran before."""
        own = training_seed * 1_000 + self.fold
        return {"curve": (own,), "choice": (own, 1), "rerun": (own, 2, self.number)}[self.stage]


def check_record(path: Path, record: dict[str, Any], part: Part, epochs: int | None) -> None:
    """Refuse what no part of this kind has written.

    epochs: how many scores a curve has; None where there are no epochs.
    """
    score, count = record.get("score"), 1 if epochs is None else epochs
    lists: list[Any] = [score] if part.stage == "curve" else [score, record.get("watched_loss")]
    whole = all(_are_numbers(values) for values in lists)
    if whole and part.stage == "curve":
        whole = len(lists[0]) == count
    elif whole:
        epoch = record.get("epoch")
        whole = type(epoch) is int and 1 <= epoch <= min(map(len, lists))
    if whole and part.stage == "rerun":
        whole = _are_numbers([record.get("test")])
    if not whole:
        raise DataError(f"{path}: not what {part.name} has to say{AGAIN}")


def _are_numbers(values: Any) -> bool:
    """Whether this is a list of at least one finite number, and nothing else."""
    return (
        isinstance(values, list)
        and bool(values)
        and all(type(value) in (int, float) and math.isfinite(value) for value in values)
    )


def run_part(folder: str, part: Part, checkpoint_seconds: float, report: Report) -> None:
    """Do a part of a run to the end, from its last checkpoint if there is one."""
    run = Run(Path(folder))
    if not run.asked.is_file():
        raise WorkError(f"{folder} is not seen where {part.name} runs; all nodes must share it")
    question = run.question()
    complexes, fold = CellComplex.load(run.complexes), run.folds()[part.fold]
    found: dict[str, Any]
    if not MODELS[question.model].epochs:
        from cell_attention.models.majority import held_out_score

        seed = part.seed(question.training.seed)
        if MODELS[question.model].molecules:
            found = {"score": [_forest_score(run, question, complexes, fold, seed)]}
        else:
            found = held_out_score(question.model, complexes, fold.rest, fold.held_out, seed)
    else:
        training = made(part, question, complexes, fold)
        training.complete(run.checkpoint(part.stem), run.digest(), checkpoint_seconds, report)
        found = {**training.curves.record()}
        if part.stage != "curve":
            found["epoch"] = training.curves.best_epoch
            found["configuration"] = part.configuration or 0
        if part.stage == "rerun":
            training.take_best()
            found["test"] = training.evaluate(torch.tensor(fold.test)).score
    record = {"format": FORMAT, "part": part.stem, "question": run.digest(), **found}
    write_whole(run.part(part.stem), json.dumps(record) + "\n")
    run.checkpoint(part.stem).unlink(missing_ok=True)


def _forest_score(
    run: Run, question: Question, complexes: CellComplex, fold: Fold, seed: tuple[int, ...]
) -> float:
    """The metric of the question, of the only rival without epochs that gives probabilities."""
    from cell_attention.models.forest import forest_predictions

    task = question.task_on(complexes, fold.rest)
    held = torch.tensor(fold.held_out)
    task.require_score(complexes, "held-out", held)
    guessed = forest_predictions(complexes, run.smiles(), fold.rest, fold.held_out, seed)
    return task.score_of(guessed, cast(Tensor, complexes.targets)[held])


def made(part: Part, question: Question, complexes: CellComplex, fold: Fold) -> Training:
    """The training of a part, before its first epoch."""
    network, training = question.network, question.training
    if part.configuration is not None:
        network, training = question.configurations()[part.configuration]
    train, watched = fold.rest, fold.held_out
    if part.stage != "curve":
        train, watched = fold.train, fold.validation
    task = question.task_on(complexes, train)
    return Training(
        complexes, train, watched, task, network, training, part.seed(training.seed),
        keep_best=part.stage != "curve", model=question.model,
    )  # fmt: skip
