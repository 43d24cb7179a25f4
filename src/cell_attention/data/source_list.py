"""Several sources at once: folders and patterns become the files of molecules in them."""

import glob
from collections.abc import Sequence
from pathlib import Path

from cell_attention.data.file_format import MOLECULE_FILES, PACKED, is_molecule_file
from cell_attention.errors import DataError, SourceNotFoundError


def molecule_files(sources: Sequence[str | Path]) -> list[Path]:
    """Return the files of molecules of some sources, those of a folder or a pattern by their names;
    none if there is one source and it has graphs.
    """
    found = [one for source in sources for one in expanded(str(source))]
    graphs = [one for one in found if not is_molecule_file(one)]
    if graphs and len(found) > 1:
        endings = ", ".join((*MOLECULE_FILES, *PACKED))
        raise DataError(f"{graphs[0]}: several sources must be files of molecules ({endings})")
    files = [] if graphs else [Path(one) for one in found]
    for file in files[1:]:
        if not file.is_file():
            raise SourceNotFoundError(f"{file}: no such file")
    return files


def expanded(source: str) -> list[str]:
    """Return the files that a folder or a pattern stands for; any other source as it is."""
    path = Path(source)
    if not is_molecule_file(source) and path.is_dir() and not _has_graphs(path):
        listed = [str(file) for file in sorted(path.iterdir()) if _is_listed(file)]
        return listed or [source]
    if glob.has_magic(source) and not path.exists():
        listed = [one for one in sorted(glob.glob(source, recursive=True)) if _is_listed(Path(one))]  # noqa: PTH207 - takes absolute patterns too
        if not listed:
            raise SourceNotFoundError(f"{source}: no file of molecules matches")
        return listed
    return [source]


def _is_listed(file: Path) -> bool:
    return is_molecule_file(file) and not file.name.startswith(".") and file.is_file()


def _has_graphs(folder: Path) -> bool:
    """Whether a folder has a set in TU format."""
    return (folder / "raw").is_dir() or any(folder.glob("*_A.txt"))
