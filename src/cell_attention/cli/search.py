"""`cell-attention search`: a better configuration, chosen by inner validation scores only."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cell_attention.cli import console
from cell_attention.cli.options.config import read_tables
from cell_attention.cli.options.folds import FoldOptions
from cell_attention.cli.options.model import ModelName

if TYPE_CHECKING:
    from cell_attention.tuning.search_folder import SearchResult


@dataclass(frozen=True, kw_only=True)
class Search(FoldOptions):
    """Search for a configuration with Optuna (TPE, median pruner); the same command resumes an
    interrupted search, and with more --trials extends it.

    Trials see the inner training and validation graphs of every fold, never its held-out graphs.
    The folder gets best.toml, a file for `crossval --config`.
    """

    model: ModelName = "can"
    """The network to configure: cell attention (can) or a rival network."""
    trials: int = 30
    """Number of configurations to try, besides the one that the search starts from."""
    at_once: int = 2
    """Number of trials that are drawn together; their trainings run in parallel."""
    space: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file with the fields to search, in tables [shape], [network] and [training]: a list of
    values per field, or {low, high, log}. Without it, the model's default space is searched.
    """
    nested: bool = False
    """Do one search per fold, whose winner is scored once on the held-out graphs of that fold: an
    honest estimate of "search, then train", but no single best configuration.
    """

    @property
    def model_name(self) -> str:
        """Name of the network."""
        return self.model

    @property
    def purpose(self) -> str:
        """The end of the default folder's name."""
        return "search"

    def run(self) -> None:
        """Search, and print the result."""
        found = self.result()
        if self.json:
            console.as_json(asdict(found))
            return
        self._report(found)

    def result(self) -> "SearchResult":
        """Search without printing."""
        self.configs()
        from cell_attention.api.search import search

        space = None
        if self.space is not None:
            space = read_tables("--space", self.space, ("shape", "network", "training"))
        with self.resumable():
            return search(
                model=self.model, trials=self.trials, space=space,
                space_name=str(self.space), nested=self.nested,
                at_once=self.at_once, **self.arguments(),
            )  # fmt: skip

    def _report(self, found: "SearchResult") -> None:
        from cell_attention.evaluation.protocols import digits_of

        digits, what = digits_of(found.score), f"{self.source}, {self.model}"

        def text(value: float | None) -> str:
            return "" if value is None else f"{value:.{digits}f}"

        if found.nested is None:
            (winner,) = found.winners
            (tried,) = found.tried
            rows = [(one.name, one.state, text(one.value), str(one.folds)) for one in tried]
            title = f"{what}: best {found.score} on inner validation graphs, mean over the folds"
            console.table(title, ("trial", "state", "score", "folds"), rows)
            where = self.folder / "best.toml"
            console.say(f"Best: {winner.name}, {text(winner.value)}; written to {where}.")
            print(
                "This score chose the configuration, and the inner validation graphs of all folds "
                "cover every graph: neither it nor a cross-validation of best.toml on these graphs "
                "is an honest estimate. Use --nested for one."
            )
            return
        rows = [
            (f"fold {fold}", winner.name, text(winner.value), text(test))
            for fold, (winner, test) in enumerate(
                zip(found.winners, found.nested.folds, strict=True)
            )
        ]
        title = f"{what}: {found.score}, {found.trials} trials in every fold"
        console.table(title, ("", "winner", "inner validation", "held out"), rows)
        honest = "" if found.leaks else " (honest)"
        outcome = found.nested.text(found.score)
        print(f"Held-out graphs, scored once with every fold's winner: {outcome}{honest}.")
        for leak in found.leaks:
            print(f"Note: this estimate is not honest: {leak} if it starts from another --config.")
