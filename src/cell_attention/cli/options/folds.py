"""What all verbs that divide a source into folds have in common."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cell_attention.cli import console as show
from cell_attention.cli.lift import Lifted
from cell_attention.cli.options.config import searched_trials
from cell_attention.cli.options.training import Learning, note_repeats, targets_of
from cell_attention.cli.progress import Watching, span
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig, TrainingConfig

if TYPE_CHECKING:
    from cell_attention.data.splits.folds import Splits
    from cell_attention.evaluation.run_folder import Run
    from cell_attention.topology.complex import CellComplex
    from cell_attention.training.settings import Question


@dataclass(frozen=True, kw_only=True)
class Folding(Learning):
    """A verb that trains on folds of a SOURCE, over processes or a cluster, into a RUN_DIR."""

    folds: int = 10
    """How many parts the graphs are divided into."""
    jobs: int = 0
    """Trainings at a time, each in a process with one thread; 0 is one per core."""
    engine: Literal["processes", "ray"] = "processes"
    """Processes of this machine, or tasks of the Ray cluster at $RAY_ADDRESS (else a local one)."""

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """With a look at the flags that these verbs share."""
        if self.jobs < 0:
            raise InputError(f"jobs must not be negative, got {self.jobs}")
        return super().configs()

    @contextmanager
    def watching(self, runs: "Sequence[Run]", complexes: "CellComplex") -> "Iterator[Watching]":
        """Kernels compiled, progress shown, an interruption explained."""
        from cell_attention.evaluation.crossval import missing_parts, prepare
        from cell_attention.topology.compiled import announced_compilation

        unfinished = {run: missing for run in runs if (missing := missing_parts(run))}
        with announced_compilation(show.compiling):
            for run in unfinished:
                prepare(run.question(), complexes)
        epochs = max(run.question().training.epochs for run in runs)
        if unfinished and not self.silent:
            self._note_time(unfinished, complexes)
        try:
            with Watching(sum(unfinished.values()), epochs, self.silent) as watching:
                yield watching
        except KeyboardInterrupt:
            show.note(f"finished parts are in {self.folder}; the same command goes on from there")
            raise

    def _note_time(self, unfinished: "dict[Run, int]", complexes: "CellComplex") -> None:
        """Say how long the rest will take."""
        from cell_attention.models.registry import MODELS
        from cell_attention.parallel.engine import cores
        from cell_attention.training.timing import epoch_seconds

        total = 0.0
        for run, missing in unfinished.items():
            question, fold = run.question(), run.folds()[0]
            if MODELS[question.model].epochs:
                graphs = len(fold.rest)
                seconds = epoch_seconds(question, complexes, graphs) * question.training.epochs
                total += missing * seconds
        if total and self.engine == "processes":
            show.note(f"about {span(total / (self.jobs or cores()))} of training")

    def divided(self, lifted: Lifted, nested: bool) -> "Splits":
        """The folds; with an inner validation part each, where asked for."""
        from cell_attention.data.splits import folds as splits
        from cell_attention.data.splits.split_files import read_splits, told_folds

        targets, groups = targets_of(lifted), self.groups(lifted)
        if self.splits is not None:
            made = read_splits(self.splits, len(targets))
        elif self.split_column is not None and lifted.graph_set.molecules is not None:
            where = f"{self.source}, column {self.split_column!r}"
            made = told_folds(where, lifted.graph_set.molecules.parts)
        elif groups is not None:
            made = splits.grouped_folds(groups, self.folds, self.split_seed)
        elif self.split == "random" or targets.is_floating_point():
            made = splits.shuffled_folds(targets, self.folds, self.split_seed)
        else:
            made = splits.stratified_folds(targets, self.folds, self.split_seed)
        if lifted.graph_set.molecules is not None:
            note_repeats(lifted.graph_set.molecules, made.folds)
        return splits.nested(made, targets, self.split_seed, groups) if nested else made

    def question(
        self,
        lifted: Lifted,
        splits: "Splits",
        network: NetworkConfig,
        training: TrainingConfig,
        grid: tuple[dict[str, dict[str, Any]], ...] = (),
        protocol: Literal["paper", "fair"] = "paper",
    ) -> "Question":
        """What is asked of these folds."""
        from cell_attention.training.settings import Question, data_digest

        complexes, name = lifted.complexes, lifted.graph_set.name
        return Question(
            name, len(complexes), data_digest(complexes), splits.origin, splits.digest, network,
            training, self.class_weights, self.model_name, protocol, grid,
            searched_trials(self.config, name, len(complexes)), self.scoring(lifted, splits.folds),
            task=lifted.graph_set.kind, meaning=self.meaning(lifted),
        )  # fmt: skip
