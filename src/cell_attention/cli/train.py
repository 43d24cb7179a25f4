"""`cell-attention train`: one model from one data set."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cell_attention.cli import show
from cell_attention.cli.learning import Learning, targets_of
from cell_attention.cli.overrides import searched_trials
from cell_attention.cli.watching import Watching

if TYPE_CHECKING:
    from cell_attention.learn.checkpoint import Model
    from cell_attention.learn.fit import Fitting


@dataclass(frozen=True, kw_only=True)
class Train(Learning):
    """Train a network and save it at its best validation epoch; the same command continues what
    was interrupted.

    The paper's preset is used where SOURCE is one of the paper's sets; flags and --config change
    single fields of it. Training stops when validation has not improved for --patience epochs.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="MODEL_DIR")]
    """The folder of the model."""
    validation: float = 0.1
    """Share of the graphs that chooses the epoch."""
    test: float = 0.1
    """Share of the graphs that is touched once, after training; 0 leaves the test out."""
    split_seed: int = 12091996
    """Of the division into training, validation and test graphs."""

    def run(self) -> None:
        """Read, divide, train, save, report."""
        self._report(*self.fitted())

    def fitted(self) -> "tuple[Model, Fitting]":
        """Everything but the report."""
        network, training = self.configs()
        fitting = self._fitting(network, training)
        from cell_attention.learn.crossval import prepare
        from cell_attention.learn.fit import fit
        from cell_attention.topology.compiled import announced_compilation

        with announced_compilation(show.compiling):
            prepare(fitting.question, fitting.complexes)
        try:
            with Watching(1, training.epochs, self.silent) as watching:
                model = fit(
                    self.out, fitting, self.fresh, self.checkpoint_seconds,
                    lambda numbers: watching.hear("training", numbers),
                )  # fmt: skip
        except KeyboardInterrupt:
            show.note(f"what is done is in {self.out}; the same command goes on from there")
            raise
        return model, fitting

    def _fitting(self, network: Any, training: Any) -> "Fitting":
        from cell_attention.data.splits import Splits, holdout
        from cell_attention.learn.fit import Fitting
        from cell_attention.learn.question import Question, data_digest

        lifted = self.read(network.max_polygon)
        complexes, targets = lifted.complexes, targets_of(lifted)
        fold = holdout(targets, self.validation, self.test, self.split_seed)
        origin = (
            f"{self.validation:g} for validation, {self.test:g} for testing, seed {self.split_seed}"
        )
        splits = Splits.of((fold,), origin)
        question = Question(
            lifted.graph_set.name, len(complexes), data_digest(complexes), splits.origin,
            splits.digest, network, training, self.class_weights,
            searched=searched_trials(self.config, lifted.graph_set.name, len(complexes)),
        )  # fmt: skip
        return Fitting(question, lifted.graph_set, complexes, fold)

    def _report(self, model: "Model", fitting: "Fitting") -> None:
        known, fold = model.provenance, fitting.fold
        weights = sum(parameter.numel() for parameter in model.network.parameters())
        if self.json:
            show.as_json({"model": str(self.out), "parameters": weights, **known})
            return
        rows = []
        for name, graphs in (
            ("train", fold.train), ("validation", fold.validation), ("test", fold.test),
        ):  # fmt: skip
            reached = known["reached"][name]
            if reached is not None:
                cells = f"{len(graphs):,}", f"{reached['loss']:.3f}", f"{reached['score']:.2f}"
                rows.append((name, *cells))
        title = (
            f"{self.source}: {weights:,} weights of epoch {known['best_epoch']}, the best of "
            f"{known['epochs']} by validation"
        )
        show.table(title, ("", "graphs", "loss", known["score"]), rows)
        if fitting.question.searched:
            print(f"Note: {fitting.question.leak}.")
        print(f"Saved to {self.out}")
