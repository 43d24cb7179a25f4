"""The training loop, which can be stopped after any epoch and resumed.

Every epoch has its own random seed, made of the training's seed and the epoch's number: no random
state has to be stored, and a training that was killed resumes with exactly the same numbers.
"""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler

from cell_attention.errors import DataError
from cell_attention.nn.rank_network import RankNetwork
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.selection import rows_of
from cell_attention.training.average import MovingAverage
from cell_attention.training.checkpoint import restore_checkpoint, save_checkpoint
from cell_attention.training.config import TrainingConfig
from cell_attention.training.curves import Curves, DivergedError, Evaluated
from cell_attention.training.schedule import epoch_schedule, one_cycle
from cell_attention.training.start import Start
from cell_attention.training.tasks import Task

Report = Callable[[dict[str, float]], None]
"""Called after every epoch with its number, the number of epochs, the score and the best score."""
EVALUATED_AT_ONCE = 512
"""Graphs in a batch when no gradients are needed."""


class Training:
    """A network and its optimiser: `epoch()` does one epoch, `save` and `restore` resume.

    train, watched: the graphs to train on, and those that are evaluated after every epoch.
    build: makes the network; its weights are drawn from the training's seed.
    keep_best: keep the weights of the best epoch and stop `patience` epochs after it, or without
        patience those of the last epoch.
    start: weights of another network to start from; what it fixes is not trained.
    sample_weights: (graphs,) what the training loss of every graph is multiplied by.
    """

    def __init__(
        self,
        complexes: CellComplex,
        train: Sequence[int],
        watched: Sequence[int],
        *,
        task: Task,
        build: Callable[[], nn.Module],
        training: TrainingConfig,
        seed: tuple[int, ...],
        keep_best: bool = False,
        start: Start = Start(),  # noqa: B008 - frozen, so sharing one is safe
        sample_weights: Tensor | None = None,
    ) -> None:
        self.sample_weights = sample_weights
        self.complexes, self.task, self.seed = complexes, task, seed
        self.config = training = training.for_graphs(len(complexes))
        self.train, self.watched = torch.tensor(train), torch.tensor(watched)
        self.check()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_mixed(seed, 0))
            self.network = build()
        if isinstance(self.network, RankNetwork):
            self.network.learn_ranges(complexes[self.train])
        self.start = start
        start.apply(self.network)
        self.adam = torch.optim.AdamW(
            start.trained(self.network),
            lr=training.learning_rate,
            weight_decay=training.weight_decay,
            fused=True,
        )
        self.schedule = epoch_schedule(self.adam, training)
        self.average: MovingAverage | None = None
        if training.average > 0:
            self.average = MovingAverage(self.network, training.average)
        self.curves = Curves()
        self.best: dict[str, Tensor] | None = {} if keep_best else None

    def check(self) -> None:
        """Refuse graphs that cannot be learned from or scored."""
        self.task.require_known(self.complexes, "training", self.train)
        self.task.require_score(self.complexes, "validation", self.watched)

    @property
    def epochs_done(self) -> int:
        """The number of finished epochs."""
        return len(self.curves.score)

    @property
    def kept_epoch(self) -> int:
        """The epoch whose weights are kept: the best so far, or without patience the last one."""
        return self.curves.best_epoch if self.config.patience else self.epochs_done

    @property
    def result(self) -> nn.Module:
        """The network that is evaluated and kept: with averaged weights if there is an average."""
        return self.network if self.average is None else self.average.network

    @property
    def finished(self) -> bool:
        """Whether no epoch is left to do."""
        if self.epochs_done and self.best is not None and self.config.patience:
            waited = self.epochs_done - self.curves.best_epoch
            if waited >= self.config.patience:
                return True
        return self.epochs_done >= self.config.epochs

    def epoch(self) -> None:
        """Train for one pass over the training graphs, then evaluate."""
        number = self.epochs_done + 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_mixed(self.seed, number))
            order = self.train[torch.randperm(self.train.numel())]
            total = 0.0
            self.network.train()
            self.start.hold(self.network)
            batches = split_batches(order, self.config.batch_size)
            for place, chosen in enumerate(batches):
                done = (number - 1) * len(batches) + place
                if self.config.schedule == "one_cycle":
                    share = done / (self.config.epochs * len(batches))
                    factor = one_cycle(share, self.config.warmup)
                    self.adam.param_groups[0]["lr"] = factor * self.config.learning_rate
                loss = self.step(self.complexes[chosen], chosen)
                if not math.isfinite(loss):
                    raise DivergedError(
                        f"the loss is {loss} in epoch {number}, batch {place + 1} of "
                        f"{len(batches)}; lower the learning rate ({self.config.learning_rate:g}) "
                        "or set gradient_clip"
                    )
                total += loss * chosen.numel()
                if self.average is not None:
                    self.average.update(done + 1)
        self._look(number, total / self.train.numel())
        if isinstance(self.schedule, lr_scheduler.ReduceLROnPlateau):
            self.schedule.step(self.curves.score[-1])
        elif self.schedule is not None:
            self.schedule.step()

    def complete(self, path: Path | None, settings: str, *, seconds: float, report: Report) -> None:
        """Do all epochs left, resuming from a checkpoint at `path`; save it every `seconds`."""
        if path is not None and path.is_file():
            self.restore(path, settings)
        saved = time.monotonic()
        while not self.finished:
            self.epoch()
            score = self.curves.score
            said = {"epoch": len(score), "epochs": self.config.epochs, "score": score[-1]}
            report({**said, "best": max(score)})
            if path is not None and time.monotonic() - saved > seconds:
                self.save(path, settings)
                saved = time.monotonic()

    def _look(self, number: int, loss: float) -> None:
        """Evaluate the epoch and record it; keep the weights if it is the best so far."""
        watched = self.evaluate(self.watched)
        if not (math.isfinite(watched.loss) and math.isfinite(watched.score)):
            raise DivergedError(
                f"after epoch {number} the loss on {self.watched.numel()} evaluation graphs is "
                f"{watched.loss}, the {self.task.score_name} {watched.score}; lower learning_rate"
            )
        self.curves.loss.append(loss)
        self.curves.watched_loss.append(watched.loss)
        self.curves.score.append(watched.score)
        if self.best is not None and self.kept_epoch == number:
            state = self.result.state_dict()
            self.best = {name: value.detach().clone() for name, value in state.items()}

    def step(self, batch: CellComplex, chosen: Tensor | None = None) -> float:
        """Do one step of the optimiser, unless the loss is not finite; return the loss."""
        self.adam.zero_grad()
        loss = self.loss(batch, chosen)
        value = float(loss.detach())
        if math.isfinite(value):
            loss.backward()
            if self.config.gradient_clip > 0:
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.gradient_clip)
            self.adam.step()
        return value

    def loss(self, batch: CellComplex, chosen: Tensor | None = None) -> Tensor:
        """Return the loss on a batch, averaged over the branches of the network.

        chosen: the graphs of the batch, whose sample weights count.
        """
        if batch.targets is None:
            raise DataError("training needs graphs with targets, got complexes.targets None")
        smoothing, found = self.config.label_smoothing, _branches(self.network, batch)
        weights = None if chosen is None else rows_of(self.sample_weights, chosen)
        losses = [
            self.task.loss(
                outputs, batch.targets, smoothing,
                bounds=batch.target_bounds, sample_weights=weights,
            )
            for outputs in found
        ]  # fmt: skip
        return torch.stack(losses).mean()

    @torch.no_grad()
    def outputs(self, chosen: Tensor) -> Tensor:
        """Return (graphs, outputs) of the kept network in its present state, in evaluation mode."""
        network = self.result.eval()
        parts = chosen.split(EVALUATED_AT_ONCE)
        return torch.cat([network(self.complexes[part]) for part in parts])

    @torch.no_grad()
    def evaluate(self, chosen: Tensor) -> Evaluated:
        """Return loss and score of the network, in its present state, on these graphs."""
        targets, exact = self.complexes.targets, self.complexes.exact_targets
        if targets is None or exact is None:
            raise DataError("a score needs graphs with targets, got complexes.targets None")
        outputs, bounds = self.outputs(chosen), rows_of(self.complexes.target_bounds, chosen)
        loss = float(self.task.loss(outputs, targets[chosen], bounds=bounds))
        return Evaluated(loss, self.task.score(outputs, exact[chosen]))

    def column_scores(self, chosen: Tensor) -> list[float | None]:
        """Return the score of every label or column of values on these graphs."""
        exact = cast(Tensor, self.complexes.exact_targets)
        guessed = self.task.predictions(self.outputs(chosen).double())
        return self.task.column_scores(guessed, exact[chosen])

    def take_best(self) -> None:
        """Give the network that is kept the weights of the epoch that is kept."""
        if not self.best:
            raise ValueError("there are no best weights yet: use keep_best=True and do an epoch")
        self.result.load_state_dict(self.best)

    def save(self, path: Path, settings: str) -> None:
        """Write a checkpoint: everything that the next epoch depends on."""
        save_checkpoint(self, path, settings)

    def restore(self, path: Path, settings: str) -> None:
        """Load a checkpoint of `save`; raise DataError if it is of another run or not complete."""
        restore_checkpoint(self, path, settings)


def _branches(network: nn.Module, batch: CellComplex) -> tuple[Tensor, ...]:
    """Return the outputs that are held against the targets, each by itself; those of a network
    with a `forward` of its own are what it returns.
    """
    if isinstance(network, RankNetwork) and type(network).forward is RankNetwork.forward:
        return network.branches(batch)
    return (network(batch),)


def split_batches(order: Tensor, size: int) -> list[Tensor]:
    """Split graphs into batches in this order; the last one may be smaller.

    Deviation: a single graph left over joins the batch before it, which then exceeds the paper's
    size by one, because a batch of one may have too few edges for batch normalisation.
    """
    batches = list(order.split(size))
    if len(batches) > 1 and batches[-1].numel() == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def _mixed(seed: tuple[int, ...], number: int) -> int:
    """Hash several numbers to one seed, so that neighbouring numbers give unrelated seeds."""
    import numpy as np

    return int(np.random.SeedSequence([*seed, number]).generate_state(1, np.uint64)[0] >> 1)
