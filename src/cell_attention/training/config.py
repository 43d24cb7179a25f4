"""How a network is trained, as frozen values; no torch, so that help is quick."""

from dataclasses import dataclass
from typing import Any, Literal

from cell_attention.errors import InputError
from cell_attention.nn.config import check_kinds, require, require_size


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained; what the paper leaves out comes from the authors' released code."""

    batch_size: int = 128
    """Graphs per step; the last batch of an epoch may be smaller and is kept."""
    learning_rate: float = 1e-3
    """Of AdamW."""
    weight_decay: float = 1e-3
    """Of AdamW; not in the paper, in the released code."""
    epochs: int = 1000
    """At most; the released code's number."""
    patience: int = 200
    """Epochs without improvement after which training stops early, where it may."""
    schedule: Literal["plateau", "step", "cosine", "constant"] = "constant"
    """Of the learning rate. The released code halves it on a plateau of 50 epochs, down to 7e-5
    ("plateau"), which watches the very graphs that are reported; the paper does not speak of it.
    """
    gradient_clip: float = 0.0
    """Largest norm of the gradient; 0 leaves it as it is."""
    seed: int = 0
    """Of the weights, the order of the batches and the dropout."""

    def __post_init__(self) -> None:
        check_kinds(self)
        for name in ("batch_size", "epochs", "patience"):
            require_size(name, getattr(self, name), most=10**9)
        require("learning_rate", self.learning_rate > 0, "be positive", self.learning_rate)
        for name in ("weight_decay", "gradient_clip", "seed"):
            require(name, getattr(self, name) >= 0, "not be negative", getattr(self, name))

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "TrainingConfig":
        """A configuration back from JSON."""
        return cls(**record)

    @staticmethod
    def paper(name: str) -> "TrainingConfig":
        """The training of the paper's hyper-parameter table for one of its data sets."""
        if name not in _PRESETS:
            raise InputError(f"the paper has no preset {name!r}; it has {', '.join(_PRESETS)}")
        return _PRESETS[name]

    @staticmethod
    def molecules() -> "TrainingConfig":
        """The training for files of molecules: minutes for thousands of them.

        With twice the learning rate, the 41,120 molecules of HIV are not learned in ten epochs.
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
