"""`cell-attention lift`: the complexes of a data set and their statistics."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cell_attention._files import check_writable
from cell_attention.cli import console
from cell_attention.cli.options.source import SourceOptions
from cell_attention.topology.limits import Limits

if TYPE_CHECKING:
    from cell_attention.data.dataset import GraphSet
    from cell_attention.topology.statistics import Statistics


@dataclass(frozen=True, kw_only=True)
class Lift(SourceOptions):
    """Lift the graphs of a data set to cell complexes and print their statistics (the paper's
    Table 1).
    """

    max_polygon: int | None = None
    """Longest chordless cycle that becomes a polygon (R in the paper); by default 8 for files of
    molecules, else 6."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Save the complexes to this file (safetensors), which CellComplex.load can read."""
    limits: Limits = field(default_factory=Limits)
    """Limits on the size of the complex of one graph."""

    def run(self) -> None:
        """Lift the graphs, save them, and print their statistics."""
        from cell_attention.topology.polygons import check_max_polygon

        if self.max_polygon is not None:
            check_max_polygon(self.max_polygon)
        if self.out is not None:
            check_writable(self.out, self.source)
        lifted, counted = self.lifted()
        if self.out is not None:
            lifted.graphs.save(self.out)
        for text in (*lifted.notes, *lifted.remarks):
            console.note(console.with_flags(text))
        if self.json:
            console.as_json(record(lifted, counted))
        else:
            title = f"{lifted.name}, polygons of up to {lifted.max_polygon} edges"
            console.table(title, ("", "total", "per graph"), rows(lifted, counted))
        if self.out is not None:
            console.note(f"saved to {self.out}")

    def lifted(self) -> "tuple[GraphSet, Statistics]":
        """Lift the graphs and count their cells."""
        from cell_attention.data.sources import lift_set
        from cell_attention.topology.statistics import statistics

        on_error = self.molecules.on_error
        lifted = lift_set(self.read(), self.max_polygon, limits=self.limits, on_error=on_error)
        return lifted, statistics(lifted.graphs, lifted.max_polygon or 0)


def class_counts(lifted: "GraphSet") -> dict[str, int]:
    """Count the graphs of each class, by the name of the class in the source."""
    names, targets = lifted.class_names, lifted.graphs.targets
    if not names or targets is None:
        return {}
    return dict(zip(names, targets.bincount(minlength=len(names)).tolist(), strict=True))


def record(lifted: "GraphSet", counted: "Statistics") -> dict[str, Any]:
    """Return the statistics as JSON, with the name of the source, its classes and notes."""
    return {
        "name": lifted.name,
        "classes": class_counts(lifted),
        **asdict(counted),
        "notes": [*lifted.notes, *lifted.remarks],
    }


def rows(lifted: "GraphSet", counted: "Statistics") -> list[tuple[str, str, str]]:
    """Return the statistics as a table: label, total, mean per graph."""
    graphs = max(counted.num_complexes, 1)

    def row(label: str, total: int) -> tuple[str, str, str]:
        return label, f"{total:,}", f"{total / graphs:.2f}"

    classes = class_counts(lifted)
    spread = ", ".join(f"{name}: {count}" for name, count in list(classes.items())[:6])
    return [
        ("graphs", f"{counted.num_complexes:,}", ""),
        ("classes", str(len(classes)), spread + (", …" if len(classes) > 6 else "")),
        ("node features", str(counted.node_features), ""),
        ("edge features", str(counted.edge_features), ""),
        row("nodes", counted.num_nodes),
        row("edges", counted.num_edges),
        row("polygons", counted.num_polygons),
        *(row(f"  of {size} edges", total) for size, total in counted.polygon_sizes.items()),
        row("lower pairs", counted.lower_pairs),
        row("upper pairs", counted.upper_pairs),
        row("edges without a lower neighbour", counted.edges_without_lower_pair),
        row("edges without an upper neighbour", counted.edges_without_upper_pair),
        row("isolated nodes", counted.isolated_nodes),
        ("graphs without an edge", f"{counted.complexes_without_edge:,}", ""),
        ("graphs without a polygon", f"{counted.complexes_without_polygon:,}", ""),
    ]
