"""`cell-attention demo`: the bundled data set, lifted, beside what the paper says of it."""

from dataclasses import dataclass

from cell_attention.cli import show
from cell_attention.cli.lift import Lift, class_counts, lift_source

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
    """Lift the bundled MUTAG molecules and compare them with the paper's Table 1, offline."""

    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        """Lift, count, compare."""
        lifted = lift_source(Lift("MUTAG"))
        counted = lifted.statistics
        graphs = counted.num_complexes
        means = [counted.num_nodes, counted.num_edges, *counted.polygon_sizes.values()]
        ours = dict(
            zip(
                PAPER,
                [graphs, len(class_counts(lifted)), counted.node_features, counted.edge_features]
                + [round(total / graphs, 2) for total in means],
                strict=True,
            )
        )
        if self.json:
            show.as_json({"ours": ours, "paper": PAPER})
            return
        rows = [
            (name, f"{ours[name]:g}", f"{stated:g}", "yes" if ours[name] == stated else "no")
            for name, stated in PAPER.items()
        ]
        show.table(
            "MUTAG, lifted with polygons of up to 6 edges", ("", "here", "paper", "equal"), rows
        )
        print(
            f"An edge hears {counted.lower_pairs / counted.num_edges:.1f} edges at its nodes and "
            f"{counted.upper_pairs / counted.num_edges:.1f} round its polygons, on average."
        )
        print("Next: cell-attention lift YOUR.csv, or in Python: cell_attention.lift(graphs)")
