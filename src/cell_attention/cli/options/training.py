"""Flags of all commands that train: the data, the configuration, the folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import tyro

from cell_attention.cli import console
from cell_attention.cli.options.config import configured, flags_of, searched_trials
from cell_attention.cli.options.source import SourceOptions
from cell_attention.data.file_format import MOLECULE_FILES, USUAL_DESCRIPTORS, unpacked
from cell_attention.data.splits.options import SEED, SplitOptions, SplitRule
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig

if TYPE_CHECKING:
    NetworkFlags: TypeAlias = Any
    TrainingFlags: TypeAlias = Any
else:
    NetworkFlags, TrainingFlags = flags_of(NetworkConfig), flags_of(TrainingConfig)

MetricName = Literal["accuracy", "roc_auc", "pr_auc", "mcc", "brier", "rmse", "mae", "r2"]


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(SourceOptions):
    """A command that trains networks on a SOURCE, with targets or without."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder where everything is saved; by default in the current folder, named after SOURCE."""
    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file with tables [network] and [training] that change fields of the default."""
    checkpoint_seconds: float = 10.0
    """Seconds between two checkpoints of a training: the most that an interruption can cost."""
    fresh: bool = False
    """Start over instead of resuming: delete what an earlier run saved in the folder."""
    quiet: bool = False
    """Show no progress."""
    network: tyro.conf.OmitArgPrefixes[NetworkFlags] = field(default_factory=NetworkFlags)
    """Fields of the network."""
    training: tyro.conf.OmitArgPrefixes[TrainingFlags] = field(default_factory=TrainingFlags)
    """Fields of the training."""

    @property
    def silent(self) -> bool:
        """Whether to hide progress."""
        return self.quiet or self.json

    @property
    def purpose(self) -> str:
        """The end of the default folder's name."""
        return "model"

    @property
    def folder(self) -> Path:
        """The folder where everything is saved."""
        if self.out is not None:
            return self.out
        name = unpacked(Path(self.source).name)
        for ending in (*MOLECULE_FILES, ".zip"):
            name = name[: -len(ending)] if name.lower().endswith(ending) else name
        return Path(f"{name or 'data'}-{self.purpose}")

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return "can"

    @property
    def origin(self) -> NetworkConfig | None:
        """The network of the model that the training starts from."""
        return None

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """Return the default or preset, changed by the file and then by the flags."""
        return configured(
            self.model_name,
            self.source,
            self.config,
            network_flags=self.network,
            training_flags=self.training,
            origin=self.origin,
        )

    def progress(self) -> console.ConsoleProgress:
        """Return the display of progress."""
        return console.ConsoleProgress(self.silent)

    @contextmanager
    def resumable(self) -> Iterator[None]:
        """Tell how to resume if the work is interrupted."""
        try:
            yield
        except KeyboardInterrupt:
            if self.folder.is_dir() and any(self.folder.iterdir()):
                console.note(f"progress is saved in {self.folder}; run the same command to resume")
            raise


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(NetworkOptions):
    """A command that trains networks to predict the targets of a SOURCE."""

    class_weights: tyro.conf.FlagCreatePairsOff[bool] = False
    """Weight classes and labels in the loss so that rare ones count as much as common ones; by
    default for files of molecules with one that is rarer than one in ten."""
    no_class_weights: tyro.conf.FlagCreatePairsOff[bool] = False
    """Weight all graphs the same."""
    metric: MetricName | None = None
    """The metric that is reported and, with patience, chooses the epoch; by default RMSE for
    values, ROC-AUC for files of molecules with two classes or labels, else accuracy."""
    split: SplitRule = "auto"
    """How graphs are split: with equal shares of every class (stratified), at random, or with
    molecules of one Bemis–Murcko scaffold in the same split; auto is stratified if there are
    classes, else random."""
    split_column: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Column of a file of molecules with the splits: train, validation or test to train one model,
    the name of a fold for cross-validation."""
    splits: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A JSON file with the splits: {train, validation[, test]} to train one model, such as the
    splits.json of another model; a list of these, or the format of Errica et al. 2020, for
    cross-validation."""
    split_seed: int = SEED
    """Random seed of the splits."""

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """Return the configurations; also check the flags of the split."""
        self.split_options()
        if self.class_weights and self.no_class_weights:
            raise InputError("--class-weights and --no-class-weights contradict each other")
        return super().configs()

    @property
    def usual_descriptors(self) -> tuple[str, ...]:
        """Words for the descriptors that molecules get if no flag says otherwise."""
        return USUAL_DESCRIPTORS

    def split_options(self) -> SplitOptions:
        """Return the options of the splits."""
        return SplitOptions(self.split, self.split_column, self.splits, self.split_seed)

    def arguments(self) -> dict[str, Any]:
        """Read the source, and return the arguments of all functions that train, by name."""
        from cell_attention.training.threads import settle_process

        network, training = self.configs()
        settle_process()  # from now on: this process does nothing else
        from cell_attention.api.reading import Reading

        asked = Reading(columns=self.molecules.columns(self.split_column))
        reading = asked.for_network(
            self.source, self.model_name, network, usual=self.usual_descriptors
        )
        graph_set = self.read(reading.columns)
        trials = searched_trials(self.config, graph_set.name, len(graph_set.graphs))
        return {
            "data": graph_set,
            "network": network,
            "training": training,
            "split": self.split_options(),
            "metric": self.metric,
            "class_weights": self.class_weights or (not self.no_class_weights and "auto"),
            "search_trials": trials,
            "on_error": self.molecules.on_error,
            "folder": self.folder,
            "fresh": self.fresh,
            "checkpoint_seconds": self.checkpoint_seconds,
            "progress": self.progress(),
        }
