"""`cell-attention lift`: the complexes of a data set and their statistics."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cell_attention.cli import console as show
from cell_attention.cli.options.molecules import MoleculeFlags
from cell_attention.data.dataset import is_molecule_file
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.limits import Limits

if TYPE_CHECKING:
    from cell_attention.data.dataset import GraphSet
    from cell_attention.topology.complex import CellComplex
    from cell_attention.topology.statistics import Statistics


DataDir = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")]


@dataclass(frozen=True)
class Lift:
    """Lift the graphs of a data set to cell complexes and print their statistics (the paper's
    Table 1).
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A TU name such as MUTAG, a folder or .zip in TU format, or a .csv, .smi or .sdf of molecules
    (also gzipped)."""
    max_polygon: int | None = None
    """Longest chordless cycle that becomes a polygon (R in the paper); 6 by default, for files of
    molecules 8."""
    json: bool = False
    """Print one JSON object instead of a table."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Save the complexes to this file (safetensors), for CellComplex.load."""
    data_dir: DataDir = None
    """Where to look for TU names first; then $CELL_ATTENTION_DATA, then the cache."""
    node_attributes: bool = False
    """Add a TU set's node attributes to its node labels."""
    molecules: tyro.conf.OmitArgPrefixes[MoleculeFlags] = field(default_factory=MoleculeFlags)
    """How a file of molecules is read."""
    limits: Limits = field(default_factory=Limits)
    """Largest complex that one graph may have."""
    split_column: tyro.conf.Suppress[str | None] = None
    """Kept for verbs that divide."""

    @property
    def longest(self) -> int:
        """Edges of the largest polygon."""
        if self.max_polygon is not None:
            return self.max_polygon
        usual = NetworkConfig.molecules() if is_molecule_file(self.source) else NetworkConfig()
        return usual.max_polygon

    def run(self) -> None:
        """Read, lift, save, report."""
        from cell_attention.topology.lifting import check_max_polygon

        check_max_polygon(self.longest)
        if self.out is not None:
            check_writable(self.out, self.source)
        lifted = lift_source(self)
        if self.out is not None:
            lifted.complexes.save(self.out)
        lifted.say()
        if self.json:
            show.as_json(record(lifted))
        else:
            title = f"{lifted.graph_set.name}, polygons of up to {self.longest} edges"
            show.table(title, ("", "total", "per graph"), rows(lifted))
        if self.out is not None:
            show.note(f"saved to {self.out}")


@dataclass(frozen=True)
class Lifted:
    """A data set, its complexes, and their statistics."""

    graph_set: "GraphSet"
    complexes: "CellComplex"
    statistics: "Statistics"

    def say(self) -> None:
        """What there is to say about the data set."""
        for text in (*self.graph_set.notes, *self.graph_set.remarks):
            show.note(text)


def lift_source(asked: Lift) -> Lifted:
    """Everything that `lift` reports on."""
    from cell_attention.data.sources import read_source
    from cell_attention.topology.compiled import announced_compilation
    from cell_attention.topology.statistics import statistics

    with announced_compilation(show.compiling):
        with show.progress(f"Reading {asked.source}") as progress:
            graph_set = read_source(
                asked.source,
                asked.data_dir,
                node_attributes=asked.node_attributes,
                on_error=asked.molecules.on_error,
                columns=asked.molecules.columns(asked.split_column),
                progress=progress,
            )
        graph_set, complexes = _lifted(graph_set, asked)
        larger = larger_rings(graph_set, asked.longest)
        if larger:
            graph_set = replace(graph_set, remarks=(*graph_set.remarks, larger))
        return Lifted(graph_set, complexes, statistics(complexes, asked.longest))


def _lifted(graph_set: "GraphSet", asked: Lift) -> "tuple[GraphSet, CellComplex]":
    """The complexes; molecules that grow beyond the limits are rows that cannot be read."""
    from cell_attention.topology.lifting import attach_polygons

    molecules = graph_set.molecules
    if molecules is None:
        return graph_set, attach_polygons(graph_set.graphs, asked.longest, asked.limits)
    from cell_attention.data.molecules.molecule_set import left_out, subset, with_polygons

    complexes, faults = with_polygons(graph_set.graphs, asked.longest, asked.limits)
    bad = {molecules.lines[i]: fault for i, fault in enumerate(faults) if fault}
    if bad:
        notes = left_out(asked.source, "line", bad, asked.molecules.on_error)
        kept = [i for i, fault in enumerate(faults) if not fault]
        graph_set = replace(subset(graph_set, kept), notes=(*graph_set.notes, *notes))
    return graph_set, complexes


def larger_rings(graph_set: "GraphSet", longest: int) -> str:
    """A sentence on rings that are no polygons; empty where there are none."""
    if graph_set.molecules is None:
        return ""
    rings = [size for size in graph_set.molecules.rings if size > longest]
    if not rings:
        return ""
    return (
        f"{len(rings):,} molecules have a ring of more than {longest} atoms, the largest of "
        f"{max(rings)}: such rings are no polygons (--max-polygon)"
    )


def class_counts(lifted: Lifted) -> dict[str, int]:
    """How many graphs each class has, by the name that the source gives it."""
    names, targets = lifted.graph_set.class_names, lifted.complexes.targets
    if not names or targets is None:
        return {}
    return dict(zip(names, targets.bincount(minlength=len(names)).tolist(), strict=True))


def record(lifted: Lifted) -> dict[str, Any]:
    """The report as JSON: the fields of `Statistics`, and where they come from."""
    return {
        "name": lifted.graph_set.name,
        "classes": class_counts(lifted),
        **asdict(lifted.statistics),
        "notes": [*lifted.graph_set.notes, *lifted.graph_set.remarks],
    }


def rows(lifted: Lifted) -> list[tuple[str, str, str]]:
    """The report as a table: label, total, mean per graph."""
    counted = lifted.statistics
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


def check_writable(path: Path, source: str) -> None:
    """Refuse an output that cannot be written, or would replace the input, before any work."""
    from cell_attention.errors import InputError

    if path.exists() and Path(source).exists() and path.samefile(source):
        raise InputError(f"--out {path} would replace the source; name another file")
    if path.exists() and not path.is_file():
        raise InputError(f"--out {path} is not a file that can be replaced; name a file")
    if not path.resolve().parent.is_dir():
        raise InputError(f"--out {path}: the folder {path.resolve().parent} does not exist")
