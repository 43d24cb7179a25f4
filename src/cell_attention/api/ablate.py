"""`ablate`: how much every part of the network contributes, paired fold by fold."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cell_attention._files import write_whole
from cell_attention.api.crossvalidate import watched_workers
from cell_attention.api.experiment import Engine, Split, plan_experiment, working_folder
from cell_attention.api.reading import Data, Reading
from cell_attention.arguments import checked
from cell_attention.data.file_format import Columns, FileFormat, OnError
from cell_attention.data.splits.folds import Splits
from cell_attention.errors import InputError
from cell_attention.evaluation import ablation
from cell_attention.evaluation.ablation import Ablation
from cell_attention.evaluation.crossval import complete_runs
from cell_attention.evaluation.run_folder import RunFolder
from cell_attention.models.settings import Protocol
from cell_attention.nn.config import NetworkConfig
from cell_attention.parallel.engine import Workers
from cell_attention.progress import Progress
from cell_attention.training.class_weights import ClassWeights
from cell_attention.training.config import TrainingConfig
from cell_attention.training.threads import one_thread


@checked
def ablate(
    data: Data,
    *,
    network: NetworkConfig | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    folds: int | Splits = 10,
    protocol: Protocol = "paper",
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
) -> Ablation:
    """Cross-validate the network and each ablation of it on the same folds.

    folder: where to write a RUN_DIR per variant, ablation.json, .md and .svg. The other arguments
    are those of `crossvalidate`.
    """
    reading = Reading(on_error, data_dir, node_attributes, columns, file_format)
    shown, workers = progress or Progress(), Workers(jobs, engine, checkpoint_seconds)
    with one_thread(), working_folder(folder) as place:
        _require_free(place)
        experiment = plan_experiment(
            data, "can", network=network, training=training, folds=folds, split=split,
            protocol=protocol, metric=metric, class_weights=class_weights,
            search_trials=search_trials, reading=reading, progress=shown,
        )  # fmt: skip
        graphs, splits = experiment.graph_set.graphs, experiment.splits
        with ExitStack() as held:
            runs = {}
            for name, variant in ablation.variants(experiment.settings).items():
                below = place / ablation.folder_of(name)
                runs[name] = held.enter_context(
                    RunFolder.begin(below, variant, splits, fresh=fresh)
                )
            ready = held.enter_context(
                watched_workers(list(runs.values()), graphs, workers, progress=shown)
            )
            results = complete_runs(runs, graphs, ready)
        paper = experiment.settings.network.design == "paper"
        found = ablation.compare_variants(experiment.graph_set.name, results, paper)
        write_whole(place / "ablation.json", json.dumps(found.record(), indent=2) + "\n")
        write_whole(place / "ablation.md", found.as_markdown())
        ablation.draw_ablation(place / "ablation.svg", found)
        return found


def _require_free(folder: Path) -> None:
    if folder.is_file():
        raise InputError(f"folder {folder} is a file; name another")
    for name in ("run.json", "search.json", "config.json"):
        if (folder / name).exists():
            raise InputError(f"folder {folder} has files of another command ({name}); name another")
