"""`pretrain`: learn a network on graphs without targets, from masked cells."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from cell_attention.api.configuration import resolve_config
from cell_attention.api.reading import Data, Reading, read_set
from cell_attention.api.run_plan import run_plan
from cell_attention.arguments import checked
from cell_attention.data.file_format import (
    NO_DESCRIPTORS,
    Columns,
    FileFormat,
    OnError,
    is_molecule_file,
)
from cell_attention.data.splits.folds import Splits, holdout
from cell_attention.data.splits.options import SEED, SplitOptions
from cell_attention.errors import InputError
from cell_attention.inference.model_folder import Model
from cell_attention.inference.pretraining import PretrainingPlan, without_targets
from cell_attention.models.settings import Settings, data_digest, meaning_of
from cell_attention.nn.config import NetworkConfig
from cell_attention.progress import Progress
from cell_attention.training.config import TrainingConfig
from cell_attention.training.threads import one_thread


@checked
def pretrain(
    data: Data,
    *,
    network: NetworkConfig | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    mask: float = 0.15,
    validation: float = 0.1,
    split_seed: int = SEED,
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
    """Train a cell attention network to predict masked cells; targets are neither needed nor read.

    The model predicts nothing: `train(…, from_model=…)` starts from its weights, and `fingerprint`
    returns its vectors.

    mask: share of the nodes, edges and polygons that are masked.
    validation: share of the graphs, chosen at random with `split_seed`, that choose the epoch by
        the accuracy on their masked cells.
    folder: a MODEL_DIR to save to, where the same call resumes an interrupted training. The other
        arguments are those of `train`.
    """
    if not 0.0 < mask < 1.0:
        raise InputError(f"mask must lie in (0, 1), got {mask}")
    if not checkpoint_seconds >= 0:
        raise InputError(f"checkpoint_seconds must not be negative, got {checkpoint_seconds}")
    if not set(columns.descriptors or ()) <= set(NO_DESCRIPTORS):
        raise InputError("pretraining uses no descriptors: no masked cell is predicted from them")
    if isinstance(data, str | Path) and is_molecule_file(data):
        columns = replace(columns, targets=())
    reading = Reading(on_error, data_dir, node_attributes, columns, file_format)
    shown = progress or Progress()
    configs = resolve_config("can", data, network=network, training=training)
    reading = reading.for_network(data, "can", configs[0], usual=("none",))
    with one_thread():
        graph_set = without_targets(
            read_set(
                data, configs[0].max_polygon, reading=reading, split=SplitOptions(), progress=shown
            )
        )
        graphs = graph_set.graphs
        numbers = torch.zeros(len(graphs))  # in the place of targets: the split is random
        fold = holdout(numbers, validation, 0.0, seed=split_seed, stratified=False)
        splits = Splits.of((fold,), f"{validation:g} for validation, random, seed {split_seed}")
        settings = Settings(
            graph_set.name, len(graphs), data_digest(graphs), splits.origin, splits.digest,
            *configs, meaning=meaning_of(graph_set), mask=mask,
        )  # fmt: skip
        return run_plan(
            PretrainingPlan(settings, graph_set, fold), folder, fresh=fresh,
            checkpoint_seconds=checkpoint_seconds, progress=shown,
        )  # fmt: skip
