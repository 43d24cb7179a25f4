"""`cell-attention ablate`: how much every part of the network contributes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cell_attention.cli import console
from cell_attention.cli.options.folds import FoldOptions

if TYPE_CHECKING:
    from cell_attention.evaluation.ablation import Ablation


@dataclass(frozen=True, kw_only=True)
class Ablate(FoldOptions):
    """Cross-validate the network and each ablation of it on the same folds; the same command
    resumes an interrupted ablation. With --design paper the ablations are the paper's.

    The folder gets a RUN_DIR per variant, as `crossval` writes it, and ablation.json, .md and .svg.
    """

    protocol: Literal["paper", "fair"] = "paper"
    """Choose fair to run the fair protocol too."""

    @property
    def purpose(self) -> str:
        """The end of the default folder's name."""
        return "ablation"

    def run(self) -> None:
        """Run the ablation and print its table."""
        found = self.result()
        if self.json:
            console.as_json(found.record())
            return
        console.table(found.title, found.header, found.rows())
        for leak in found.leaks:
            print(f"Note: {leak}.")
        console.note(f"the table is in {self.folder / 'ablation.md'}, the picture in ablation.svg")

    def result(self) -> "Ablation":
        """Run the ablation without printing."""
        self.configs()
        from cell_attention.api.ablate import ablate

        with self.resumable():
            return ablate(protocol=self.protocol, **self.arguments())
