"""One training: an explicit loop of epochs that can be stopped after any and taken up again.

Every epoch draws from a seed of its own, made of the training's seed and the epoch's number: batch
order and dropout need no state to be stored, and what was killed continues with the same bits.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.optim import lr_scheduler

from cell_attention._files import write_tensors
from cell_attention.errors import DataError, WorkError
from cell_attention.topology.complex import CellComplex
from cell_attention.training.config import TrainingConfig
from cell_attention.training.tasks import Task

Report = Callable[[dict[str, float]], None]
"""Called after every epoch: its number, the number of epochs, score and best score."""
EVALUATED_AT_ONCE = 512
"""Graphs in a batch without gradients."""


class DivergedError(WorkError, ArithmeticError):
    """The loss is no longer a number."""


@dataclass
class Curves:
    """What every finished epoch came to."""

    loss: list[float] = field(default_factory=list)
    """Mean over the training graphs."""
    watched_loss: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    """On the graphs that are watched, as is the loss before it."""

    def record(self) -> dict[str, list[float]]:
        """For a file: scores to the last bit, losses as far as anyone reads them."""
        return {
            "loss": [round(value, 6) for value in self.loss],
            "watched_loss": [round(value, 6) for value in self.watched_loss],
            "score": self.score,
        }

    @property
    def best_epoch(self) -> int:
        """Counted from 1: of highest score, of these of lowest watched loss, of these the first."""
        ranks = [(s, -loss) for s, loss in zip(self.score, self.watched_loss, strict=True)]
        return ranks.index(max(ranks)) + 1


@dataclass(frozen=True)
class Evaluated:
    """A network on some graphs."""

    loss: float
    score: float


class Training:
    """A network on its way: `epoch()` moves it on, `save` and `restore` interrupt it.

    build: makes the network, with weights that are drawn from the training's seed.
    keep_best: whether the weights of the best epoch are kept, and training ends `patience` epochs
        after it.
    """

    def __init__(
        self,
        complexes: CellComplex,
        train: Sequence[int],
        watched: Sequence[int],
        task: Task,
        build: Callable[[], nn.Module],
        training: TrainingConfig,
        seed: tuple[int, ...],
        keep_best: bool = False,
    ) -> None:
        self.complexes, self.task, self.config, self.seed = complexes, task, training, seed
        self.train, self.watched = torch.tensor(train), torch.tensor(watched)
        task.require_known(complexes, "training", self.train)
        task.require_score(complexes, "validation", self.watched)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_mixed(seed, 0))
            self.network = build()
        self.adam = torch.optim.AdamW(
            self.network.parameters(),
            lr=training.learning_rate,
            weight_decay=training.weight_decay,
            fused=True,
        )
        self.schedule = _schedule(self.adam, training)
        self.curves = Curves()
        self.best: dict[str, Tensor] | None = {} if keep_best else None

    @property
    def epochs_done(self) -> int:
        """How many epochs are behind it."""
        return len(self.curves.score)

    @property
    def finished(self) -> bool:
        """Whether there is no epoch left to do."""
        if self.epochs_done and self.best is not None:
            waited = self.epochs_done - self.curves.best_epoch
            if waited >= self.config.patience:
                return True
        return self.epochs_done >= self.config.epochs

    def epoch(self) -> None:
        """One pass over the training graphs, one look at the watched ones."""
        number = self.epochs_done + 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_mixed(self.seed, number))
            order = self.train[torch.randperm(self.train.numel())]
            total = 0.0
            self.network.train()
            batches = split_batches(order, self.config.batch_size)
            for place, chosen in enumerate(batches):
                loss = self.step(self.complexes[chosen])
                if not math.isfinite(loss):
                    raise DivergedError(
                        f"the loss is {loss} in epoch {number}, batch {place + 1} of "
                        f"{len(batches)}; lower the learning rate ({self.config.learning_rate:g}) "
                        "or clip gradients"
                    )
                total += loss * chosen.numel()
        self._look(number, total / self.train.numel())
        if isinstance(self.schedule, lr_scheduler.ReduceLROnPlateau):
            self.schedule.step(self.curves.score[-1])
        elif self.schedule is not None:
            self.schedule.step()

    def complete(self, path: Path | None, settings: str, seconds: float, report: Report) -> None:
        """Do all epochs that are left after the checkpoint at `path`, where there is one; save
        there every so many seconds. Without a path nothing is saved.
        """
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
        """Enter what the epoch came to; keep the weights if it is the best so far."""
        watched = self.evaluate(self.watched)
        if not (math.isfinite(watched.loss) and math.isfinite(watched.score)):
            raise DivergedError(
                f"after epoch {number} the loss on the {self.watched.numel()} watched graphs is "
                f"{watched.loss}, their {self.task.score_name} {watched.score}"
            )
        self.curves.loss.append(loss)
        self.curves.watched_loss.append(watched.loss)
        self.curves.score.append(watched.score)
        if self.best is not None and self.curves.best_epoch == number:
            state = self.network.state_dict()
            self.best = {name: value.detach().clone() for name, value in state.items()}

    def step(self, batch: CellComplex) -> float:
        """One step of the optimiser, unless the loss is no number; returns the loss."""
        if batch.targets is None:
            raise DataError("training needs graphs with targets")
        self.adam.zero_grad()
        loss = self.task.loss(self.network(batch), batch.targets)
        value = float(loss.detach())
        if math.isfinite(value):
            loss.backward()
            if self.config.gradient_clip > 0:
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.gradient_clip)
            self.adam.step()
        return value

    @torch.no_grad()
    def outputs(self, chosen: Tensor) -> Tensor:
        """(graphs, outputs) of the network as it is, in evaluation mode."""
        self.network.eval()
        parts = chosen.split(EVALUATED_AT_ONCE)
        return torch.cat([self.network(self.complexes[part]) for part in parts])

    @torch.no_grad()
    def evaluate(self, chosen: Tensor) -> Evaluated:
        """Loss and score of the network as it is on these graphs."""
        if self.complexes.targets is None:
            raise DataError("a score needs graphs with targets")
        outputs, targets = self.outputs(chosen), self.complexes.targets[chosen]
        loss = float(self.task.loss(outputs, targets))
        return Evaluated(loss, self.task.score(outputs, targets))

    def take_best(self) -> None:
        """Give the network the weights of its best epoch."""
        if not self.best:
            raise ValueError("the best weights are kept with keep_best, from the first epoch on")
        self.network.load_state_dict(self.best)

    def save(self, path: Path, settings: str) -> None:
        """Write everything that the next epoch depends on, in one step."""
        tensors = {f"model.{name}": value for name, value in self.network.state_dict().items()}
        for index, state in self.adam.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{name}": value for name, value in state.items()}
        tensors |= {f"best.{name}": value for name, value in (self.best or {}).items()}
        state = {
            "settings": settings,
            "curves": asdict(self.curves),
            "learning_rate": self.adam.param_groups[0]["lr"],
            "schedule": None if self.schedule is None else _plain(self.schedule.state_dict()),
        }
        whole = {name: value.contiguous().clone() for name, value in tensors.items()}
        write_tensors(path, whole, {"state": json.dumps(state)})

    def restore(self, path: Path, settings: str) -> None:
        """Continue from a file of `save`; one that does not fit is refused."""
        try:
            with safe_open(path, framework="pt") as file:
                state = json.loads((file.metadata() or {})["state"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if state["settings"] != settings:
                raise DataError(f"{path}: belongs to another run; use --fresh to start over")
            self.network.load_state_dict(_below("model.", tensors))
            moments: dict[int, dict[str, Tensor]] = {}
            for name, value in _below("adam.", tensors).items():
                index, part = name.split(".")
                moments.setdefault(int(index), {})[part] = value
            groups = self.adam.state_dict()["param_groups"]
            groups[0]["lr"] = state["learning_rate"]
            self.adam.load_state_dict({"state": moments, "param_groups": groups})
            if self.schedule is not None:
                self.schedule.load_state_dict(state["schedule"])
            self.curves = Curves(**state["curves"])
            if self.best is not None:
                self.best = _below("best.", tensors)
                if self.epochs_done and self.best.keys() != self.network.state_dict().keys():
                    raise KeyError("the best weights")
        except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{path}: not a whole checkpoint ({error}); delete it to begin this part again"
            ) from None


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin so, without the prefix."""
    return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}


