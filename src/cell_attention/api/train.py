"""`train`: train one model on one data set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from cell_attention.api.configuration import resolve_config
from cell_attention.api.experiment import (
    Split,
    note_duplicates,
    note_untaught,
    split_options,
    weights_for,
)
from cell_attention.api.reading import Data, Reading, read_set
from cell_attention.api.run_plan import run_plan
from cell_attention.arguments import checked
from cell_attention.data.file_format import USUAL_DESCRIPTORS, Columns, FileFormat, OnError
from cell_attention.data.splits.folds import Fold, Splits, require_fold
from cell_attention.data.splits.options import SplitOptions
from cell_attention.errors import InputError
from cell_attention.inference.fit import TrainingPlan
from cell_attention.inference.model_folder import Model
from cell_attention.inference.origin import Origin, transfer, transfer_line
from cell_attention.models.registry import find_model
from cell_attention.models.settings import Settings, columns_of, data_digest, meaning_of
from cell_attention.nn.config import NetworkConfig
from cell_attention.progress import Progress
from cell_attention.training.class_weights import ClassWeights
from cell_attention.training.config import TrainingConfig
from cell_attention.training.metric_choice import choose_metric
from cell_attention.training.threads import one_thread

AnyModel = Model | str | Path
"""A trained model, or its MODEL_DIR."""


@checked
def train(
    data: Data,
    model: str = "can",
    *,
    network: NetworkConfig | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    validation: float = 0.1,
    test: float = 0.1,
    split: Split | Splits = "auto",
    metric: str | None = None,
    class_weights: ClassWeights = "auto",
    sample_weights: Tensor | None = None,
    ensemble: int = 1,
    from_model: AnyModel | None = None,
    freeze: tuple[str, ...] = (),
    search_trials: int = 0,
    on_error: OnError = "fail",
    data_dir: str | Path | None = None,
    node_attributes: bool = False,
    columns: Columns = Columns(),  # noqa: B008 - frozen, so sharing one is safe
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    folder: str | Path | None = None,
    fresh: bool = False,
    checkpoint_seconds: float = 10.0,
    progress: Progress | None = None,
) -> Model:
    """Train a network of the registry and keep its last epoch, or with patience stop
    when validation no longer improves and keep its best one.

    validation, test: shares of the graphs that choose the threshold, and with patience the
        epoch, and that are scored once at the end.
    split: a rule, `SplitOptions`, or `Splits` of one fold, which names the graphs.
    sample_weights: (graphs,) what the training loss of every graph is multiplied by, relative to
        the mean over the training graphs; scores count every graph alike.
    ensemble: number of networks, which differ in their seed; predictions are their mean.
    from_model: a Model or a MODEL_DIR whose weights the training starts from, and whose network it
        takes over; its output layers are new unless it has the same targets.
    freeze: the parts of the network that keep these weights, such as "start", "layers" or
        "layers.0".
    folder: a MODEL_DIR to save to, where the same call resumes an interrupted training. The other
        arguments are those of `crossvalidate`.
    """
    if not find_model(model).epochs:
        raise InputError(f"model {model!r} is not a network and cannot be saved; cross-validate it")
    if not 1 <= ensemble <= 100:
        raise InputError(f"ensemble must lie in 1…100, got {ensemble}")
    if not checkpoint_seconds >= 0:
        raise InputError(f"checkpoint_seconds must not be negative, got {checkpoint_seconds}")
    origin = _origin(from_model, freeze, folder)
    reading = Reading(on_error, data_dir, node_attributes, columns, file_format)
    shown = progress or Progress()
    options = SplitOptions() if isinstance(split, Splits) else split_options(split)
    configs = resolve_config(
        model, data, network=network, training=training,
        origin=origin.model.config if origin and origin.model.name == model else None,
        descriptors=columns.descriptors,
    )  # fmt: skip
    usual = USUAL_DESCRIPTORS if origin is None else origin.descriptors
    reading = reading.for_network(data, model, configs[0], usual=usual)
    with one_thread():
        graph_set = read_set(
            data, configs[0].max_polygon, reading=reading, split=options, progress=shown
        )
        graphs, targets = graph_set.graphs, graph_set.require_targets()
        if isinstance(split, Splits):
            splits = Splits.of(split.folds[:1], split.origin)
            require_fold("split", splits.folds[0], len(targets))
        else:
            splits = options.holdout(graph_set, validation, test)
        fold = splits.folds[0]
        given = _relative(sample_weights, fold, len(targets))
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
            graph_set.name, len(graphs), data_digest(graphs, given), splits.origin, splits.digest,
            *configs, weights, model, searched=search_trials, metric=chosen,
            ensemble=ensemble, task=graph_set.kind, meaning=meaning_of(graph_set),
            origin=origin.digest if origin else "", freeze=tuple(sorted({*freeze})),
            columns=columns_of(graph_set),
        )  # fmt: skip
        plan = TrainingPlan(settings, graph_set, fold, origin, given)
        if origin is not None:
            _note_origin(origin, plan, shown)
        return run_plan(
            plan, folder, fresh=fresh, checkpoint_seconds=checkpoint_seconds, progress=shown
        )


def _relative(weights: Tensor | None, fold: Fold, graphs: int) -> Tensor | None:
    """Return sample weights whose mean over the training graphs is one; refuse wrong ones."""
    if weights is None:
        return None
    if tuple(weights.shape) != (graphs,):
        raise InputError(f"sample_weights must be ({graphs},), got {tuple(weights.shape)}")
    given = weights.double()
    if not bool((given.isfinite() & (given >= 0)).all()):
        raise InputError("sample_weights must be finite and not negative")
    mean = given[list(fold.train)].mean()
    if not mean > 0:
        raise InputError("sample_weights must not be zero for all training graphs")
    return (given / mean).float()


def _origin(
    from_model: AnyModel | None, freeze: tuple[str, ...], folder: str | Path | None
) -> Origin | None:
    """Load the model to start from; refuse one that the result would replace."""
    if from_model is None:
        if freeze:
            raise InputError(f"freeze needs from_model, got {', '.join(freeze)} without one")
        return None
    there = None if isinstance(from_model, Model) else Path(from_model)
    if there and folder is not None and Path(folder).resolve() == there.resolve():
        raise InputError(f"folder {folder} is from_model itself; name another folder")
    return Origin.of(from_model, freeze)


def _note_origin(origin: Origin, plan: TrainingPlan, progress: Progress) -> None:
    """Check that the model fits the data; report what is copied, new and frozen."""
    settings, graph_set = plan.settings, plan.graph_set
    origin.require_fitting(settings.model, settings.network, graph_set)
    training = plan.training(0)
    progress.remark(transfer_line(transfer(training.start, training.network)))
    if leak := origin.leak(settings):
        progress.remark(leak)
