"""`cell-attention search`: a better configuration, chosen by inner validation graphs alone."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cell_attention.cli import console as show
from cell_attention.cli.options.config import read_tables
from cell_attention.cli.options.folds import Folding
from cell_attention.errors import InputError
from cell_attention.models.registry import Name
from cell_attention.nn.config import NetworkConfig, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cell_attention.parallel.engine import Work
    from cell_attention.tuning.search_folder import Found
    from cell_attention.tuning.space import Space


@dataclass(frozen=True, kw_only=True)
class Search(Folding):
    """Search for a configuration with Optuna (TPE, median pruner); the same command continues what
    was interrupted, with more --trials it goes on.

    Trials see the inner training and validation part of every fold, never what a cross-validation
    holds out. RUN_DIR gets best.toml, which `crossval --config` takes.
    """

    model: Name = "can"
    """What is configured: cell attention or a rival network."""
    trials: int = 30
    """How many configurations are tried, beside the one that is started from."""
    at_once: int = 2
    """Trials that are drawn together; their trainings run side by side."""
    space: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file with tables [shape], [network] and [training] that says what is searched: a list
    of values per field, or {low, high, log}; a usual space of the model without it.
    """
    nested: bool = False
    """A search per fold, whose winner meets the held-out graphs of that fold once: an honest
    estimate of what searching and training come to, and no single best configuration.
    """

    @property
    def model_name(self) -> str:
        """What is configured."""
        return self.model

    @property
    def purpose(self) -> str:
        """Of the folder's name."""
        return "search"

    def run(self) -> None:
        """Read, divide, try, choose, report."""
        found = self.outcome()
        if self.json:
            show.as_json(asdict(found))
            return
        self._report(found)

    def outcome(self) -> "Found":
        """Everything but the report."""
        for name in ("trials", "at_once"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        network, training = self.configs()
        from cell_attention.cli.progress import Watching
        from cell_attention.evaluation.crossval import prepare
        from cell_attention.parallel import engine
        from cell_attention.topology.compiled import announced_compilation
        from cell_attention.tuning import search
        from cell_attention.tuning.search_folder import Searching
        from cell_attention.tuning.study import imported

        imported()
        space = self._space(network, training)
        lifted = self.read(network.max_polygon)
        splits = self.divided(lifted, nested=True)
        question = self.question(lifted, splits, network, training, protocol="fair")
        asked = Searching(question, space, self.nested, self.at_once)
        with announced_compilation(show.compiling):
            prepare(question, lifted.complexes)
        parts = len(splits.folds) * (self.trials + 1 + 3 * self.nested)
        parts -= sum(1 for _ in self.folder.rglob("fair-*.json"))
        try:
            with Watching(max(parts, 0), training.epochs, self.silent) as watching:

                def run_all(works: "Sequence[Work]") -> object:
                    return engine.run_all(works, self.jobs, watching.hear, self.engine)

                return search.search(
                    self.folder, asked, splits, lifted.complexes, self.trials, run_all,
                    self.checkpoint_seconds, self.fresh,
                )  # fmt: skip
        except KeyboardInterrupt:
            show.note(f"finished trials are in {self.folder}; the same command goes on from there")
            raise

    def _space(self, network: NetworkConfig, training: TrainingConfig) -> "Space":
        from cell_attention.tuning.space import check_space, space_of, usual_space

        usual = usual_space(self.model)
        if self.space is None:
            return usual
        tables = read_tables("--space", self.space, ("shape", "network", "training"))
        space = space_of(tables, str(self.space))
        check_space(space, self.model, network, training, str(self.space))
        return space

    def _report(self, found: "Found") -> None:
        from cell_attention.evaluation.protocols import digits_of

        digits, what = digits_of(found.score), f"{self.source}, {self.model}"

        def text(value: float | None) -> str:
            return "" if value is None else f"{value:.{digits}f}"

        if found.nested is None:
            (winner,) = found.winners
            (tried,) = found.tried
            rows = [(one.name, one.state, text(one.value), str(one.folds)) for one in tried]
            title = f"{what}: best {found.score} on inner validation graphs, mean over the folds"
            show.table(title, ("trial", "state", "score", "folds"), rows)
            where = self.folder / "best.toml"
            print(f"Best: {winner.name}, {text(winner.value)}; written to {where}.")
            print(
                "That score chose the configuration, and the inner validation parts of all folds "
                "cover every graph: neither it nor a cross-validation of best.toml on these graphs "
                "is an honest estimate. --nested gives one."
            )
            return
        rows = [
            (f"fold {fold}", winner.name, text(winner.value), text(test))
            for fold, (winner, test) in enumerate(
                zip(found.winners, found.nested.folds, strict=True)
            )
        ]
        title = f"{what}: {found.score}, {found.trials} trials in every fold"
        show.table(title, ("", "winner", "inner validation", "held out"), rows)
        honest = "" if found.leaks else " (honest)"
        outcome = found.nested.text(found.score)
        print(f"Held-out graphs, met once by every fold's winner: {outcome}{honest}.")
        for leak in found.leaks:
            print(f"Note: not honest, for {leak} with another --config.")
