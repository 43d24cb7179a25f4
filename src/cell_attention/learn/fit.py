"""One model from one data set: trained until validation no longer improves, saved at its best."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import torch

from cell_attention._files import is_unfinished
from cell_attention.data.dataset import GraphSet
from cell_attention.data.splits import Fold
from cell_attention.errors import DataError, InputError
from cell_attention.learn import checkpoint
from cell_attention.learn.engine import Report
from cell_attention.learn.question import Question, versions
from cell_attention.learn.runs import alone_in, read_object
from cell_attention.learn.tasks import task_of
from cell_attention.learn.training import Training
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.topology.complex import CellComplex

UNFINISHED = "training.checkpoint"
_MADE_HERE = (
    checkpoint.CONFIG, checkpoint.WEIGHTS, checkpoint.SPLITS, checkpoint.METRICS, UNFINISHED,
)  # fmt: skip


@dataclass(frozen=True)
class Fitting:
    """What is to be trained on what."""

    question: Question
    graph_set: GraphSet
    complexes: CellComplex
    fold: Fold


def fit(
    folder: Path, fitting: Fitting, fresh: bool, checkpoint_seconds: float, report: Report
) -> checkpoint.Model:
    """Train into a MODEL_DIR, from its last checkpoint if there is one; a model that the same
    question has led to is only loaded.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder} is a file; name a folder")
    foreign = [
        path.name
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.name not in _MADE_HERE and not is_unfinished(path)
    ]
    if foreign:
        raise InputError(f"--out {folder} holds other files ({foreign[0]}); name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder):
        for path in folder.iterdir():
            if fresh or is_unfinished(path):
                path.unlink()
        digest = fitting.question.digest()
        if (folder / checkpoint.CONFIG).is_file():
            there = read_object(folder / checkpoint.CONFIG).get("provenance")
            if not isinstance(there, dict) or there.get("question") != digest:
                raise InputError(
                    f"--out {folder} holds another model; name another folder, or use --fresh to "
                    "replace it"
                )
            (folder / UNFINISHED).unlink(missing_ok=True)
            model = checkpoint.load_model(folder)
            missing = {"reached", "epochs", "best_epoch", "score"} - model.provenance.keys()
            if missing:
                raise DataError(f"{folder / checkpoint.CONFIG}: provenance has no {min(missing)}")
            return model
        return _train(folder, fitting, digest, checkpoint_seconds, report)


def _train(
    folder: Path, fitting: Fitting, digest: str, seconds: float, report: Report
) -> checkpoint.Model:
    question, complexes, fold = fitting.question, fitting.complexes, fitting.fold
    task = task_of(complexes, torch.tensor(fold.train), question.class_weights)
    training = Training(
        complexes, fold.train, fold.validation, task, question.network, question.training,
        seed=(question.training.seed,), keep_best=True,
    )  # fmt: skip
    training.complete(folder / UNFINISHED, digest, seconds, report)
    training.take_best()
    reached = {
        name: asdict(training.evaluate(torch.tensor(graphs))) if graphs else None
        for name, graphs in asdict(fold).items()
    }
    provenance = {
        "question": digest,
        **question.record(),
        "epochs": training.epochs_done,
        "best_epoch": training.curves.best_epoch,
        "score": task.score_name,
        "reached": reached,
        "versions": versions(),
    }
    del provenance["network"]  # it stands beside the provenance
    network = cast(CellAttentionNetwork, training.network.eval())
    graph_set = fitting.graph_set
    model = checkpoint.Model(
        network, task.kind, graph_set.class_names, graph_set.featuriser, provenance
    )
    checkpoint.save_model(folder, model, fold, training.curves)
    (folder / UNFINISHED).unlink(missing_ok=True)
    return model
