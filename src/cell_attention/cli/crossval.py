"""`cell-attention crossval`: what a network reaches on held-out folds, by every protocol."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from cell_attention.cli import show
from cell_attention.cli.learning import Learning, targets_of
from cell_attention.cli.overrides import read_grid
from cell_attention.cli.watching import Watching
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig, TrainingConfig
from cell_attention.rivals.models import Name

if TYPE_CHECKING:
    from torch import Tensor

    from cell_attention.data.splits import Splits
    from cell_attention.learn.question import Question
    from cell_attention.learn.results import Result
    from cell_attention.topology.complex import CellComplex


@dataclass(frozen=True, kw_only=True)
class Crossval(Learning):
    """Cross-validate a network; the same command continues what was interrupted.

    The paper's preset is used where SOURCE is one of the paper's sets; flags and --config change
    single fields of it.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="RUN_DIR")]
    """The folder of this run."""
    model: Name = "can"
    """Cell attention, a rival network, a graph kernel with a support vector machine (wl,
    propagation, graphlet, random-walk), or the largest class alone.
    """
    protocol: Literal["paper", "fair"] = "paper"
    """Whether the fair protocol is run too: inner validation graphs choose epoch and
    configuration, three reruns meet the held-out graphs once each.
    """
    grid: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file with tables [network] and [training] that list values per field; the fair
    protocol chooses from all combinations.
    """
    folds: int = 10
    """How many parts the graphs are divided into."""
    split_seed: int = 12091996
    """Of the division into folds."""
    splits: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A JSON file of folds instead, as published by Errica et al. 2020 or a list of {train,
    validation[, test]}.
    """
    jobs: int = 0
    """Trainings at a time, each in a process with one thread; 0 is one per core."""
    engine: Literal["processes", "ray"] = "processes"
    """Processes of this machine, or tasks of the Ray cluster at $RAY_ADDRESS (else a local one)."""

    def run(self) -> None:
        """Read, divide, train, report."""
        self._report(*self.outcome())

    @property
    def model_name(self) -> str:
        """One of the models that can be compared."""
        return self.model

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """With a look at the flags that are this verb's own."""
        if self.jobs < 0:
            raise InputError(f"jobs must not be negative, got {self.jobs}")
        if self.grid is not None and self.protocol != "fair":
            raise InputError(f"--grid {self.grid} needs --protocol fair, which chooses from it")
        return super().configs()

    def outcome(self) -> "tuple[Result, Splits]":
        """Everything but the report."""
        network, training = self.configs()
        grid = read_grid(self.grid, network, training)
        from cell_attention.learn.question import Question, data_digest

        lifted = self.read(network.max_polygon)
        complexes, splits = lifted.complexes, self._splits(targets_of(lifted))
        question = Question(
            lifted.graph_set.name, len(complexes), data_digest(complexes), splits.origin,
            splits.digest, network, training, self.class_weights, self.model, self.protocol, grid,
        )  # fmt: skip
        return self._result(question, complexes, splits), splits

    def _splits(self, targets: "Tensor") -> "Splits":
        from cell_attention.data import splits

        if self.splits is not None:
            made = splits.read_splits(self.splits, len(targets))
        elif targets.is_floating_point():
            made = splits.shuffled_folds(targets, self.folds, self.split_seed)
        else:
            made = splits.stratified_folds(targets, self.folds, self.split_seed)
        return splits.nested(made, targets, self.split_seed) if self.protocol == "fair" else made

    def _result(self, question: "Question", complexes: "CellComplex", splits: "Splits") -> "Result":
        from cell_attention.learn.crossval import crossvalidate, missing_parts, prepare
        from cell_attention.learn.runs import Run
        from cell_attention.topology.compiled import announced_compilation

        with Run.begin(self.out, question, splits, self.fresh) as run:
            missing = missing_parts(run)
            if missing:
                with announced_compilation(show.compiling):
                    prepare(question, complexes)
            try:
                with Watching(missing, question.training.epochs, self.silent) as watching:
                    return crossvalidate(
                        run, complexes, self.jobs, watching.hear, self.engine,
                        self.checkpoint_seconds,
                    )  # fmt: skip
            except KeyboardInterrupt:
                show.note(f"finished parts are in {self.out}; the same command goes on from there")
                raise

    def _report(self, result: "Result", splits: "Splits") -> None:
        import json

        from cell_attention.learn.published import PAPER

        if self.json:
            show.as_json(json.loads((self.out / "result.json").read_text(encoding="utf-8")))
            return
        rows = result.rows()
        if self.source in PAPER:
            mean, std = PAPER[self.source]
            rows.append(("CAN as printed in the paper", f"{mean} ± {std}", ""))
        if result.majority is not None:
            rows.append(("largest class alone", f"{result.majority:.1f}", ""))
        title = f"{self.source}, {result.score} over {splits.origin}; ± is the population std"
        show.table(title, ("protocol", "result", "epoch"), rows)
        print(result.leakage.sentence())
        for leak in result.leaks:
            print(f"Note: {leak}.")
