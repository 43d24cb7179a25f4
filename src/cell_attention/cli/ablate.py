"""`cell-attention ablate`: what every part of the network is worth, beside the paper's table."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cell_attention.cli import console as show
from cell_attention.cli.options.folds import Folding
from cell_attention.errors import InputError

if TYPE_CHECKING:
    from cell_attention.evaluation.ablation import Ablation


@dataclass(frozen=True, kw_only=True)
class Ablate(Folding):
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
        found = self.outcome()
        if self.json:
            show.as_json(found.record())
            return
        show.table(found.title, found.header, found.rows())
        for leak in found.leaks:
            print(f"Note: {leak}.")
        show.note(f"table and bars are in {self.folder / 'ablation.md'} and ablation.svg")

    def outcome(self) -> "Ablation":
        """Everything but the report."""
        network, training = self.configs()
        if self.folder.is_file():
            raise InputError(f"--out {self.folder} is a file; name a folder")
        for name in ("run.json", "search.json", "config.json"):
            if (self.folder / name).exists():
                raise InputError(
                    f"--out {self.folder} holds something else ({name}); name another folder"
                )
        import json

        from cell_attention._files import write_whole
        from cell_attention.evaluation import ablation
        from cell_attention.evaluation.crossval import crossvalidate_all
        from cell_attention.evaluation.run_folder import Run

        lifted = self.read(network.max_polygon)
        complexes = lifted.complexes
        splits = self.divided(lifted, nested=self.protocol == "fair")
        question = self.question(lifted, splits, network, training, protocol=self.protocol)
        with ExitStack() as held:
            runs = {}
            for name, variant in ablation.variants(question).items():
                folder = self.folder / ablation.folder_of(name)
                runs[name] = held.enter_context(Run.begin(folder, variant, splits, self.fresh))
            watching = held.enter_context(self.watching(list(runs.values()), complexes))
            results = crossvalidate_all(
                runs, complexes, self.jobs, watching.hear, self.engine, self.checkpoint_seconds
            )
        found = ablation.ablation(lifted.graph_set.name, results)
        write_whole(self.folder / "ablation.json", json.dumps(found.record(), indent=2) + "\n")
        write_whole(self.folder / "ablation.md", found.as_markdown())
        ablation.draw_ablation(self.folder / "ablation.svg", found)
        return found
