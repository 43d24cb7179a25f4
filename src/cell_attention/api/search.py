"""`search`: a better configuration, chosen by inner validation scores only."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cell_attention.api.experiment import Engine, Split, plan_experiment, working_folder
from cell_attention.api.reading import Data, Reading
from cell_attention.arguments import checked
from cell_attention.data.file_format import Columns, FileFormat, OnError
from cell_attention.data.splits.folds import Splits
from cell_attention.errors import InputError
from cell_attention.models.network_fitter import warm_up
from cell_attention.nn.config import NetworkConfig
from cell_attention.parallel.engine import Workers
from cell_attention.progress import Progress
from cell_attention.training.class_weights import ClassWeights
from cell_attention.training.config import TrainingConfig
from cell_attention.training.threads import one_thread
from cell_attention.tuning.search import run_search
from cell_attention.tuning.search_folder import SearchResult, SearchSettings
from cell_attention.tuning.space import Space, check_space, space_of, usual_space
from cell_attention.tuning.study import import_optuna


@checked
def search(
    data: Data,
    model: str = "can",
    *,
    trials: int = 30,
    space: Mapping[str, Mapping[str, Any]] | None = None,
    space_name: str = "space",
    nested: bool = False,
    at_once: int = 2,
    network: NetworkConfig | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    folds: int | Splits = 10,
    split: Split = "auto",
    metric: str | None = None,
    class_weights: ClassWeights = "auto",
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
) -> SearchResult:
    """Search for a configuration with Optuna; the same call with more `trials` extends a search.

    space: the fields to search, by table (shape, network, training): a list of values, or
        {low, high, log}; None is the model's default space.
    space_name: the name of the space in messages.
    nested: one search per fold, whose winner is scored once on the held-out graphs of that fold.
    at_once: number of trials that are drawn together. The other arguments are those of
        `crossvalidate`.
    """
    for name, number in (("trials", trials), ("at_once", at_once)):
        if number < 1:
            raise InputError(f"{name} must be at least 1, got {number}")
    import_optuna()
    given: Space | None = None if space is None else space_of(space, space_name)
    reading = Reading(on_error, data_dir, node_attributes, columns, file_format)
    shown, workers = progress or Progress(), Workers(jobs, engine, checkpoint_seconds)
    with one_thread(), working_folder(folder) as place:
        experiment = plan_experiment(
            data, model, network=network, training=training, folds=folds, split=split,
            protocol="fair", metric=metric, class_weights=class_weights,
            search_trials=search_trials, reading=reading, progress=shown,
        )  # fmt: skip
        settings, graphs = experiment.settings, experiment.graph_set.graphs
        made = given or usual_space(model, settings.network.design)
        if given is not None:
            usual = settings.network, settings.training
            check_space(given, model, usual, where=space_name)
        warm_up(settings, graphs)
        planned = len(experiment.splits.folds) * (trials + 1 + 3 * nested)
        planned -= sum(1 for _ in place.rglob("fair-*.json"))
        with shown.jobs(max(planned, 0), settings.training.epochs) as heard:
            return run_search(
                place, SearchSettings(settings, made, nested, at_once), splits=experiment.splits,
                complexes=graphs, trials=trials, workers=replace(workers, progress=heard),
                fresh=fresh,
            )  # fmt: skip
