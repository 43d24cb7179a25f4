"""Chunks of rows: read, featurised and lifted, each row with a complex or a reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from cell_attention.data.molecules.features import Featuriser, featurise, featuriser_of
from cell_attention.data.molecules.files import MoleculeFile, Row, RowReader
from cell_attention.errors import DataError, MoleculeError
from cell_attention.inference.familiarity import unfamiliar
from cell_attention.inference.model_folder import Model
from cell_attention.inference.neighbours import Near, morgan_bits, nearest
from cell_attention.inference.shard_options import AT_ONCE
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.limits import LIMITS, Limits
from cell_attention.topology.polygons import attach_where_possible

if TYPE_CHECKING:
    from cell_attention.inference.molecule_list import MoleculeList


@dataclass(frozen=True)
class Chunk:
    """Some rows of a source, and the complexes of those that are molecules or graphs."""

    rows: tuple[Row, ...]
    complexes: CellComplex
    place: tuple[int | None, ...]
    """Complex of every row; None if it has none."""
    reasons: tuple[str, ...]
    """Why a row has no complex; empty if it has one."""
    warnings: tuple[str, ...]
    """What in a row was not in the training data; empty if there is nothing."""
    nearest: tuple[Near, ...] = ()
    """The training molecule nearest to every complex; empty if it is not known."""
    molecules: tuple[Any, ...] = ()
    """The molecule of every complex; empty if the source has graphs."""


def molecule_chunks(
    model: Model,
    source: "MoleculeFile | MoleculeList",
    at_once: int = AT_ONCE,
    *,
    limits: Limits = LIMITS,
) -> Iterator[Chunk]:
    """Read all rows of a source in order, chunk by chunk; limits: how large a complex may be."""
    rows = iter(source.rows)
    while part := tuple(islice(rows, at_once)):
        yield read_chunk(model, source.reader, part, limits=limits)


def molecule_features(model: Model) -> Featuriser:
    """Return the featuriser of a model; refuse one whose columns do not fit the network."""
    found = featuriser_of(model.featuriser)
    widths = *found.widths, len(found.descriptors) + len(found.columns)
    names = "node_features", "edge_features", "complex_features"
    sizes = tuple(model.sizes.get(name, 0) for name in names)
    if widths != sizes:
        raise DataError(f"the model's featuriser gives {widths} columns, its network needs {sizes}")
    return found


def read_chunk(
    model: Model,
    reader: "RowReader | MoleculeList",
    rows: Sequence[Row],
    *,
    limits: Limits = LIMITS,
) -> Chunk:
    """Read, featurise and lift some rows; keep the reason where a row cannot be."""
    reasons, warnings = [""] * len(rows), [""] * len(rows)
    featuriser, molecules, described, owners = molecule_features(model), [], [], []
    for number, row in enumerate(rows):
        try:
            molecules.append(reader.molecule(row))
            if featuriser.columns:
                described.append(reader.numbers(row, featuriser.columns))
            owners.append(number)
        except MoleculeError as error:
            reasons[number] = str(error)
    made = featurise(molecules, featuriser, described)
    complexes, faults = attach_where_possible(made.graphs, model.config.max_polygon, limits)
    known = model.neighbours
    near: list[Near] = []
    if known is not None:
        found = nearest(morgan_bits(molecules), known.blocks)
        near = list(map(Near, *(values.tolist() for values in found)))
    similar = [one.similarity for one in near]
    place: list[int | None] = [None] * len(rows)
    for number, fault, text in zip(
        owners, faults, unfamiliar(model, made, molecules, similarities=similar), strict=True
    ):
        warnings[number], reasons[number] = text, fault or reasons[number]
    kept = [position for position, fault in enumerate(faults) if not fault]
    for position, graph in enumerate(kept):
        place[owners[graph]] = position
    return Chunk(
        tuple(rows), complexes, tuple(place), tuple(reasons), tuple(warnings),
        tuple(near[graph] for graph in kept if near),
        tuple(molecules[graph] for graph in kept),
    )  # fmt: skip
