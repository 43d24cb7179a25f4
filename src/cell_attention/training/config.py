"""The training configuration; does not import torch, so that --help is quick."""

from dataclasses import dataclass
from typing import Any, Literal

from cell_attention.errors import InputError
from cell_attention.nn.config import check_kinds, require, require_size


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained; what the paper does not state follows the released code."""

    batch_size: int = 128
    """Graphs per training step; the last batch of an epoch may be smaller and is kept."""
    learning_rate: float = 1e-3
    """Learning rate of AdamW at the start."""
    weight_decay: float = 1e-3
    """Weight decay of AdamW; from the released code, not in the paper."""
    epochs: int = 1000
    """Largest number of epochs; 1000 as in the released code."""
    patience: int = 200
    """Epochs without improvement after which training stops, where early stopping is used."""
    schedule: Literal["plateau", "step", "cosine", "constant"] = "constant"
    """Schedule of the learning rate. "plateau" is the released code's: halve it after 50 epochs
    without improvement, down to 7e-5. In a cross-validation it sees the held-out graphs that are
    reported. The paper does not mention a schedule.
    """
    gradient_clip: float = 0.0
    """Largest norm of the gradient; 0 turns clipping off."""
    seed: int = 0
    """Random seed of the initial weights, the order of the batches and dropout."""

    def __post_init__(self) -> None:
        check_kinds(self)
        for name in ("batch_size", "epochs", "patience"):
            require_size(name, getattr(self, name), most=10**9)
        require("learning_rate", self.learning_rate > 0, "be positive", self.learning_rate)
        for name in ("weight_decay", "gradient_clip", "seed"):
            require(name, getattr(self, name) >= 0, "not be negative", getattr(self, name))

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "TrainingConfig":
        """Make a configuration from its JSON record."""
        return cls(**record)

    @staticmethod
    def paper(name: str) -> "TrainingConfig":
        """Return the training from the paper's hyper-parameter table for one of its data sets."""
        if name not in _PRESETS:
            raise InputError(f"preset must be one of {', '.join(_PRESETS)}, got {name!r}")
        return _PRESETS[name]

    @staticmethod
    def molecules() -> "TrainingConfig":
        """Return the training for files of molecules, which takes minutes for thousands of them.

        At twice the learning rate, ten epochs on the 41,120 molecules of HIV learn nothing.
        """
        return TrainingConfig(
            batch_size=32, learning_rate=1e-3, epochs=100, patience=30, schedule="cosine"
        )


_PRESETS = {
    "MUTAG": TrainingConfig(batch_size=64, learning_rate=3e-3),
    "PTC_MM": TrainingConfig(batch_size=128, learning_rate=1e-3),
    "PROTEINS": TrainingConfig(batch_size=128, learning_rate=3e-3),
    "NCI1": TrainingConfig(batch_size=128, learning_rate=3e-4),
    "NCI109": TrainingConfig(batch_size=128, learning_rate=3e-3),
}
"""The paper's hyper-parameter table; "PTC" there has the 336 graphs of PTC_MM."""
