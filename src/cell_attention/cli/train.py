"""`cell-attention train`: one model from one data set."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cell_attention.cli import console as show
from cell_attention.cli.lift import Lifted
from cell_attention.cli.options.config import searched_trials
from cell_attention.cli.options.training import Learning, note_repeats, targets_of
from cell_attention.cli.progress import Watching, span
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig, TrainingConfig

if TYPE_CHECKING:
    from cell_attention.data.splits.folds import Splits
    from cell_attention.inference.fit import Fitting
    from cell_attention.inference.model_folder import Model


@dataclass(frozen=True, kw_only=True)
class Train(Learning):
    """Train a network and save it at its best validation epoch; the same command continues what
    was interrupted.

    The paper's preset is used where SOURCE is one of the paper's sets; flags and --config change
    single fields of it. Training stops when validation has not improved for --patience epochs.
    """

    validation: float = 0.1
    """Share of the graphs that chooses the epoch."""
    test: float = 0.1
    """Share of the graphs that is touched once, after training; 0 leaves the test out."""
    ensemble: int = 1
    """Networks that are trained alike from different seeds; their mean predicts, their spread
    tells how sure it is."""

    def run(self) -> None:
        """Read, divide, train, save, report."""
        self._report(*self.fitted())

    def fitted(self) -> "tuple[Model, Fitting]":
        """Everything but the report."""
        network, training = self.configs()
        fitting = self._fitting(network, training)
        from cell_attention.evaluation.crossval import prepare
        from cell_attention.inference.fit import fit
        from cell_attention.topology.compiled import announced_compilation

        with announced_compilation(show.compiling):
            prepare(fitting.question, fitting.complexes)
        if not self.silent and not (self.folder / "config.json").exists():
            self._note_time(fitting)
        try:
            with Watching(len(fitting.members), training.epochs, self.silent) as watching:
                model = fit(
                    self.folder, fitting, self.fresh, self.checkpoint_seconds, watching.hear
                )
        except KeyboardInterrupt:
            show.note(f"what is done is in {self.folder}; the same command goes on from there")
            raise
        return model, fitting

    def _note_time(self, fitting: "Fitting") -> None:
        """Say how long it will take, at most."""
        from cell_attention.training.timing import epoch_seconds

        question, graphs = fitting.question, len(fitting.fold.train)
        seconds = epoch_seconds(question, fitting.complexes, graphs) * question.training.epochs
        show.note(
            f"about {span(seconds * len(fitting.members))} for {question.training.epochs} epochs "
            f"of {graphs:,} graphs, less if validation stops improving before"
        )

    def _fitting(self, network: Any, training: Any) -> "Fitting":
        from cell_attention.inference.fit import Fitting
        from cell_attention.training.settings import Question, data_digest

        lifted = self.read(network.max_polygon)
        complexes, splits = lifted.complexes, self._divided(lifted)
        question = Question(
            lifted.graph_set.name, len(complexes), data_digest(complexes), splits.origin,
            splits.digest, network, training, self.class_weights,
            searched=searched_trials(self.config, lifted.graph_set.name, len(complexes)),
            metric=self.scoring(lifted, splits.folds), ensemble=self.ensemble,
            task=lifted.graph_set.kind, meaning=self.meaning(lifted),
        )  # fmt: skip
        return Fitting(question, lifted.graph_set, complexes, splits.folds[0])

    def meaning(self, lifted: Lifted) -> str:
        """A model speaks of classes by their names, whatever it was trained on."""
        from cell_attention.training.settings import meaning_of

        return meaning_of(lifted.graph_set)

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """With a look at the flags that are this verb's own."""
        if not 1 <= self.ensemble <= 100:
            raise InputError(f"ensemble must lie in 1…100, got {self.ensemble}")
        return super().configs()

    def _divided(self, lifted: Lifted) -> "Splits":
        """One division, with its origin."""
        from cell_attention.data.splits import folds as splits
        from cell_attention.data.splits.split_files import read_division, told_division

        targets, molecules = targets_of(lifted), lifted.graph_set.molecules
        groups = self.groups(lifted)
        if self.splits is not None:
            fold, origin = read_division(self.splits, len(targets)), self.splits.name
        elif self.split_column is not None:
            cells, lines = ((), ()) if molecules is None else (molecules.parts, molecules.lines)
            where = f"{self.source}, column {self.split_column!r}"
            fold = told_division(where, cells, lines)
            origin = f"column {self.split_column}"
        else:
            fold = splits.holdout(
                targets, self.validation, self.test, self.split_seed, groups,
                stratified=self.split != "random",
            )  # fmt: skip
            origin = (
                f"{self.validation:g} for validation, {self.test:g} for testing, "
                f"{self.split}, seed {self.split_seed}"
            ).replace("auto, ", "")
        unused = len(targets) - len(fold.rest) - len(fold.held_out)
        if unused:
            show.note(f"{unused:,} of {len(targets):,} graphs are in no part")
        if molecules is not None:
            note_repeats(molecules, (fold,))
        return splits.Splits.of((fold,), origin)

    def _report(self, model: "Model", fitting: "Fitting") -> None:
        known, fold = model.provenance, fitting.fold
        weights = sum(parameter.numel() for parameter in model.network.parameters())
        if self.json:
            folder = {"model_dir": str(self.folder), "members": len(model.members)}
            show.as_json({**folder, "parameters": weights, **known})
            return
        from cell_attention.training.metrics import METRICS, metrics_of

        names, rows = metrics_of(model.task), []
        for name, graphs in asdict(fold).items():
            reached = known["reached"][name]
            if reached is not None:
                cells = [_number(metric, reached["metrics"].get(metric)) for metric in names]
                rows.append((name, f"{len(graphs):,}", f"{reached['loss']:.3f}", *cells))
        title = (
            f"{self.source}: {weights:,} weights of epoch {known['best_epoch']}, the best of "
            f"{known['epochs']} by {known['score']} on the validation graphs"
        )
        if len(model.members) > 1:
            title = f"{self.source}: {len(model.members)} networks of {weights:,} weights"
        show.table(title, ("", "graphs", "loss", *(METRICS[name].title for name in names)), rows)
        if len(model.thresholds) == 1:
            what = f"class {model.labels[1]!r}" if model.labels else "the label"
            print(f"From a probability of {model.thresholds[0]:.3f} on, {what} is predicted.")
        if fitting.question.searched:
            print(f"Note: {fitting.question.leak}.")
        print(f"Saved to {self.folder}")


def _number(metric: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if metric == "accuracy" else f"{value:.3f}"
