"""`cell-attention demo`: lift, cross-validate, train and explain on the bundled molecules."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cell_attention.cli import console
from cell_attention.cli.crossval import Crossval
from cell_attention.cli.explain import Explain
from cell_attention.cli.lift import Lift, class_counts
from cell_attention.cli.options.training import TrainingFlags
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
    """Lift the bundled MUTAG molecules, cross-validate the paper's network on them, train a model
    and explain its predictions; the paper's numbers are shown for comparison. Works offline, and
    takes two to three minutes on two cores.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("cell-attention-demo")
    """Where the cross-validation, the model and the report are saved; a second run reuses them."""
    epochs: int = 1000
    """Largest number of epochs of every training."""
    jobs: int = 0
    """Number of trainings at a time; 0 is one per core."""
    json: bool = False
    """Print one JSON object instead of tables."""

    def run(self) -> None:
        """Lift, cross-validate, train, explain."""
        flags, quiet = TrainingFlags(epochs=self.epochs), self.json
        run_dir, model_dir = self.out / "MUTAG-crossval", self.out / "MUTAG-model"
        crossval = Crossval(
            source="MUTAG", out=run_dir, jobs=self.jobs, training=flags, quiet=quiet
        )
        train = Train(source="MUTAG", out=model_dir, training=flags, quiet=quiet)
        report = self.out / "MUTAG-explained.html"
        explain = Explain(model=model_dir, source="MUTAG", out=report)
        for verb in (crossval, train):
            verb.configs()  # refuse bad flags before anything is printed
        counted = _counted()
        if self.json:
            result = crossval.result()
            model = train.result()
            explain.result()
            record: dict[str, object] = {"ours": counted, "paper": PAPER}
            record |= {"crossval": asdict(result), "model": model.provenance}
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
        crossval.run()
        print(flush=True)
        train.run()
        print(flush=True)
        explain.run()
        print(
            f"\nOpen {report.resolve().as_uri()} in a browser to see the bonds and rings that the "
            "prediction of every molecule depends on.\n"
            f"The curves are in {run_dir / 'curves.svg'}. "
            "Next: cell-attention train YOUR.csv, or in Python: cell_attention.lift(graphs)"
        )


def _counted() -> dict[str, float]:
    """Compute the entries of PAPER from the bundled data set."""
    lifted, found = Lift(source="MUTAG").lifted()
    graphs = found.num_complexes
    totals = [found.num_nodes, found.num_edges, *found.polygon_sizes.values()]
    counts = [graphs, len(class_counts(lifted)), found.node_features, found.edge_features]
    means = [round(total / graphs, 2) for total in totals]
    return dict(zip(PAPER, [*counts, *means], strict=True))
