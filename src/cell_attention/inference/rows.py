"""Rows of a source for a trained model: every row has a complex, or a reason why it has none."""

import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cell_attention.data.file_format import MOLECULE_FILE, Columns, Decimal, FileFormat, OnError
from cell_attention.data.molecules.files import MoleculeFile, Row
from cell_attention.data.source_list import molecule_files
from cell_attention.errors import InputError
from cell_attention.inference.chunks import Chunk, molecule_chunks, molecule_features
from cell_attention.inference.familiarity import too_large
from cell_attention.inference.model_folder import Model
from cell_attention.inference.sources import MoleculeSources, require_some
from cell_attention.progress import Progress
from cell_attention.topology.complex import CellComplex


@dataclass(frozen=True)
class OpenedRows:
    """The columns of an open source, and its rows, which can be read once."""

    header: tuple[str, ...]
    chunks: Iterable[Chunk]
    decimal: Decimal = "."
    """The decimal sign of numbers in its cells."""
    sources: MoleculeSources | None = None
    """The files, if it has molecules in files: their parts can be read by other processes."""
    first: MoleculeFile | None = None
    """The first of the files; it can be read once, by `chunks` or by `sources.parts`."""


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
    files = named_files(data, is_source)
    if files:
        if model.config.lift == "paper" and model.name == "can" and progress is not None:
            progress.remark("the model's lift is not symmetric: predictions depend on atom order")
        usual = str(model.provenance.get("molecule_column", ""))
        sources = MoleculeSources(tuple(files), Columns(smiles_column), file_format, usual)
        return open_sources(model, sources, on_error=on_error, progress=progress)
    if isinstance(data, list | tuple) and len(data) == 1 and is_source:
        data = data[0]
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


def named_files(data: Any, is_source: bool | None = None) -> list[Path]:
    """Return the files of molecules that a source, or a list of sources, names; none for others.

    A list of texts is a list of sources only if `is_source` says so, else one of molecules.
    """
    if isinstance(data, list | tuple):
        several = bool(data) and all(isinstance(one, str | Path) for one in data)
        if not several or not (is_source or all(isinstance(one, Path) for one in data)):
            return []
        return molecule_files(data)
    if isinstance(data, str) and MOLECULE_FILE.fullmatch(data) and not glob.has_magic(data):
        return [Path(data)]
    if isinstance(data, Path) or (isinstance(data, str) and is_source):
        return molecule_files([data])
    return [Path(data)] if isinstance(data, str) and MOLECULE_FILE.fullmatch(data) else []


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


def open_sources(
    model: Model,
    sources: MoleculeSources,
    *,
    on_error: OnError = "report",
    progress: Progress | None = None,
) -> OpenedRows:
    """Open files of molecules; with on_error "fail" the first bad row is an error."""
    molecule_features(model)  # refuses a model that cannot read molecules
    first = sources.open(0)
    if on_error == "fail":
        sources.require_molecules()

    def read() -> Iterator[Chunk]:
        rows = found = 0
        for part in sources.parts(first, progress=progress):
            chunk = part.read(model)
            rows, found = rows + len(chunk.rows), found + len(chunk.complexes)
            yield chunk
        require_some(sources, rows, found)

    if first.remark and progress is not None:
        progress.remark(first.remark)
    return OpenedRows(first.header, read(), sources.file_format.decimal, sources, first)


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