def split_batches(order: Tensor, size: int) -> list[Tensor]:
    """Batches in that order, the last one smaller.

    Deviation: a single graph left over joins the batch before it, which then exceeds the paper's
    size by one, since a batch of one may have too few edges to be normalised.
    """
    batches = list(order.split(size))
    if len(batches) > 1 and batches[-1].numel() == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def _mixed(seed: tuple[int, ...], number: int) -> int:
    """One seed from several numbers, far from those of the neighbouring ones."""
    import numpy as np

    return int(np.random.SeedSequence([*seed, number]).generate_state(1, np.uint64)[0] >> 1)


def _schedule(adam: torch.optim.Optimizer, config: TrainingConfig) -> Any:
    """How the learning rate moves, or None where it does not.

    Deviation: the presets keep it constant. The paper has no schedule; the plateau of the released
    code watches the very graphs that are reported.
    """
    if config.schedule == "plateau":
        return lr_scheduler.ReduceLROnPlateau(
            adam, mode="max", factor=0.5, patience=50, min_lr=7e-5
        )
    if config.schedule == "step":
        return lr_scheduler.StepLR(adam, step_size=max(1, config.epochs // 6), gamma=0.5)
    if config.schedule == "cosine":
        return lr_scheduler.CosineAnnealingLR(adam, T_max=config.epochs)
    return None


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a schedule's state."""
    kept = (bool, int, float, str, list, type(None))
    return {name: value for name, value in state.items() if isinstance(value, kept)}
