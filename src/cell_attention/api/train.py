"""`train`: train one model on one data set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cell_attention.api.experiment import (
    Data,
    Reading,
    Split,
    note_duplicates,
    note_untaught,
    read_set,
    resolve_config,
    split_options,
    weights_for,
)
from cell_attention.arguments import checked
from cell_attention.data.dataset import Columns, OnError
from cell_attention.errors import InputError
from cell_attention.inference.fit import TrainingPlan, fit_into, make_model, train_members
from cell_attention.inference.model_folder import CONFIG, Model
from cell_attention.models.network_fitter import warm_up
from cell_attention.models.registry import find_model
from cell_attention.models.settings import Settings, columns_of, data_digest, meaning_of
from cell_attention.models.timing import epoch_seconds
from cell_attention.nn.config import NetworkConfig
from cell_attention.progress import Progress, duration
from cell_attention.topology.compiled import announced_compilation
from cell_attention.training.class_weights import ClassWeights
from cell_attention.training.config import TrainingConfig
from cell_attention.training.tasks import choose_metric
from cell_attention.training.threads import one_thread


@checked
def train(
    data: Data,
    model: str = "can",
    *,
    network: NetworkConfig | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    validation: float = 0.1,
    test: float = 0.1,
    split: Split = "auto",
    metric: str | None = None,
    class_weights: ClassWeights = "auto",
    ensemble: int = 1,
    search_trials: int = 0,
    on_error: OnError = "fail",
    data_dir: str | Path | None = None,
    node_attributes: bool = False,
    columns: Columns = Columns(),  # noqa: B008 - frozen, so sharing one is safe
    folder: str | Path | None = None,
    fresh: bool = False,
    checkpoint_seconds: float = 10.0,
    progress: Progress | None = None,
) -> Model:
    """Train a network of the registry until validation stops improving; keep its best epoch.

    validation, test: shares of the graphs that choose the epoch, and that are scored once at the
        end.
    ensemble: number of networks, which differ in their seed; predictions are their mean.
    folder: a MODEL_DIR to save to, where the same call resumes an interrupted training. The other
        arguments are those of `crossvalidate`.
    """
    if not find_model(model).epochs:
        raise InputError(f"model {model!r} is not a network and cannot be saved; cross-validate it")
    if not 1 <= ensemble <= 100:
        raise InputError(f"ensemble must lie in 1…100, got {ensemble}")
    if not checkpoint_seconds >= 0:
        raise InputError(f"checkpoint_seconds must not be negative, got {checkpoint_seconds}")
    reading = Reading(on_error, data_dir, node_attributes, columns)
    shown, options = progress or Progress(), split_options(split)
    configs = resolve_config(model, data, network=network, training=training)
    with one_thread():
        graph_set = read_set(
            data, configs[0].max_polygon, reading=reading, split=options, progress=shown
        )
        graphs, targets = graph_set.graphs, graph_set.require_targets()
        splits = options.holdout(graph_set, validation, test)
        fold = splits.folds[0]
        unused = len(targets) - len(fold.rest) - len(fold.held_out)
        if unused:
            shown.remark(f"{unused:,} of {len(targets):,} graphs are in no split and are not used")
        note_duplicates(graph_set, splits, shown)
        ranked = graph_set.molecules is not None
        chosen, remark = choose_metric(metric, graph_set, splits.folds, ranked=ranked)
        if remark:
            shown.remark(remark)
        note_untaught(graph_set, splits, shown)
        weights = weights_for(class_weights, graph_set, model, metric=chosen, progress=shown)
        settings = Settings(
            graph_set.name, len(graphs), data_digest(graphs), splits.origin, splits.digest,
            *configs, weights, model, searched=search_trials, metric=chosen,
            ensemble=ensemble, task=graph_set.kind, meaning=meaning_of(graph_set),
            columns=columns_of(graph_set),
        )  # fmt: skip
        plan = TrainingPlan(settings, graph_set, fold)
        return _fit(
            plan,
            None if folder is None else Path(folder),
            fresh=fresh,
            seconds=checkpoint_seconds,
            progress=shown,
        )


def _fit(
    plan: TrainingPlan, folder: Path | None, *, fresh: bool, seconds: float, progress: Progress
) -> Model:
    settings, graphs = plan.settings, plan.graph_set.graphs
    with announced_compilation(progress.compiling):
        warm_up(settings, graphs)
    finished = folder is not None and (folder / CONFIG).exists()
    if progress.shows_time and not finished:
        count, epochs = len(plan.fold.train), settings.training.epochs
        time = epoch_seconds(settings, graphs, count) * epochs * len(plan.members)
        progress.remark(
            f"about {duration(time)} for {epochs} epochs of {count:,} graphs, less if validation "
            "stops improving earlier"
        )
    with progress.jobs(len(plan.members), settings.training.epochs) as heard:
        if folder is None:
            return make_model(plan, train_members(plan, heard), settings.digest())
        return fit_into(folder, plan, fresh=fresh, checkpoint_seconds=seconds, progress=heard)
