"""Data sources: the bundled set, folders, the cache, downloads, files of molecules."""

import os
import re
from dataclasses import replace
from pathlib import Path

from cell_attention.arguments import checked
from cell_attention.data.dataset import GraphSet, Progress
from cell_attention.data.file_format import (
    Columns,
    FileFormat,
    OnError,
    is_molecule_file,
    special_kind,
)
from cell_attention.data.tu.archive import ZipFolder
from cell_attention.data.tu.download import cache_folder, download
from cell_attention.data.tu.reader import read_tu
from cell_attention.data.tu.tables import Folder
from cell_attention.errors import DataError, InputError, SourceNotFoundError, counted, warn
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.limits import LIMITS, Limits
from cell_attention.topology.polygons import attach_polygons, attach_where_possible

BUNDLED = {"MUTAG": Path(__file__).with_name("tu") / "MUTAG.zip"}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*")


@checked
def load_dataset(
    source: str | Path,
    max_polygon: int | None = None,
    data_dir: str | Path | None = None,
    *,
    node_attributes: bool = False,
    on_error: OnError = "fail",
    columns: Columns = Columns(),  # noqa: B008 - frozen, so sharing one is safe
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    limits: Limits = LIMITS,
) -> CellComplex:
    """Load a data set as complexes with `targets`: classes as integers or values as floats.

    source: a TU name such as "MUTAG" (bundled), a folder or .zip in TU format, or a .csv, .smi or
        .sdf file of molecules (also gzipped), or a .tsv, .txt, .parquet or .xlsx.
    max_polygon: longest chordless cycle that becomes a polygon (R in the paper); 6 by default, 8
        for files of molecules.
    data_dir: where to look for TU names first; then $CELL_ATTENTION_DATA, then the user's cache.
    node_attributes: whether a TU set's node attributes join its node labels as features.
    on_error: whether molecules that cannot be read are refused ("fail"), left out ("skip"), or left
        out and named one by one ("report").
    columns: the columns of a table of molecules by role.
    file_format: the encoding and the decimal sign of a file of molecules, and how much an archive
        may unpack to.
    """
    graph_set = read_source(
        source, data_dir, node_attributes=node_attributes, on_error=on_error, columns=columns,
        file_format=file_format,
    )  # fmt: skip
    for note in graph_set.notes:
        warn(f"{graph_set.name}: {note}")
    lifted = lift_set(graph_set, max_polygon, limits=limits, on_error=on_error)
    for note in lifted.notes[len(graph_set.notes) :]:
        warn(f"{graph_set.name}: {note}")
    return lifted.graphs


def lift_set(
    graph_set: GraphSet,
    max_polygon: int | None = None,
    *,
    limits: Limits = LIMITS,
    on_error: OnError = "fail",
) -> GraphSet:
    """Add the polygons; a molecule whose complex exceeds the limits is treated like a row that
    cannot be read, as `on_error` says.
    """
    longest = graph_set.usual_polygon if max_polygon is None else max_polygon
    if graph_set.molecules is None:
        graphs = attach_polygons(graph_set.graphs, longest, limits)
        return replace(graph_set, graphs=graphs, max_polygon=longest)
    from cell_attention.data.molecules.molecule_set import left_out, subset  # slow import

    graphs, faults = attach_where_possible(graph_set.graphs, longest, limits)
    rings, rows, notes = graph_set.molecules.rings, graph_set.molecules.lines, graph_set.notes
    bad = {rows[number]: fault for number, fault in enumerate(faults) if fault}
    if bad:
        place = "record" if ".sdf" in graph_set.name.lower() else "line"
        notes += left_out(graph_set.name, place, bad, on_error=on_error)
        kept = [number for number, fault in enumerate(faults) if not fault]
        graph_set, rings = subset(graph_set, kept), tuple(rings[number] for number in kept)
    large = [size for size in rings if size > longest]
    remarks = graph_set.remarks
    if large:
        molecules_have = counted(len(large), "molecule has", "molecules have")
        remarks += (
            f"{molecules_have} a ring of more than {longest} atoms, the largest of "
            f"{max(large)}: such rings are not polygons (max_polygon)",
        )
    return replace(graph_set, graphs=graphs, notes=notes, remarks=remarks, max_polygon=longest)


