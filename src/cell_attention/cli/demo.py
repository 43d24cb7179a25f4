"""`cell-attention demo`: lift, cross-validate, train and explain on the bundled molecules."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cell_attention.cli import console
from cell_attention.cli.crossval import Crossval
from cell_attention.cli.explain import Explain
from cell_attention.cli.lift import Lift, class_counts
from cell_attention.cli.options.training import NetworkFlags, TrainingFlags
from cell_attention.cli.train import Train

PAPER = {
    "graphs": 188.0,
    "classes": 2.0,
    "node features": 7.0,
    "edge features": 4.0,
    "nodes per graph": 17.93,
    "edges per graph": 19.79,
    "triangles per graph": 0.0,
    "squares per graph": 0.0,
    "pentagons per graph": 0.36,
    "hexagons per graph": 2.5,
}
"""The MUTAG column of the paper's Table 1."""


@dataclass(frozen=True)
class Demo:
    """Lift the bundled MUTAG molecules, cross-validate the paper's network and the default one,
    train a model and explain its predictions; the paper's numbers are shown for comparison. Works
    offline, and takes about three minutes on two cores.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("cell-attention-demo")
    """Where the cross-validation, the model and the report are saved; a second run reuses them."""
    epochs: int | None = None
    """Largest number of epochs of every training; by default those of the configurations."""
    jobs: int = 0
    """Number of trainings at a time; 0 is one per core."""
    json: bool = False
    """Print one JSON object instead of tables."""

    def run(self) -> None:
        """Lift, cross-validate, train, explain."""
        flags, quiet = TrainingFlags(epochs=self.epochs), self.json
        model_dir, report = self.out / "MUTAG-model", self.out / "MUTAG-explained.html"
        runs = {
            "CAN on edges alone, the paper's preset": self._crossval("MUTAG-paper", "paper"),
            "cell attention on every rank, the default": self._crossval("MUTAG-crossval", "ranks"),
        }
        train = Train(source="MUTAG", out=model_dir, training=flags, quiet=quiet)
        explain = Explain(model=model_dir, source="MUTAG", out=report)
        for verb in (*runs.values(), train):
            verb.configs()  # refuse bad flags before anything is printed
        counted = _counted()
        if self.json:
            preset, result = (run.result() for run in runs.values())
            model = train.result()
            explain.result()
            record: dict[str, object] = {"ours": counted, "paper": PAPER}
            record |= {"preset": asdict(preset), "crossval": asdict(result)}
            record["model"] = model.provenance
            console.as_json({**record, "report": str(report)})
            return
        rows = [
            (name, f"{counted[name]:g}", f"{stated:g}", "yes" if counted[name] == stated else "no")
            for name, stated in PAPER.items()
        ]
        console.table(
            "MUTAG, lifted with polygons of up to 6 edges", ("", "here", "paper", "equal"), rows
        )
        print(flush=True)
        self._compare(runs)
        print(flush=True)
        train.run()
        print(flush=True)
        explain.run()
        print(
            f"\nOpen {report.resolve().as_uri()} in a browser to see the bonds and rings that the "
            "prediction of every molecule depends on.\n"
            f"The curves are in {self.out / 'MUTAG-crossval' / 'curves.svg'}. "
            "Next: cell-attention train YOUR.csv, or in Python: cell_attention.lift(graphs)"
        )

    def _crossval(self, folder: str, design: str) -> Crossval:
        """Make the cross-validation of one design."""
        return Crossval(
            source="MUTAG", out=self.out / folder, jobs=self.jobs, quiet=self.json,
            network=NetworkFlags(design=design), training=TrainingFlags(epochs=self.epochs),
        )  # fmt: skip

    def _compare(self, runs: dict[str, Crossval]) -> None:
        """Cross-validate both networks and show them beside the paper's number."""
        from cell_attention.evaluation.published import PAPER as PRINTED

        rows = []
        for name, run in runs.items():
            result = run.result()
            found = result.protocols["paper"]
            if found is not None:
                rows.append((name, found.text(result.score), str(found.epoch)))
        rows.append(("CAN as printed in the paper", "{} ± {}".format(*PRINTED["MUTAG"]), ""))
        title = "MUTAG, accuracy on 10 folds at the epoch of the best mean; ± is the population std"
        console.table(title, ("network", "accuracy", "epoch"), rows)


def _counted() -> dict[str, float]:
    """Compute the entries of PAPER from the bundled data set."""
    lifted, found = Lift(source="MUTAG").lifted()
    graphs = found.num_complexes
    totals = [found.num_nodes, found.num_edges, *found.polygon_sizes.values()]
    counts = [graphs, len(class_counts(lifted)), found.node_features, found.edge_features]
    means = [round(total / graphs, 2) for total in totals]
    return dict(zip(PAPER, [*counts, *means], strict=True))
