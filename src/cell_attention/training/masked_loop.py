"""Pretraining: the training loop, with masked cells to predict in the place of targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from cell_attention.errors import InputError
from cell_attention.nn.masked import Guess, MaskedNetwork, predicted_ranks
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.topology.complex import CellComplex
from cell_attention.training.cell_values import CellValues
from cell_attention.training.config import TrainingConfig
from cell_attention.training.curves import Evaluated
from cell_attention.training.loop import EVALUATED_AT_ONCE, Training
from cell_attention.training.tasks import Task

SEED = 20
"""Seed of the masks on held-out graphs, which are the same after every epoch."""
RANKS = ("nodes", "edges", "polygons")


@dataclass
class Guessed:
    """How many masked cells of a rank were predicted, and how many of them correctly."""

    rank: str
    values: int
    """Number of values to choose from."""
    cells: int = 0
    right: int = 0
    usual: int = 0
    """Number of cells with the value that is most frequent in training."""
    loss: float = 0.0
    """Sum over the cells whose value occurs in training."""

    @property
    def accuracy(self) -> float:
        """Correct predictions in %; 0 without any masked cell."""
        return 100.0 * self.right / max(1, self.cells)

    @property
    def most_frequent(self) -> float:
        """The accuracy in % of always predicting the most frequent value of the training graphs."""
        return 100.0 * self.usual / max(1, self.cells)


class MaskedTraining(Training):
    """Training of a `MaskedNetwork`: in every batch a share of the cells of each rank is masked.

    The score is the accuracy on the masked cells of the held-out graphs, in %, averaged over the
    ranks. Masks of training graphs are drawn anew in every step.
    """

    network: MaskedNetwork

    def __init__(
        self,
        complexes: CellComplex,
        train: Sequence[int],
        watched: Sequence[int],
        *,
        build: Callable[[], CellAttentionNetwork],
        training: TrainingConfig,
        seed: tuple[int, ...],
        mask: float,
    ) -> None:
        self.mask = mask
        seen = complexes[torch.tensor(train)]
        self.values: list[CellValues | None] = [None] * len(RANKS)

        def masked() -> MaskedNetwork:
            network = build()
            for rank in predicted_ranks(network):
                self.values[rank] = CellValues.of(seen, rank)
            if not any(self.values):
                raise InputError(
                    "nothing can be masked: neither the features of nodes and edges nor the sizes "
                    "of polygons are of several kinds"
                )
            return MaskedNetwork(network, [len(each) if each else 0 for each in self.values])

        super().__init__(
            complexes, train, watched, task=Task("classes", 1, "accuracy"), build=masked,
            training=training, seed=seed, keep_best=True,
        )  # fmt: skip

    def check(self) -> None:
        """Do nothing: what can be masked is known only once the network is built."""

    def loss(self, batch: CellComplex, chosen: Tensor | None = None) -> Tensor:
        """Return the cross-entropy on newly masked cells, averaged over the ranks."""
        smoothing = self.config.label_smoothing
        losses = [
            cross_entropy(guess.logits, classes[guess.cells], label_smoothing=smoothing)
            for guess, classes in self._guesses(self.network, batch)
            if guess.cells.numel()
        ]
        if not losses:  # such as single atoms where only edges have values
            return torch.stack([value.sum() * 0.0 for value in self.network.parameters()]).sum()
        return torch.stack(losses).mean()

    @torch.no_grad()
    def guessed(self, chosen: Tensor) -> list[Guessed]:
        """Mask cells of these graphs, always the same, and count the correct predictions."""
        network = cast(MaskedNetwork, self.result.eval())
        generator = torch.Generator().manual_seed(SEED)
        known = [each for each in self.values if each]
        found = [Guessed(RANKS[each.rank], len(each)) for each in known]
        for part in chosen.split(EVALUATED_AT_ONCE):
            guesses = self._guesses(network, self.complexes[part], generator)
            for total, each, (guess, classes) in zip(found, known, guesses, strict=True):
                truth = classes[guess.cells]
                total.cells += truth.numel()
                total.right += int((guess.logits.argmax(1) == truth).sum())
                total.usual += int((truth == each.usual).sum())
                total.loss += float(
                    cross_entropy(guess.logits, truth, ignore_index=-1, reduction="sum")
                )
        return found

    def evaluate(self, chosen: Tensor) -> Evaluated:
        """Return the loss and the accuracy on masked cells of these graphs."""
        found = [each for each in self.guessed(chosen) if each.cells]
        if not found:
            raise InputError(f"{chosen.numel()} held-out graphs have no cell that can be masked")
        loss = sum(each.loss / each.cells for each in found) / len(found)
        return Evaluated(loss, sum(each.accuracy for each in found) / len(found))

    def _guesses(
        self, network: MaskedNetwork, batch: CellComplex, generator: torch.Generator | None = None
    ) -> list[tuple[Guess, Tensor]]:
        """Mask a batch; return the guesses of every rank with the classes of all its cells."""
        counts = batch.num_nodes, batch.num_edges, batch.num_polygons
        masks = [
            draw_mask(count, self.mask, generator) if each else None
            for each, count in zip(self.values, counts, strict=True)
        ]
        classes = [each.classes(batch) for each in self.values if each]
        return list(zip(network(batch, masks), classes, strict=True))


def draw_mask(cells: int, share: float, generator: torch.Generator | None = None) -> Tensor:
    """(cells,) a random mask of this share of the cells, and of one cell at least."""
    drawn = torch.rand(cells, generator=generator)
    masked = drawn < share
    if cells:
        masked[drawn.argmin()] = True
    return masked
