"""One model from one data set: trained until validation no longer improves, saved at its best."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from cell_attention._files import is_unfinished
from cell_attention.data.dataset import GraphSet
from cell_attention.data.splits.folds import Fold
from cell_attention.errors import DataError, InputError
from cell_attention.evaluation.run_folder import alone_in, read_object
from cell_attention.inference import model_folder as checkpoint
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import predict
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.parallel.engine import Watch
from cell_attention.topology.complex import CellComplex
from cell_attention.training.loop import Training
from cell_attention.training.metrics import best_thresholds, measured, metrics_of
from cell_attention.training.settings import Question, versions

_UNFINISHED = "training*.checkpoint"


@dataclass(frozen=True)
class Fitting:
    """What is to be trained on what."""

    question: Question
    graph_set: GraphSet
    complexes: CellComplex
    fold: Fold

    @property
    def members(self) -> list[str]:
        """The networks to train, by the names that people know them by."""
        count = self.question.ensemble
        return ["training"] if count == 1 else [f"member {k + 1} of {count}" for k in range(count)]

    def training(self, member: int) -> Training:
        """The training of one network, before its first epoch."""
        question = self.question
        own = (question.training.seed,) if member == 0 else (question.training.seed, member)
        return Training(
            self.complexes, self.fold.train, self.fold.validation,
            question.task_on(self.complexes, self.fold.train), question.network, question.training,
            seed=own, keep_best=True,
        )  # fmt: skip


def fit(
    folder: Path, fitting: Fitting, fresh: bool, checkpoint_seconds: float, watch: Watch
) -> Model:
    """Train into a MODEL_DIR, from its last checkpoint if there is one; a model that the same
    question has led to is only loaded.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder} is a file; name a folder")
    foreign = [
        path.name
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.name not in checkpoint.FILES
        and not path.match(_UNFINISHED)
        and not is_unfinished(path)
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
            model = _finished(folder, digest)
        else:
            trainings = trained(fitting, watch, folder, digest, checkpoint_seconds)
            model = fitted(fitting, trainings, digest)
            curves = [training.curves for training in trainings]
            checkpoint.save_model(folder, model, fitting.fold, curves)
        for path in folder.glob(_UNFINISHED):
            path.unlink()
        return model


def _finished(folder: Path, digest: str) -> Model:
    there = read_object(folder / checkpoint.CONFIG).get("provenance")
    if not isinstance(there, dict) or there.get("question") != digest:
        raise InputError(
            f"--out {folder} holds another model; name another folder, or use --fresh to replace it"
        )
    model = checkpoint.load_model(folder)
    missing = {"reached", "epochs", "best_epoch", "score"} - model.provenance.keys()
    if missing:
        raise DataError(f"{folder / checkpoint.CONFIG}: provenance has no {min(missing)}")
    if not _is_reached(model.provenance["reached"]):
        raise DataError(f"{folder / checkpoint.CONFIG}: reached is not what a training reaches")
    return model


def _is_reached(found: Any) -> bool:
    """Whether this has the form that `fitted` writes."""
    return isinstance(found, dict) and all(
        part is None
        or (isinstance(part, dict) and "loss" in part and isinstance(part.get("metrics"), dict))
        for part in (found.get(name, 0) for name in ("train", "validation", "test"))
    )


def trained(
    fitting: Fitting,
    watch: Watch = lambda name, numbers: None,
    folder: Path | None = None,
    digest: str = "",
    checkpoint_seconds: float = 0.0,
) -> list[Training]:
    """Every member at its best epoch; with a folder, from the last checkpoint there."""
    trainings = []
    for member, name in enumerate(fitting.members):
        training = fitting.training(member)
        path = None if folder is None else folder / _checkpoint_name(member)
        training.complete(path, digest, checkpoint_seconds, _to(watch, name))
        if path is not None and len(fitting.members) > 1:
            training.save(path, digest)  # the members that follow may be interrupted
        watch(name, {})
        training.take_best()
        trainings.append(training)
    return trainings


def _checkpoint_name(member: int) -> str:
    return "training.checkpoint" if member == 0 else f"training-{member}.checkpoint"


def _to(watch: Watch, name: str) -> Callable[[dict[str, float]], None]:
    return lambda numbers: watch(name, numbers)


def fitted(fitting: Fitting, trainings: Sequence[Training], digest: str) -> Model:
    """The model that finished trainings have led to: its threshold from the validation graphs,
    its outputs in the units of the targets.
    """
    question, fold, task = fitting.question, fitting.fold, trainings[0].task
    parts = {name: torch.tensor(graphs) for name, graphs in asdict(fold).items() if graphs}
    losses = {
        name: sum(training.evaluate(graphs).loss for training in trainings) / len(trainings)
        for name, graphs in parts.items()
    }
    members = tuple(_in_units(training) for training in trainings)
    provenance = {
        "question": digest,
        **question.record(),
        "epochs": trainings[0].epochs_done,
        "best_epoch": trainings[0].curves.best_epoch,
        "score": task.score_name,
        "versions": versions(),
    }
    del provenance["network"]  # it stands beside the provenance
    graph_set = fitting.graph_set
    plain = Model(
        members, task.kind, graph_set.class_names, graph_set.featuriser, provenance,
        graph_set.target_names, (), seen_in(graph_set, fold.train),
    )  # fmt: skip
    guessed = {name: predict(plain, fitting.complexes[graphs]).values for name, graphs in parts.items()}  # fmt: skip # noqa: E501
    targets = cast(Tensor, fitting.complexes.targets)
    known = {name: targets[graphs] for name, graphs in parts.items()}
    limits = best_thresholds(task.kind, guessed["validation"], known["validation"])
    reached: dict[str, Any] = dict.fromkeys(asdict(fold))
    for name in parts:
        found = {
            metric: measured(metric, task.kind, guessed[name], known[name], limits)
            for metric in metrics_of(task.kind)
        }
        score = task.score_of(guessed[name], known[name])
        defined = {metric: value for metric, value in found.items() if value == value}
        reached[name] = {"loss": losses[name], "score": score, "metrics": defined}
    provenance["reached"] = reached
    return replace(plain, thresholds=limits)


def _in_units(training: Training) -> CellAttentionNetwork:
    """The network, its last layer rescaled so that it gives values in their own units."""
    network, task = cast(CellAttentionNetwork, training.network.eval()), training.task
    if task.centre is not None and task.scale is not None:
        last = cast(torch.nn.Linear, network.head[1])
        with torch.no_grad():
            last.weight.mul_(task.scale[:, None])
            last.bias.mul_(task.scale).add_(task.centre)
    return network


def seen_in(graph_set: GraphSet, train: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Elements and bond types of the training graphs, where these are known to be molecules."""
    graphs, molecules = graph_set.graphs, graph_set.molecules
    if molecules is not None:
        elements, bonds = molecules.elements, molecules.bonds
    elif "elements" in graph_set.featuriser and graphs.edge_features is not None:
        from cell_attention.data.molecules.rebuild import decoded  # RDKit takes a while to import

        elements, bonds = decoded(graphs, graph_set.featuriser)
    else:
        return {}
    chosen = torch.tensor(train)
    return {
        "elements": _distinct(elements[torch.isin(graphs.node_complex, chosen)]),
        "bonds": _distinct(bonds[torch.isin(graphs.edge_complex, chosen)]),
    }


def _distinct(numbers: Tensor) -> tuple[int, ...]:
    return tuple(numbers.unique().tolist())
