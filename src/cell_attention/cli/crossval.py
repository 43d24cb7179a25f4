"""`cell-attention crossval`: the score of a model on held-out folds, by every protocol."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from cell_attention.cli import console
from cell_attention.cli.options.config import read_grid
from cell_attention.cli.options.folds import FoldOptions
from cell_attention.cli.options.model import ModelName
from cell_attention.cli.predict import MOST_COLUMNS
from cell_attention.data.file_format import is_molecule_file
from cell_attention.errors import InputError
from cell_attention.models.registry import find_model
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig

if TYPE_CHECKING:
    from cell_attention.evaluation.result import Result


@dataclass(frozen=True, kw_only=True)
class Crossval(FoldOptions):
    """Cross-validate a model; the same command resumes an interrupted run.

    The default network works on every rank; --design paper takes the paper's, with its preset if
    SOURCE is one of the paper's data sets. Flags and --config change single fields.
    """

    model: ModelName = "can"
    """Cell attention (can), a rival network, a graph kernel with a support vector machine (wl,
    propagation, graphlet, random-walk), the majority class, or one for molecules alone: a random
    forest on Morgan fingerprints (forest), a forest or gradient boosting on all descriptors of
    RDKit (forest-rdkit, boosting), or chemprop where it is installed.
    """
    protocol: Literal["paper", "fair"] | None = None
    """Choose fair to run the fair protocol too: inner validation graphs choose epoch and
    configuration, and each of three reruns is scored once on the held-out graphs. By default fair
    for files of molecules, else paper.
    """
    grid: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file with tables [network] and [training] that have a list of values per field; the
    fair protocol chooses from all combinations.
    """

    def run(self) -> None:
        """Cross-validate, and print the result."""
        self._report(self.result())

    def result(self) -> "Result":
        """Cross-validate without printing."""
        grid = read_grid(self.grid, self.model, self.configs())
        from cell_attention.api.crossvalidate import crossvalidate

        with self.resumable():
            return crossvalidate(
                model=self.model, grid=grid, protocol=self.protocol, **self.arguments()
            )

    @property
    def fair(self) -> bool:
        """Whether the fair protocol is run."""
        usual = find_model(self.model).usual_protocol(is_molecule_file(self.source))
        return (self.protocol or usual) == "fair"

    @property
    def purpose(self) -> str:
        """The end of the default folder's name: the model and its design, so that each one has its
        own folder.
        """
        paper = self.model == "can" and self.configs()[0].design == "paper"
        return f"{self.model}-paper" if paper else self.model

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return self.model

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """Return the configurations; also check the flags of this command."""
        if self.grid is not None and not self.fair:
            raise InputError(f"--grid {self.grid} needs --protocol fair, which chooses from it")
        if self.class_weights and not find_model(self.model).epochs:
            raise InputError(f"--class-weights cannot be used with model {self.model!r}")
        return super().configs()

    def _report(self, result: "Result") -> None:
        from cell_attention.evaluation.published import PAPER

        if self.json:
            console.as_json(json.loads((self.folder / "result.json").read_text(encoding="utf-8")))
            return
        rows = result.rows()
        if self.source in PAPER:
            mean, std = PAPER[self.source]
            rows.append(("CAN as printed in the paper", f"{mean} ± {std}", ""))
        if result.majority is not None:
            rows.append(("largest class alone", f"{result.majority:.1f}", ""))
        origin = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))["settings"][
            "splits"
        ]
        what = f"{self.source}, {find_model(self.model).title}"
        title = f"{what}: {result.score} over {origin}; ± is the population std"
        console.table(title, ("protocol", "result", "epoch"), rows)
        if result.columns:
            shown = list(result.columns.items())[:MOST_COLUMNS]
            columns = [(name, column.text(result.score)) for name, column in shown]
            console.table("Each column in its own unit", ("column", "result"), columns)
        print(result.leakage.sentence())
        for leak in result.leaks:
            print(f"Note: {leak}.")
        if self.out is None:
            console.say(f"Saved to {self.folder}")
