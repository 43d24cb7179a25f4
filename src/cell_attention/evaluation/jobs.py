"""The jobs of a cross-validation: independent trainings, each with a file of its own.

A curve has the scores on the held-out graphs after every epoch, which the first two protocols read.
In the fair protocol no training sees these graphs: a choice trains one configuration and a rerun
the chosen one; the inner validation graphs decide when both stop, and the best weights of a rerun
are scored once on the held-out graphs.
"""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cell_attention._files import write_whole
from cell_attention.errors import DataError, WorkError
from cell_attention.evaluation.run_folder import AGAIN, FORMAT, RunFolder
from cell_attention.models.fitting import FoldTask, Stage
from cell_attention.models.registry import fitter
from cell_attention.models.settings import Settings
from cell_attention.parallel.engine import Report
from cell_attention.topology.complex import CellComplex

RERUNS = 3
"""Trainings of the chosen configuration in the fair protocol, as in Errica et al. 2020."""


@dataclass(frozen=True)
class Job:
    """One training of a cross-validation."""

    fold: int
    stage: Stage = "curve"
    number: int = 0
    """Number of the choice or of the rerun."""
    configuration: int | None = None
    """Index in the grid; None is the configuration of the settings, which curves use."""

    @property
    def stem(self) -> str:
        """Name of its files, without the ending."""
        if self.stage == "curve":
            return f"fold-{self.fold:02}"
        return f"fair-{self.fold:02}-{self.stage}-{self.number}"

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"fold {self.fold}" + (
            "" if self.stage == "curve" else f", {self.stage} {self.number}"
        )

    def settings(self, settings: Settings) -> Settings:
        """Return the settings of the run, with the configuration of this job."""
        if self.configuration is None:
            return settings
        network, training = settings.configurations()[self.configuration]
        return replace(settings, network=network, training=training)

    def seed(self, training_seed: int) -> tuple[int, ...]:
        """Return the job's own seed, which does not depend on the process or on other jobs."""
        own = training_seed * 1_000 + self.fold
        return {"curve": (own,), "choice": (own, 1), "rerun": (own, 2, self.number)}[self.stage]


def require_record(path: Path, record: dict[str, Any], job: Job, *, epochs: int | None) -> None:
    """Refuse a record that is not valid for this job.

    epochs: the number of scores of a curve; None if the model has no epochs.
    """
    score, count = record.get("score"), 1 if epochs is None else epochs
    lists: list[Any] = [score] if job.stage == "curve" else [score, record.get("watched_loss")]
    whole = all(_are_numbers(values) for values in lists)
    if whole and job.stage == "curve":
        whole = len(lists[0]) == count
    elif whole:
        epoch = record.get("epoch")
        whole = type(epoch) is int and 1 <= epoch <= min(map(len, lists))
    if whole and job.stage == "rerun":
        whole = _are_numbers([record.get("test")])
    columns = record.get("columns", [0.0])
    if whole and isinstance(columns, list):
        whole = _are_numbers([0.0, *(value for value in columns if value is not None)])
    if not whole or not isinstance(columns, list):
        raise DataError(f"{path}: not a valid record of {job.name}{AGAIN}")


def _are_numbers(values: Any) -> bool:
    """Whether this is a non-empty list of finite numbers."""
    return (
        isinstance(values, list)
        and bool(values)
        and all(type(value) in (int, float) and math.isfinite(value) for value in values)
    )


def run_job(folder: str, job: Job, checkpoint_seconds: float, *, report: Report) -> None:
    """Run one job, from its last checkpoint if there is one, and write its record."""
    run = RunFolder(Path(folder))
    if not run.asked.is_file():
        raise WorkError(f"{folder} cannot be read where {job.name} runs; all nodes must share it")
    settings = run.settings()
    found = fitter(settings.model).fit_fold(
        FoldTask(
            job.settings(settings), CellComplex.load(run.complexes), run.folds()[job.fold],
            job.seed(settings.training.seed), job.stage, run.smiles, run.checkpoint(job.stem),
            run.digest(), checkpoint_seconds, report,
        )
    )  # fmt: skip
    if job.stage != "curve":
        found["configuration"] = job.configuration or 0
    record = {"format": FORMAT, "job": job.stem, "settings": run.digest(), **found}
    write_whole(run.job(job.stem), json.dumps(record) + "\n")
    run.checkpoint(job.stem).unlink(missing_ok=True)
