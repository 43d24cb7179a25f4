"""Flags of all commands that train on folds, in several processes or on a cluster."""

from dataclasses import dataclass
from typing import Any, Literal

from cell_attention.cli.options.training import TrainingOptions
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class FoldOptions(TrainingOptions):
    """A command that trains on folds of a SOURCE into a RUN_DIR."""

    folds: int = 10
    """Number of folds."""
    jobs: int = 0
    """Number of trainings at a time, each in a process with one thread; 0 is one per core."""
    engine: Literal["processes", "ray"] = "processes"
    """Processes of this machine, or tasks on the Ray cluster at $RAY_ADDRESS (else a local one)."""

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """Refuse bad flags before anything is read."""
        if self.jobs < 0:
            raise InputError(f"--jobs must not be negative, got {self.jobs}")
        return super().configs()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of all trainings, and of the jobs."""
        more = {"folds": self.folds, "jobs": self.jobs, "engine": self.engine}
        return {**super().arguments(), **more}
