"""`cell-attention ablate`: what every part of the network is worth, beside the paper's table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cell_attention.cli import console
from cell_attention.cli.options.folds import FoldOptions

if TYPE_CHECKING:
    from cell_attention.evaluation.ablation import Ablation


@dataclass(frozen=True, kw_only=True)
class Ablate(FoldOptions):
    """Cross-validate the network and each of the paper's ablations on the same folds; the same
    command continues what was interrupted.

    RUN_DIR gets a run per variant, as `crossval` makes it, and ablation.json, .md and .svg.
    """

    protocol: Literal["paper", "fair"] = "paper"
    """Whether the fair protocol is run too."""

    @property
    def purpose(self) -> str:
        """Of the folder's name."""
        return "ablation"

    def run(self) -> None:
        """Read, divide, train, subtract, report."""
        found = self.result()
        if self.json:
            console.as_json(found.record())
            return
        console.table(found.title, found.header, found.rows())
        for leak in found.leaks:
            print(f"Note: {leak}.")
        console.note(f"table and bars are in {self.folder / 'ablation.md'} and ablation.svg")

    def result(self) -> "Ablation":
        """Everything but the report."""
        self.configs()
        from cell_attention.api.ablate import ablate

        with self.resumable():
            return ablate(protocol=self.protocol, **self.arguments())
