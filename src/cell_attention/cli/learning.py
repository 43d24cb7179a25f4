"""What all verbs that train have in common: their source, their configuration, their manners."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import tyro

from cell_attention.cli import show
from cell_attention.cli.lift import DataDir, Lift, Lifted, lift_source
from cell_attention.cli.overrides import configured, flags_of
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig, TrainingConfig

if TYPE_CHECKING:
    from torch import Tensor

    NetworkFlags: TypeAlias = Any
    TrainingFlags: TypeAlias = Any
else:
    NetworkFlags, TrainingFlags = flags_of(NetworkConfig), flags_of(TrainingConfig)


@dataclass(frozen=True, kw_only=True)
class Learning:
    """A verb that trains networks on a SOURCE."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A TU name such as MUTAG, a folder or .zip in TU format, or a .csv or .smi of molecules."""
    class_weights: bool = False
    """Weight the classes in the loss so that rare ones count as much as common ones."""
    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file with tables [network] and [training] that change fields of the preset."""
    checkpoint_seconds: float = 10.0
    """How much work of one training an interruption may cost."""
    fresh: bool = False
    """Start over instead of continuing what the folder holds."""
    quiet: bool = False
    """No progress."""
    json: bool = False
    """Print one JSON object instead of a table."""
    data_dir: DataDir = None
    """Where to look for TU names first; then $CELL_ATTENTION_DATA, then the cache."""
    node_attributes: bool = False
    """Add a TU set's node attributes to its node labels."""
    on_error: Literal["fail", "skip"] = "fail"
    """Whether a row of a molecule file that cannot be read is refused or left out."""
    network: tyro.conf.OmitArgPrefixes[NetworkFlags] = field(default_factory=NetworkFlags)
    """Fields of the network."""
    training: tyro.conf.OmitArgPrefixes[TrainingFlags] = field(default_factory=TrainingFlags)
    """Fields of the training."""

    @property
    def silent(self) -> bool:
        """Whether progress is not to be shown."""
        return self.quiet or self.json

    @property
    def model_name(self) -> str:
        """What is trained."""
        return "can"

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """The preset or the default, changed by the file and then by the flags."""
        if not self.checkpoint_seconds >= 0:
            raise InputError(
                f"checkpoint_seconds must not be negative, got {self.checkpoint_seconds}"
            )
        return configured(self.model_name, self.source, self.config, self.network, self.training)

    def read(self, max_polygon: int) -> Lifted:
        """The source, lifted; one torch thread from here on."""
        import torch

        torch.set_num_threads(1)
        asked = Lift(
            self.source,
            max_polygon,
            data_dir=self.data_dir,
            node_attributes=self.node_attributes,
            on_error=self.on_error,
        )
        lifted = lift_source(asked)
        for text in lifted.graph_set.notes:
            show.note(text)
        return lifted


def targets_of(lifted: Lifted) -> "Tensor":
    """What is to be learned."""
    if lifted.complexes.targets is None:
        raise InputError(f"{lifted.graph_set.name} has no targets to learn")
    targets = lifted.complexes.targets
    if not targets.is_floating_point() and targets.unique().numel() < 2:
        raise InputError(f"{lifted.graph_set.name}: all graphs are of one class")
    return targets
