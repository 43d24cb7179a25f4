"""Rows of a source for a trained model: every row has a complex, or a reason why it has none."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cell_attention.data.file_format import MOLECULE_FILE, Columns, Decimal, FileFormat, OnError
from cell_attention.data.molecules.features import Featuriser, featurise, featuriser_of
from cell_attention.data.molecules.files import MoleculeFile, Row
from cell_attention.errors import DataError, InputError, MoleculeError
from cell_attention.inference.familiarity import too_large, unfamiliar
from cell_attention.inference.model_folder import Model
from cell_attention.inference.neighbours import Near, morgan_bits, nearest
from cell_attention.progress import Progress
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.limits import LIMITS, Limits
from cell_attention.topology.polygons import attach_where_possible

if TYPE_CHECKING:
    from cell_attention.inference.molecule_list import MoleculeList

AT_ONCE = 512
"""Rows per chunk, so that memory does not grow with the file."""


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


@dataclass(frozen=True)
class OpenedRows:
    """The columns of an open source, and its rows, which can be read once."""

    header: tuple[str, ...]
    chunks: Iterable[Chunk]
    decimal: Decimal = "."
    """The decimal sign of numbers in its cells."""


def open_rows(
    model: Model,
    data: Any,
    *,
    smiles_column: str | None = None,
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    on_error: OnError = "report",
    data_dir: str | Path | None = None,
    node_attributes: bool = False,
    is_source: bool | None = None,
    progress: Progress | None = None,
) -> OpenedRows:
    """Open the rows of a SOURCE of the command line, of a list of molecules, or of anything that
    `lift` accepts.

    is_source: whether a text is a SOURCE rather than a molecule; None decides by looking for it.
    """
    if isinstance(data, str | Path) and MOLECULE_FILE.fullmatch(str(data)):
        if model.config.lift == "paper" and model.name == "can" and progress is not None:
            progress.remark("the model's lift is not symmetric: predictions depend on atom order")
        return open_molecule_file(
            model, Path(data), smiles_column=smiles_column, file_format=file_format,
            on_error=on_error, progress=progress,
        )  # fmt: skip
    if smiles_column is not None:
        raise InputError(f"smiles_column can only be used with a file of molecules, got {data}")
    if names_source(data, is_source, data_dir):
        return _tu_set(
            model, data, data_dir=data_dir, node_attributes=node_attributes, file_format=file_format
        )
    from cell_attention.data.lifting import lift, listed_molecules

    molecules = listed_molecules(data)
    if molecules is not None:
        return open_molecules(model, molecules)
    if isinstance(data, CellComplex):
        return open_graphs(model, data)
    degrees = model.sizes["node_features"]
    return open_graphs(model, lift(data, model.config.max_polygon, degrees=degrees))


def names_source(
    data: Any, is_source: bool | None = None, data_dir: str | Path | None = None
) -> bool:
    """Whether this is a path or a text that names a SOURCE, and not a molecule; `is_source` decides
    for a text that is not the name of a file of molecules.
    """
    from cell_attention.data.sources import known_names

    if not isinstance(data, str) or MOLECULE_FILE.fullmatch(data):
        return isinstance(data, str | Path)
    if is_source is not None:
        return is_source
    return data in known_names(data_dir) or _exists(data)


def _exists(text: str) -> bool:
    """Whether there is a file or folder of this name; a long text is not one."""
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):
        return False


def _tu_set(
    model: Model, source: str | Path, *, data_dir: str | Path | None, node_attributes: bool,
    file_format: FileFormat,
) -> OpenedRows:  # fmt: skip
    from cell_attention.data.sources import lift_set, read_source
    from cell_attention.inference.prediction import require_same_features

    found = read_source(source, data_dir, node_attributes=node_attributes, file_format=file_format)
    require_same_features(model, found.featuriser, found.name)
    graphs = lift_set(found, model.config.max_polygon).graphs
    truths = []
    if graphs.targets is not None and found.class_names:
        truths = [found.class_names[target] for target in graphs.targets.tolist()]
    return open_graphs(model, graphs, truths, truth=model.truth_names[0])


def open_molecule_file(
    model: Model,
    path: Path,
    *,
    smiles_column: str | None = None,
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    on_error: OnError = "report",
    progress: Progress | None = None,
) -> OpenedRows:
    """Open a .csv, .smi or .sdf file; with on_error "fail" the first bad row is an error."""
    molecule_features(model)  # refuses a model that cannot read molecules
    columns, usual = Columns(smiles_column), str(model.provenance.get("molecule_column", ""))
    file = MoleculeFile(path, columns, file_format, usual=usual)
    if on_error == "fail":
        again = MoleculeFile(path, columns, file_format, usual=usual)
        for row in again.rows:
            try:
                again.molecule(row)
            except MoleculeError as error:
                raise DataError(f"{path}, {file.place} {row.line}: {error}") from None

    def read() -> Iterator[Chunk]:
        done = found = 0
        with (progress or Progress()).bar(f"Reading {path}") as report:
            for chunk in molecule_chunks(model, file):
                done, found = done + len(chunk.rows), found + chunk.complexes.num_complexes
                report(min(done, file.total), file.total)
                yield chunk
        if done and not found:
            raise DataError(
                f"{path}: none of {done:,} rows is a valid molecule; check smiles_column"
            )

    if file.remark and progress is not None:
        progress.remark(file.remark)
    return OpenedRows(file.header, read(), file_format.decimal)


def open_molecules(model: Model, molecules: Sequence[Any]) -> OpenedRows:
    """Open a sequence of SMILES, InChI or RDKit molecules."""
    from cell_attention.inference.molecule_list import MoleculeList

    return OpenedRows(("smiles",), molecule_chunks(model, MoleculeList(molecules)))


def open_graphs(
    model: Model, complexes: CellComplex, truths: Sequence[str] = (), *, truth: str = ""
) -> OpenedRows:
    """Open graphs as numbered rows; `truths`: the class of each, in a column named `truth`."""
    count = len(complexes)
    header = ("graph", truth) if truths else ("graph",)
    rows = [
        Row(number, "", (str(number), truths[number]) if truths else (str(number),))
        for number in range(count)
    ]
    warnings = tuple("; ".join(texts) for texts in too_large(model, complexes, "nodes"))
    chunk = Chunk(tuple(rows), complexes, tuple(range(count)), ("",) * count, warnings)
    return OpenedRows(header, [chunk])


def molecule_chunks(
    model: Model,
    source: "MoleculeFile | MoleculeList",
    at_once: int = AT_ONCE,
    *,
    limits: Limits = LIMITS,
) -> Iterator[Chunk]:
    """Read all rows of a source in order, chunk by chunk; limits: how large a complex may be."""
    rows = iter(source.rows)
    while part := list(islice(rows, at_once)):
        yield _read_chunk(model, source, part, limits=limits)


def molecule_features(model: Model) -> Featuriser:
    """Return the featuriser of a model; refuse one whose columns do not fit the network."""
    found = featuriser_of(model.featuriser)
    widths = *found.widths, len(found.descriptors) + len(found.columns)
    names = "node_features", "edge_features", "complex_features"
    sizes = tuple(model.sizes.get(name, 0) for name in names)
    if widths != sizes:
        raise DataError(f"the model's featuriser gives {widths} columns, its network needs {sizes}")
    return found


def _read_chunk(
    model: Model, source: "MoleculeFile | MoleculeList", rows: Sequence[Row], *, limits: Limits
) -> Chunk:
    """Read, featurise and lift some rows; keep the reason where a row cannot be."""
    reasons, warnings = [""] * len(rows), [""] * len(rows)
    featuriser, molecules, described, owners = molecule_features(model), [], [], []
    for number, row in enumerate(rows):
        try:
            molecules.append(source.molecule(row))
            if featuriser.columns:
                described.append(source.numbers(row, featuriser.columns))
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
