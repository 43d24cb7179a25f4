"""What the epochs of a training reached: losses and scores, as long as they are numbers."""

from dataclasses import dataclass, field

from cell_attention.errors import WorkError


class DivergedError(WorkError, ArithmeticError):
    """The loss is no longer a number."""


@dataclass
class Curves:
    """Losses and scores of all finished epochs."""

    loss: list[float] = field(default_factory=list)
    """Mean over the training graphs."""
    watched_loss: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    """On the evaluation graphs, as is `watched_loss`."""

    def record(self) -> dict[str, list[float]]:
        """Return the curves as JSON: scores exactly, losses rounded to six decimals."""
        return {
            "loss": [round(value, 6) for value in self.loss],
            "watched_loss": [round(value, 6) for value in self.watched_loss],
            "score": self.score,
        }

    @property
    def best_epoch(self) -> int:
        """The epoch of highest score, from 1; ties go to the lowest loss, then to the first."""
        ranks = [(s, -loss) for s, loss in zip(self.score, self.watched_loss, strict=True)]
        return ranks.index(max(ranks)) + 1


@dataclass(frozen=True)
class Evaluated:
    """Loss and score of a network on some graphs."""

    loss: float
    score: float
