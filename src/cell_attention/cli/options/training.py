"""What all verbs that train have in common: their source, their configuration, their manners."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import tyro

from cell_attention.cli import console as show
from cell_attention.cli.lift import DataDir, Lift, Lifted, lift_source
from cell_attention.cli.options.config import configured, flags_of
from cell_attention.cli.options.molecules import MoleculeFlags
from cell_attention.data.dataset import MOLECULE_FILES
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from cell_attention.data.dataset import Molecules
    from cell_attention.data.splits.folds import Fold

    NetworkFlags: TypeAlias = Any
    TrainingFlags: TypeAlias = Any
else:
    NetworkFlags, TrainingFlags = flags_of(NetworkConfig), flags_of(TrainingConfig)

MetricName = Literal["accuracy", "roc_auc", "pr_auc", "mcc", "brier", "rmse", "mae", "r2"]


@dataclass(frozen=True, kw_only=True)
class Learning:
    """A verb that trains networks on a SOURCE."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A TU name such as MUTAG, a folder or .zip in TU format, or a .csv, .smi or .sdf of molecules
    (also gzipped)."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where everything goes; by default a folder here, named after SOURCE."""
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
    molecules: tyro.conf.OmitArgPrefixes[MoleculeFlags] = field(default_factory=MoleculeFlags)
    """How a file of molecules is read."""
    metric: MetricName | None = None
    """What chooses the epoch and is reported; by default accuracy, RMSE for values, and ROC-AUC
    for files of molecules with two classes or labels."""
    split: Literal["auto", "random", "stratified", "scaffold"] = "auto"
    """How graphs are divided: classes in equal shares where there are classes, at random, or
    molecules of one Bemis–Murcko scaffold together."""
    split_column: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Column of a file of molecules that tells the division instead: train, validation or test for
    one model, the name of a fold for folds."""
    splits: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A JSON file that tells it instead: {train, validation[, test]} for one model, such as
    splits.json of another; a list of these for folds, or the form of Errica et al. 2020."""
    split_seed: int = 12091996
    """Of the division."""
    network: tyro.conf.OmitArgPrefixes[NetworkFlags] = field(default_factory=NetworkFlags)
    """Fields of the network."""
    training: tyro.conf.OmitArgPrefixes[TrainingFlags] = field(default_factory=TrainingFlags)
    """Fields of the training."""

    @property
    def silent(self) -> bool:
        """Whether progress is not to be shown."""
        return self.quiet or self.json

    @property
    def purpose(self) -> str:
        """What the folder is called after SOURCE, where nothing else is said."""
        return "model"

    @property
    def folder(self) -> Path:
        """Where everything goes."""
        if self.out is not None:
            return self.out
        name = Path(self.source).name.removesuffix(".gz")
        for ending in (*MOLECULE_FILES, ".zip"):
            name = name[: -len(ending)] if name.lower().endswith(ending) else name
        return Path(f"{name or 'data'}-{self.purpose}")

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
        if self.split_column is not None and self.splits is not None:
            raise InputError("--split-column and --splits both tell how to divide; name one")
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
            molecules=self.molecules,
            split_column=self.split_column,
        )
        lifted = lift_source(asked)
        lifted.say()
        return lifted

    def meaning(self, lifted: Lifted) -> str:
        """What else a model or a run of molecules depends on: the names of columns and classes."""
        from cell_attention.training.settings import meaning_of

        return "" if lifted.graph_set.molecules is None else meaning_of(lifted.graph_set)

    def scoring(self, lifted: Lifted, folds: "Sequence[Fold]") -> str | None:
        """The metric that was asked for, or what is usual for such data on such parts."""
        from cell_attention.training.metrics import check_metric
        from cell_attention.training.tasks import kind_of, ranks_everywhere

        targets = targets_of(lifted)
        kind = lifted.graph_set.kind or kind_of(targets)
        if self.metric is not None:
            check_metric(self.metric, kind)
            return self.metric
        binary = kind == "labels" or len(lifted.graph_set.class_names) == 2
        if lifted.graph_set.molecules is None or kind == "values" or not binary:
            return None
        parts = [part for fold in folds for part in (fold.validation, fold.test) if part]
        if ranks_everywhere(kind, targets, parts):
            return "roc_auc"
        show.note("accuracy instead of ROC-AUC: some held-out part has one class alone")
        return None

    def groups(self, lifted: Lifted) -> tuple[str, ...] | None:
        """What must stay together in a division, where anything must."""
        from cell_attention.data.splits.scaffolds import scaffolds

        if self.split != "auto" and (self.splits is not None or self.split_column is not None):
            raise InputError(f"--split {self.split} beside a division that is told; name one")
        if self.split == "stratified" and targets_of(lifted).is_floating_point():
            raise InputError("split stratified needs classes as targets, got values")
        if self.split != "scaffold":
            return None
        if lifted.graph_set.molecules is None:
            raise InputError(f"split scaffold needs a file of molecules, got {self.source}")
        return scaffolds(lifted.graph_set.molecules.smiles)


def note_repeats(molecules: "Molecules", folds: "Sequence[Fold]") -> None:
    """Say how many molecules of a part stand in one before it too."""
    from cell_attention.data.molecules.molecule_set import repeats_across

    smiles = molecules.smiles
    chosen = sum(repeats_across(smiles, fold.validation, fold.train) for fold in folds)
    tested = sum(repeats_across(smiles, fold.test, fold.rest) for fold in folds)
    if chosen:
        show.note(f"{chosen:,} validation molecules stand among the training ones too")
    if tested:
        show.note(f"{tested:,} test molecules stand among the training or validation ones too")


def targets_of(lifted: Lifted) -> "Tensor":
    """What is to be learned."""
    if lifted.complexes.targets is None:
        raise InputError(f"{lifted.graph_set.name} has no targets to learn")
    targets = lifted.complexes.targets
    if not targets.is_floating_point() and targets.unique().numel() < 2:
        raise InputError(f"{lifted.graph_set.name}: all graphs are of one class")
    return targets
