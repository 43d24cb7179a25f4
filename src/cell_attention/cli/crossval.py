"""`cell-attention crossval`: what a network reaches on held-out folds, by every protocol."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from cell_attention.cli import console as show
from cell_attention.cli.lift import Lifted
from cell_attention.cli.options.config import read_grid
from cell_attention.cli.options.folds import Folding
from cell_attention.data.dataset import is_molecule_file
from cell_attention.errors import InputError
from cell_attention.models.registry import Name, model_named
from cell_attention.nn.config import NetworkConfig, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cell_attention.data.splits.folds import Fold, Splits
    from cell_attention.evaluation.result import Result
    from cell_attention.training.settings import Protocol, Question


@dataclass(frozen=True, kw_only=True)
class Crossval(Folding):
    """Cross-validate a network; the same command continues what was interrupted.

    The paper's preset is used where SOURCE is one of the paper's sets; flags and --config change
    single fields of it.
    """

    model: Name = "can"
    """Cell attention, a rival network, a graph kernel with a support vector machine (wl,
    propagation, graphlet, random-walk), a random forest on Morgan fingerprints (forest, of
    molecules), or the largest class alone.
    """
    protocol: Literal["paper", "fair"] | None = None
    """Whether the fair protocol is run too: inner validation graphs choose epoch and
    configuration, three reruns meet the held-out graphs once each. Files of molecules have it by
    default, graphs do not.
    """
    grid: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file with tables [network] and [training] that list values per field; the fair
    protocol chooses from all combinations.
    """

    def run(self) -> None:
        """Read, divide, train, report."""
        self._report(*self.outcome())

    @property
    def fair(self) -> bool:
        """Whether held-out graphs are kept from every choice."""
        if self.protocol is not None:
            return self.protocol == "fair"
        return is_molecule_file(self.source) and model_named(self.model).epochs

    @property
    def purpose(self) -> str:
        """Of the folder's name: the model, so that those of one source lie side by side."""
        return self.model

    @property
    def model_name(self) -> str:
        """One of the models that can be compared."""
        return self.model

    def configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        """With a look at the flags that are this verb's own."""
        if self.grid is not None and not self.fair:
            raise InputError(f"--grid {self.grid} needs --protocol fair, which chooses from it")
        if self.class_weights and not model_named(self.model).epochs:
            raise InputError(f"model {self.model!r} does not know class_weights")
        return super().configs()

    def outcome(self) -> "tuple[Result, Splits]":
        """Everything but the report."""
        network, training = self.configs()
        grid = read_grid(self.grid, self.model, network, training)
        lifted = self.read(network.max_polygon)
        splits = self.divided(lifted, nested=self.fair)
        protocol: Protocol = "fair" if self.fair else "paper"
        question = self.question(lifted, splits, network, training, grid, protocol)
        return self._result(question, lifted, splits), splits

    def scoring(self, lifted: Lifted, folds: "Sequence[Fold]") -> str | None:
        """Accuracy where a model gives nothing but classes."""
        model = model_named(self.model)
        alone = not model.epochs and not model.molecules
        return self.metric if alone else super().scoring(lifted, folds)

    def _result(self, question: "Question", lifted: Lifted, splits: "Splits") -> "Result":
        from cell_attention._files import write_whole
        from cell_attention.evaluation.crossval import crossvalidate, require_possible
        from cell_attention.evaluation.run_folder import Run

        complexes, molecules = lifted.complexes, lifted.graph_set.molecules
        require_possible(question, complexes)
        reads = model_named(self.model).molecules
        if reads and molecules is None:
            raise InputError(
                f"model {self.model!r} reads molecules; {self.source} is no file of them"
            )
        with (
            Run.begin(self.folder, question, splits, self.fresh) as run,
            self.watching([run], complexes) as watching,
        ):
            if reads and molecules is not None:
                write_whole(run.molecules, json.dumps({"smiles": molecules.smiles}) + "\n")
            return crossvalidate(
                run, complexes, self.jobs, watching.hear, self.engine, self.checkpoint_seconds
            )

    def _report(self, result: "Result", splits: "Splits") -> None:
        from cell_attention.evaluation.published import PAPER

        if self.json:
            show.as_json(json.loads((self.folder / "result.json").read_text(encoding="utf-8")))
            return
        rows = result.rows()
        if self.source in PAPER:
            mean, std = PAPER[self.source]
            rows.append(("CAN as printed in the paper", f"{mean} ± {std}", ""))
        if result.majority is not None:
            rows.append(("largest class alone", f"{result.majority:.1f}", ""))
        what = f"{self.source}, {model_named(self.model).title}"
        title = f"{what}: {result.score} over {splits.origin}; ± is the population std"
        show.table(title, ("protocol", "result", "epoch"), rows)
        print(result.leakage.sentence())
        for leak in result.leaks:
            print(f"Note: {leak}.")
        if self.out is None:
            print(f"Saved to {self.folder}")
