"""Training on cells: targets per node, edge or polygon, some of them held out."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from cell_attention.errors import DataError, InputError
from cell_attention.nn.cell_predictor import CellPredictor, complex_of_cells, num_cells
from cell_attention.topology.complex import CellComplex
from cell_attention.training.config import TrainingConfig
from cell_attention.training.curves import Evaluated
from cell_attention.training.loop import EVALUATED_AT_ONCE, Training
from cell_attention.training.tasks import Task


class CellTraining(Training):
    """Training of a `CellPredictor`: the loop over complexes, with the loss of their training cells
    and the score of the validation cells.

    targets: (cells, ·) of all cells; those of cells in no part are not looked at.
    parts: (cells,) masks: train, validation, and test.
    """

    network: CellPredictor

    def __init__(
        self,
        complexes: CellComplex,
        targets: Tensor,
        *,
        cells: str,
        parts: dict[str, Tensor],
        task: Task,
        build: Callable[[], CellPredictor],
        training: TrainingConfig,
        seed: tuple[int, ...],
    ) -> None:
        self.targets, self.parts = targets, parts
        member, count = complex_of_cells(complexes, cells), len(complexes)
        size = member.bincount(minlength=count)
        self.size, self.first = size, size.cumsum(0) - size
        with_cells = {name: member[mask].unique().tolist() for name, mask in parts.items()}
        super().__init__(
            complexes, with_cells["train"], with_cells["validation"], task=task, build=build,
            training=training, seed=seed, keep_best=True,
        )  # fmt: skip

    def check(self) -> None:
        """Refuse parts that cannot be learned from or scored."""
        for name in ("train", "validation"):
            known = self.task.scored(self.targets[self.parts[name]])
            if not known.numel() or bool(known.isnan().all()):
                raise DataError(f"none of the {name} cells has a known target")
        guess = torch.full((int(self.parts["validation"].sum()), self.task.outputs), 0.5)
        score = self.task.score_of(guess, self.targets[self.parts["validation"]])
        if score != score:
            raise DataError(f"{self.task.score_name} is not defined on the validation cells")

    def rows(self, chosen: Tensor) -> Tensor:
        """Return the cells of these complexes, one complex after the other."""
        size = self.size[chosen]
        shift = (self.first[chosen] - (size.cumsum(0) - size)).repeat_interleave(size)
        return torch.arange(shift.numel()) + shift

    def loss(self, batch: CellComplex, chosen: Tensor | None = None) -> Tensor:
        """Return the mean loss over the training cells of a batch of these complexes."""
        if chosen is None:
            raise InputError("a loss on cells needs to know which complexes they are of")
        rows, outputs = self.rows(chosen), self.network(batch)
        taught = self.parts["train"][rows]
        return self.task.loss(
            outputs[taught], self.targets[rows[taught]], self.config.label_smoothing
        )

    @torch.no_grad()
    def evaluate(self, chosen: Tensor) -> Evaluated:
        """Return loss and score on the validation cells of these complexes."""
        return self.evaluate_part("validation", chosen)

    @torch.no_grad()
    def evaluate_part(self, name: str, chosen: Tensor) -> Evaluated:
        """Return loss and score on the cells of a part that lie in these complexes."""
        network = self.result.eval()
        parts = chosen.split(EVALUATED_AT_ONCE)
        outputs = torch.cat([network(self.complexes[part]) for part in parts])
        rows = self.rows(chosen)
        asked = self.parts[name][rows]
        outputs, known = outputs[asked], self.targets[rows[asked]]
        return Evaluated(float(self.task.loss(outputs, known)), self.task.score(outputs, known))


def mask_of(name: str, cells: Any, count: int) -> Tensor:
    """Return a part of the cells, given as a mask or as rows, as a mask."""
    found = torch.as_tensor(cells)
    if found.dtype == torch.bool:
        if tuple(found.shape) != (count,):
            raise InputError(f"{name} must be a mask of {count} cells, got {tuple(found.shape)}")
        return found.clone()
    if found.dim() != 1 or (found.numel() and found.is_floating_point()):
        raise InputError(f"{name} must be a mask or whole numbers, got {found.dtype}")
    rows = found.long()
    if rows.numel() and not bool(((rows >= 0) & (rows < count)).all()):
        raise InputError(f"{name} must lie in 0…{count - 1}")
    mask = torch.zeros(count, dtype=torch.bool)
    mask[rows] = True
    return mask


def require_targets(targets: Any, complexes: CellComplex, cells: str) -> Tensor:
    """Return the targets of the cells of a rank; refuse another number of them."""
    found, count = torch.as_tensor(targets), num_cells(complexes, cells)
    if found.dim() not in (1, 2) or found.size(0) != count:
        raise InputError(f"targets must be one row per cell ({count}), got {tuple(found.shape)}")
    return found.float() if found.is_floating_point() else found.long()