def read_source(
    source: str | Path,
    data_dir: str | Path | None = None,
    *,
    node_attributes: bool = False,
    on_error: OnError = "fail",
    columns: Columns = Columns(),  # noqa: B008 - frozen, so sharing one is safe
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
    progress: Progress | None = None,
) -> GraphSet:
    """Read the graphs of a source before lifting; the arguments are those of `load_dataset`."""
    text = str(source)
    if not text:
        raise SourceNotFoundError("the name of the source is empty")
    if is_molecule_file(source):
        # Imported here because RDKit is slow to import.
        from cell_attention.data.molecules.molecule_set import read_molecules

        return read_molecules(
            Path(source), on_error, progress=progress, columns=columns, file_format=file_format
        )
    if columns != Columns():
        raise InputError(f"{source} is not a file of molecules: it has no columns to choose from")
    folder, name = _locate(text, data_dir, file_format=file_format, progress=progress)
    return read_tu(folder, name, node_attributes=node_attributes, progress=progress)


def search_places(data_dir: str | Path | None = None) -> list[Path]:
    """Return the folders in which TU names are searched, in that order."""
    if data_dir is not None and not Path(data_dir).is_dir():
        raise SourceNotFoundError(f"data_dir {data_dir}: no such folder")
    named = os.environ.get("CELL_ATTENTION_DATA")
    if named and not Path(named).is_dir():
        raise SourceNotFoundError(f"CELL_ATTENTION_DATA is {named}: no such folder")
    stated = [data_dir, named]
    return [Path(place) for place in stated if place] + [cache_folder()]


def known_names(data_dir: str | Path | None = None) -> dict[str, Path]:
    """Return the path of every TU set that needs no download, by name."""
    found = dict(BUNDLED)
    for place in search_places(data_dir):
        for pattern in ("TUDataset/*/raw/*_A.txt", "*/raw/*_A.txt", "*/*_A.txt"):
            for path in sorted(place.glob(pattern)):
                home = path.parent.parent if path.parent.name == "raw" else path.parent
                if path.name == f"{home.name}_A.txt":
                    found.setdefault(home.name, path.parent)
        for path in sorted(place.glob("*.zip")):
            found.setdefault(path.stem, path)
    return found


def _locate(
    source: str,
    data_dir: str | Path | None,
    *,
    file_format: FileFormat,
    progress: Progress | None,
) -> tuple[Folder, str]:
    """Find the folder of TU files of a source, and the name with which the files begin."""
    if _NAME.fullmatch(source):
        known = known_names(data_dir)
        if source in known:
            return _open(known[source], source, file_format)
        if not Path(source).exists():
            return _open(download(source, known, progress), source, file_format)
    path = Path(source)
    if kind := special_kind(path):
        raise DataError(f"{path}: not a regular file but {kind}")
    if path.suffix == ".zip" and path.is_file():
        return _open(path, None, file_format)
    if path.is_dir():
        return _open(path / "raw" if (path / "raw").is_dir() else path, None, file_format)
    if path.exists():
        raise DataError(
            f"{path}: not a folder in TU format, nor a file ending in .zip, .csv, .tsv, .txt, "
            ".smi, .sdf, .parquet or .xlsx"
        )
    raise SourceNotFoundError(f"{path}: no such file or folder")


def _open(place: Path, name: str | None, file_format: FileFormat) -> tuple[Folder, str]:
    """Open a folder or zip file; return it and the name of the one set in it."""
    folder: Folder = ZipFolder(place, file_format) if place.suffix == ".zip" else place
    if isinstance(folder, Path):
        _require_plain(folder)
    suffix = "_A.txt"
    names = sorted(
        file.name.removesuffix(suffix) for file in folder.iterdir() if file.name.endswith(suffix)
    )
    if name is None and len(names) != 1:
        found = f"several sets: {', '.join(names)}" if names else "no file that ends in _A.txt"
        raise DataError(f"{place}: not a folder in TU format ({found})")
    return folder, name if name is not None else names[0]


def _require_plain(folder: Path) -> None:
    """Refuse a folder with a FIFO, socket or device in it, or a table that is a dead link."""
    for path in sorted(folder.iterdir()):
        if kind := special_kind(path):
            raise DataError(f"{path}: not a regular file but {kind}")
        if path.is_symlink() and not path.exists() and path.suffix == ".txt":
            raise DataError(f"{path}: a link to a file that does not exist")
