"""The training configuration; does not import torch, so that --help is quick."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from cell_attention.arguments import check_kinds, completed, later, require, require_size
from cell_attention.errors import InputError

EPOCHS, GRAPHS_SEEN = 50, 15_000
"""The usual number of epochs, and how many graphs a training on a small set sees at least."""


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained. The defaults are those of the network on every rank; in `paper`,
    what the paper does not state follows the released code.
    """

    batch_size: int = 32
    """Graphs per training step; the last batch of an epoch may be smaller and is kept."""
    learning_rate: float = 1e-3
    """Learning rate of AdamW at the start, or at the top of "one_cycle"."""
    weight_decay: float = 1e-4
    """Weight decay of AdamW."""
    epochs: int = 0
    """Largest number of epochs; 0 is 50, or on a small set as many as show 15,000 graphs."""
    patience: int = 0
    """Epochs without improvement on the validation graphs after which training stops, where early
    stopping is used; the weights of the best epoch are kept. 0 does not stop, and keeps those of
    the last: on few validation graphs the best epoch is a matter of luck, often an early one."""
    schedule: Literal["one_cycle", "plateau", "step", "cosine", "constant"] = "one_cycle"
    """Schedule of the learning rate. "one_cycle" rises during the warm-up and falls along a cosine
    until the last step. "plateau" is the released code's: halve it after 50 epochs
    without improvement, down to 7e-5. In a cross-validation it sees the held-out graphs that are
    reported. The paper does not mention a schedule.
    """
    warmup: float = later(0.05)
    """Share of all steps in which the rate of "one_cycle" rises."""
    average: float = later(0.0, default=0.998)
    """Decay of a moving average of the weights, which is evaluated and kept in their place; 0
    turns it off."""
    label_smoothing: float = later(0.0)
    """Share of a target that is spread over all classes, or over both values of a label."""
    gradient_clip: float = 1.0
    """Largest norm of the gradient; 0 turns clipping off."""
    seed: int = 0
    """Random seed of the initial weights, the order of the batches and dropout."""

    def __post_init__(self) -> None:
        check_kinds(self)
        require_size("batch_size", self.batch_size, most=10**9)
        for name in ("epochs", "patience"):
            count = getattr(self, name)
            require(name, 0 <= count <= 10**9, "lie in 0…10^9", count)
        require("learning_rate", self.learning_rate > 0, "be positive", self.learning_rate)
        for name in ("average", "label_smoothing"):
            value = getattr(self, name)
            require(name, 0.0 <= value < 1.0, "lie in [0, 1)", value)
        require("warmup", 0.0 < self.warmup < 1.0, "lie in (0, 1)", self.warmup)
        for name in ("weight_decay", "gradient_clip", "seed"):
            require(name, getattr(self, name) >= 0, "not be negative", getattr(self, name))

    def for_graphs(self, count: int) -> "TrainingConfig":
        """Return the configuration with its number of epochs on a set of so many graphs.

        In 50 epochs a set of 188 graphs would see 300 steps, too few: with 80 epochs inner
        validation on MUTAG gave 93.5 instead of 91.2, with 150 94.1, but on PTC_MM (336 graphs)
        89 epochs were no better than 50.
        """
        epochs = self.epochs or max(EPOCHS, round(GRAPHS_SEEN / max(1, count)))
        return replace(self, epochs=epochs)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "TrainingConfig":
        """Make a configuration from its JSON record."""
        return cls(**completed(cls, record))

    @staticmethod
    def paper(name: str) -> "TrainingConfig":
        """Return the training from the paper's hyper-parameter table for one of its data sets."""
        if name not in _PRESETS:
            raise InputError(f"preset must be one of {', '.join(_PRESETS)}, got {name!r}")
        return _PRESETS[name]

    @staticmethod
    def plain(**changes: Any) -> "TrainingConfig":
        """Return a long training at a constant rate, without average and clipping, as the paper's.

        The weight decay and the epochs are those of the released code; the paper has neither.
        """
        usual: dict[str, Any] = {
            "batch_size": 128, "weight_decay": 1e-3, "epochs": 1000, "patience": 200,
            "schedule": "constant", "average": 0.0, "gradient_clip": 0.0,
        }  # fmt: skip
        return TrainingConfig(**{**usual, **changes})

    @staticmethod
    def molecules() -> "TrainingConfig":
        """Return the training for files of molecules, which takes minutes for thousands of them."""
        return TrainingConfig()


_PRESETS = {
    "MUTAG": TrainingConfig.plain(batch_size=64, learning_rate=3e-3),
    "PTC_MM": TrainingConfig.plain(batch_size=128, learning_rate=1e-3),
    "PROTEINS": TrainingConfig.plain(batch_size=128, learning_rate=3e-3),
    "NCI1": TrainingConfig.plain(batch_size=128, learning_rate=3e-4),
    "NCI109": TrainingConfig.plain(batch_size=128, learning_rate=3e-3),
}
"""The paper's hyper-parameter table; "PTC" there has the 336 graphs of PTC_MM."""
