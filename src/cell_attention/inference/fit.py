"""Fitting a model to a data set, with early stopping; the weights of the best epoch are kept."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from torch import Tensor

from cell_attention._files import is_unfinished, lock_folder, open_tensors, read_json
from cell_attention.data.dataset import GraphSet
from cell_attention.data.splits.folds import Fold
from cell_attention.errors import DataError, InputError
from cell_attention.inference import model_folder
from cell_attention.inference.model_folder import Model
from cell_attention.inference.model_saving import save_model
from cell_attention.inference.origin import Origin, transfer
from cell_attention.inference.prediction import member_outputs, predictions_from
from cell_attention.inference.reached import calibrated, is_reached, reached_on
from cell_attention.inference.seen import neighbours_in, ranges_in, seen_in
from cell_attention.models.network_fitter import in_units, start_training, warm_up
from cell_attention.models.registry import sizes_of
from cell_attention.models.settings import Settings, versions
from cell_attention.models.timing import epoch_seconds
from cell_attention.training.loop import Training
from cell_attention.training.start import Start

JobProgress = Callable[[str, dict[str, float]], None]
_UNFINISHED = "training*.checkpoint"


@dataclass(frozen=True)
class TrainingPlan:
    """The settings of a training, and its data."""

    settings: Settings
    graph_set: GraphSet
    """The graphs, lifted."""
    fold: Fold
    origin: Origin | None = None
    """The model whose weights the training starts from."""
    sample_weights: Tensor | None = None
    """(graphs,) what the training loss of every graph is multiplied by."""

    @property
    def members(self) -> list[str]:
        """Names of the networks to train, for people."""
        count = self.settings.ensemble
        return ["training"] if count == 1 else [f"member {k + 1} of {count}" for k in range(count)]

    def training(self, member: int) -> Training:
        """Set up the training of one network, before its first epoch."""
        settings, graphs = self.settings, self.graph_set.graphs
        seed, task = settings.training.seed, settings.task_on(graphs, self.fold.train)
        start = Start()
        if self.origin is not None:
            start = self.origin.start(member, settings, graph_set=self.graph_set, task=task)
        return start_training(
            graphs, self.fold.train, self.fold.validation, task=task, network=settings.network,
            training=settings.training, seed=(seed,) if member == 0 else (seed, member),
            keep_best=True, model=settings.model, start=start,
            sample_weights=self.sample_weights,
        )  # fmt: skip

    def warm_up(self) -> None:
        """Do one small step, so that kernels are compiled."""
        warm_up(self.settings, self.graph_set.graphs)

    def epoch_seconds(self) -> float:
        """Estimate the seconds of an epoch from one step."""
        return epoch_seconds(self.settings, self.graph_set.graphs, len(self.fold.train))

    def model(self, trainings: Sequence[Training], digest: str) -> Model:
        """Make the model of finished trainings."""
        return make_model(self, trainings, digest)


def fit_into(
    folder: Path,
    plan: TrainingPlan,
    *,
    fresh: bool,
    checkpoint_seconds: float,
    progress: JobProgress,
) -> Model:
    """Train into a MODEL_DIR, resuming from its checkpoints; a finished model with the same
    settings is only loaded.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"folder {folder} is a file; name another")
    foreign = [
        path.name
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.name not in model_folder.FILES
        and not path.match(_UNFINISHED)
        and not is_unfinished(path)
    ]
    if foreign:
        raise InputError(f"folder {folder} has other files ({foreign[0]}); name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        for path in folder.iterdir():
            if fresh or is_unfinished(path):
                path.unlink()
        if (folder / model_folder.CONFIG).is_file():
            model = _load_finished(folder, plan.settings)
        else:
            digest = _digest_of(folder, plan.settings)
            trainings = train_members(
                plan, progress, folder=folder, digest=digest, checkpoint_seconds=checkpoint_seconds
            )
            model = plan.model(trainings, digest)
            curves = [training.curves for training in trainings]
            save_model(folder, model, fold=plan.fold, curves=curves)
        for path in folder.glob(_UNFINISHED):
            path.unlink()
        return model


def _digest_of(folder: Path, settings: Settings) -> str:
    """Return the digest in the checkpoints of this folder: that of the version which started the
    training, since a later version may have more fields.
    """
    known = settings.digests()
    for path in folder.glob(_UNFINISHED):
        try:
            with open_tensors(path) as file:
                state = json.loads((file.metadata() or {})["state"])
            digest = state.get("settings", state.get("question"))
        except (SafetensorError, ValueError, KeyError, AttributeError):
            continue  # `Training.restore` says what is wrong with it
        if digest in known:
            return str(digest)
    return known[0]


def _load_finished(folder: Path, settings: Settings) -> Model:
    there = read_json(folder / model_folder.CONFIG).get("provenance")
    known = there.get("settings", there.get("question")) if isinstance(there, dict) else None
    if known not in settings.digests():
        raise InputError(
            f"folder {folder} has another model; name another folder, or use fresh to replace it"
        )
    model = model_folder.load_model(folder)
    missing = {"reached", "epochs", "best_epoch", "score"} - model.provenance.keys()
    if missing:
        raise DataError(f"{folder / model_folder.CONFIG}: provenance.{min(missing)} is missing")
    if not is_reached(model.provenance["reached"]):
        raise DataError(f"{folder / model_folder.CONFIG}: provenance.reached is not valid")
    return model


def train_members(
    plan: TrainingPlan,
    progress: JobProgress = lambda name, numbers: None,
    *,
    folder: Path | None = None,
    digest: str = "",
    checkpoint_seconds: float = 0.0,
) -> list[Training]:
    """Train every member and take its best epoch; with a folder, resume from checkpoints there."""
    trainings = []
    for member, name in enumerate(plan.members):
        training = plan.training(member)
        path = None if folder is None else folder / _checkpoint_name(member)
        training.complete(path, digest, seconds=checkpoint_seconds, report=_named(progress, name))
        if path is not None and len(plan.members) > 1:
            training.save(path, digest)  # the members that follow may be interrupted
        progress(name, {})
        training.take_best()
        trainings.append(training)
    return trainings


def _checkpoint_name(member: int) -> str:
    return "training.checkpoint" if member == 0 else f"training-{member}.checkpoint"


def _named(progress: JobProgress, name: str) -> Callable[[dict[str, float]], None]:
    return lambda numbers: progress(name, numbers)


def make_model(plan: TrainingPlan, trainings: Sequence[Training], digest: str) -> Model:
    """Make the model of finished trainings: the validation graphs choose its threshold, and its
    outputs are in the units of the targets.
    """
    settings, fold, task = plan.settings, plan.fold, trainings[0].task
    graph_set, graphs = plan.graph_set, plan.graph_set.graphs
    parts = {name: torch.tensor(rows) for name, rows in asdict(fold).items() if rows}
    losses = {
        name: sum(training.evaluate(rows).loss for training in trainings) / len(trainings)
        for name, rows in parts.items()
    }
    members = tuple(in_units(training) for training in trainings)
    provenance = {
        "settings": digest,
        **settings.record(),
        "epochs": trainings[0].epochs_done,
        "best_epoch": trainings[0].kept_epoch,
        "score": task.score_name,
        "versions": versions(settings.model),
    }
    if plan.origin is not None:
        source = plan.origin.model.provenance.get("source")
        moved = transfer(trainings[0].start, trainings[0].network)
        provenance["transfer"] = {"source": source, **moved}
    del provenance["network"]  # it has its own entry in config.json
    if graph_set.molecules is not None and graph_set.molecules.column:
        provenance["molecule_column"] = graph_set.molecules.column
    plain = Model(
        members, task.kind, graph_set.class_names, graph_set.featuriser, provenance,
        graph_set.target_names, (), seen_in(graph_set, fold.train), settings.model,
        getattr(trainings[0].network, "config", settings.network),
        sizes_of(settings.model, graphs, task.outputs),
        ranges_in(graphs, fold.train) if task.kind == "values" else (),
        neighbours=neighbours_in(graph_set, fold.train),
    )  # fmt: skip
    targets = cast(Tensor, graphs.exact_targets)
    known = {name: task.scored(targets[rows]) for name, rows in parts.items()}
    outputs = {name: member_outputs(plain, graphs[rows]) for name, rows in parts.items()}
    before = {name: predictions_from(plain, found).values for name, found in outputs.items()}
    made = calibrated(plain, outputs["validation"], known["validation"])
    reached: dict[str, Any] = dict.fromkeys(asdict(fold))
    for name, rows in parts.items():
        guessed = predictions_from(made, outputs[name]).values
        reached[name] = {
            "graphs": rows.numel(), "loss": losses[name],
            **reached_on(
                made, task, guessed=guessed, known=known[name], before=before[name]
            ),
        }  # fmt: skip
    provenance["reached"] = reached
    if task.taught is not None:
        pairs = zip(settings.columns, task.taught.tolist(), strict=False)
        provenance["not_learned"] = [name for name, taught in pairs if not taught]
    if task.deviations:
        provenance["deviations"] = task.deviations
    return made
