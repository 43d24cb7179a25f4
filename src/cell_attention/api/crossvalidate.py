"""`crossvalidate`: the score of a model on held-out folds, by every protocol."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from cell_attention._files import write_whole
from cell_attention.api.experiment import Engine, Split, plan_experiment, working_folder
from cell_attention.api.reading import Data, Reading
from cell_attention.arguments import checked
from cell_attention.data.file_format import Columns, FileFormat, OnError
from cell_attention.data.splits.folds import Splits
from cell_attention.evaluation.crossval import complete_run, missing_jobs
from cell_attention.evaluation.result import Result
from cell_attention.evaluation.run_folder import RunFolder
from cell_attention.models.changes import Grid
from cell_attention.models.network_fitter import warm_up
from cell_attention.models.registry import find_model
from cell_attention.models.settings import Protocol
from cell_attention.models.timing import epoch_seconds
from cell_attention.nn.config import NetworkConfig
from cell_attention.parallel.engine import Workers, cores
from cell_attention.progress import Progress, duration
from cell_attention.topology.complex import CellComplex
from cell_attention.training.class_weights import ClassWeights
from cell_attention.training.config import TrainingConfig
from cell_attention.training.threads import one_thread


@checked
def crossvalidate(
    data: Data,
    model: str = "can",
    *,
    network: NetworkConfig | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    folds: int | Splits = 10,
    protocol: Protocol | None = None,
    split: Split = "auto",
    metric: str | None = None,
    class_weights: ClassWeights = "auto",
    grid: Grid = (),
    search_trials: int = 0,
    on_error: OnError = "fail",
    data_dir: str | Path | None = None,
    node_attributes: bool = False,
    columns: Columns = Columns(),  # noqa: B008 - frozen, so sharing one is safe
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    folder: str | Path | None = None,
    fresh: bool = False,
    jobs: int = 1,
    engine: Engine = "processes",
    checkpoint_seconds: float = 10.0,
    progress: Progress | None = None,
) -> Result:
    """Cross-validate a model of the registry; the same call resumes an interrupted run.

    data: a TU name, a folder, a file of molecules, a GraphSet, or complexes with targets.
    network, training: complete configurations, or mappings with the fields that differ from the
        default. Without a stated `max_polygon`, graphs that are already lifted keep theirs; another
        one is refused.
    folds: the number of folds, or the splits themselves, which must hold out every graph once; the
        fair protocol adds inner validation graphs to those without a test split.
    split: how folds are made.
    protocol: "paper", or "fair" to add inner validation and three reruns; the default is "fair" for
        files of molecules, else "paper".
    grid: the configurations that the fair protocol chooses from, as changes by table:
        [{"network": {"dropout": 0.2}}, {"network": {"dropout": 0.5}, "training": {"epochs": 50}}].
    search_trials: number of trials of a search over these graphs that chose the configuration.
    on_error, data_dir, node_attributes, columns: how a SOURCE is read, as in `load_dataset`.
    folder: a RUN_DIR where everything is saved. jobs: number of trainings at a time, each in its
        own process (0: one per core); for more than one, scripts need
        `if __name__ == "__main__":`.
    """
    reading = Reading(on_error, data_dir, node_attributes, columns, file_format)
    shown, workers = progress or Progress(), Workers(jobs, engine, checkpoint_seconds)
    with one_thread(), working_folder(folder) as place:
        experiment = plan_experiment(
            data, model, network=network, training=training, folds=folds, split=split,
            protocol=protocol, metric=metric, class_weights=class_weights, grid=grid,
            search_trials=search_trials, reading=reading, progress=shown,
        )  # fmt: skip
        graphs, settings = experiment.graph_set.graphs, experiment.settings
        with RunFolder.begin(place, settings, experiment.splits, fresh=fresh) as run:
            if find_model(model).molecules and experiment.graph_set.molecules is not None:
                smiles = experiment.graph_set.molecules.smiles
                write_whole(run.molecules, json.dumps({"smiles": smiles}) + "\n")
            with watched_workers([run], graphs, workers, progress=shown) as ready:
                return complete_run(run, graphs, ready)


@contextmanager
def watched_workers(
    runs: Sequence[RunFolder], graphs: CellComplex, workers: Workers, *, progress: Progress
) -> Iterator[Workers]:
    """Compile kernels, estimate the time left, and yield workers whose progress is shown."""
    unfinished = {run: missing for run in runs if (missing := missing_jobs(run))}
    for run in unfinished:
        warm_up(run.settings(), graphs)
    if progress.shows_time and workers.engine == "processes":
        total = sum(
            missing * _job_seconds(run, graphs) / (workers.count or cores())
            for run, missing in unfinished.items()
        )
        if total:
            progress.remark(f"about {duration(total)} of training")
    epochs = max(run.settings().training.epochs for run in runs)
    with progress.jobs(sum(unfinished.values()), epochs) as heard:
        yield replace(workers, progress=heard)


def _job_seconds(run: RunFolder, graphs: CellComplex) -> float:
    settings = run.settings()
    if settings.epochs is None:
        return 0.0
    return epoch_seconds(settings, graphs, len(run.folds()[0].rest)) * settings.epochs
