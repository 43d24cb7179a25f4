"""The overhead of a training beyond its steps, and the gain from a second process."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from cell_attention.benchmark.measure import Measurement, best_seconds, best_seconds_in_turn
from cell_attention.benchmark.network import with_pairs
from cell_attention.data.splits.folds import Fold, stratified_folds
from cell_attention.errors import DataError
from cell_attention.models.network_fitter import start_training
from cell_attention.nn.config import NetworkConfig
from cell_attention.parallel import engine
from cell_attention.parallel.processes import run_in_processes
from cell_attention.topology.complex import CellComplex
from cell_attention.training.config import TrainingConfig
from cell_attention.training.loop import Training, split_batches
from cell_attention.training.tasks import task_of

PIECES, PIECE_SECONDS = 4, 20.0
"""For the measurement with two processes: long enough that starting a process hardly counts."""


def training_benchmarks(name: str, complexes: CellComplex) -> Iterator[Measurement]:
    """Yield the measurements of one of the paper's data sets, one by one."""
    training = first_fold(name, complexes)
    batches = [
        with_pairs(complexes[chosen])
        for chosen in split_batches(training.train, training.config.batch_size)
    ]
    with tempfile.TemporaryDirectory() as folder:
        epoch, looking, steps, saving = best_seconds_in_turn(
            [
                training.epoch,
                lambda: training.evaluate(training.watched),
                lambda: _steps(training, batches),
                lambda: training.save(Path(folder) / "checkpoint", ""),
            ],
            rounds=8,
        )
    yield Measurement(
        f"{name}: an epoch on one core", epoch, "s",
        detail=f"{training.train.numel()} graphs to train on, {looking:.2f} s of it for looking at "
        f"{training.watched.numel()}",
    )  # fmt: skip
    saved = saving * epoch / 10.0
    percent = 100 * ((epoch - looking + saved) / steps - 1)
    yield Measurement(
        f"{name}: loop, batching and bookkeeping add", percent, "% of the steps", "under 10 %",
        percent < 10,
        f"steps on ready batches {steps:.2f} s; a checkpoint takes {saving * 1e3:.1f} ms",
    )  # fmt: skip
    yield _two_processes(name, complexes, epoch)


def first_fold(name: str, complexes: CellComplex) -> Training:
    """Set up the training of the first fold with the paper's preset."""
    if complexes.targets is None:
        raise DataError("training needs graphs with targets, got complexes.targets None")
    fold: Fold = stratified_folds(complexes.targets).folds[0]
    task = task_of(complexes, torch.tensor(fold.rest))
    return start_training(
        complexes, fold.rest, fold.held_out, task=task, network=NetworkConfig.paper(name),
        training=TrainingConfig.paper(name), seed=(0,),
    )  # fmt: skip


def _steps(training: Training, batches: list[CellComplex]) -> None:
    """Do the same training steps without the rest of an epoch."""
    training.network.train()
    for batch in batches:
        if batch.targets is not None:
            training.adam.zero_grad()
            training.task.loss(training.network(batch), batch.targets).backward()
            training.adam.step()


def train_for(path: str, name: str, epochs: int, *, report: engine.Report) -> None:
    """Train the first fold for some epochs, as a job."""
    training = first_fold(name, CellComplex.load(path))
    for number in range(epochs):
        training.epoch()
        report({"epoch": number + 1.0})


def _ignore(name: str, numbers: dict[str, float]) -> None:
    pass


def _two_processes(name: str, complexes: CellComplex, epoch: float) -> Measurement:
    epochs = max(1, round(PIECE_SECONDS / epoch))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "complexes.safetensors"
        complexes.save(path)
        works = [
            engine.Work(f"piece {number}", train_for, (str(path), name, epochs))
            for number in range(PIECES)
        ]
        rounds = [
            [
                best_seconds(partial(run_in_processes, works, jobs, _ignore), 1, warm_up=False)
                for jobs in (1, 2)
            ]
            for _ in range(2)
        ]
    one, two = map(min, zip(*rounds, strict=True))
    gain = one / two
    return Measurement(
        f"{name}: two processes against one", gain, "×", "at least 1.8 ×",
        gain >= 1.8 if engine.cores() > 1 else None,
        f"{PIECES} trainings of {epochs} epochs: {one:.1f} s and {two:.1f} s, with their start",
    )  # fmt: skip
