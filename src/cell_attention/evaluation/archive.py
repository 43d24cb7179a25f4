"""Packing a RUN_DIR, an ablation or a search into one JSON file, and unpacking it again.

The file has a line per packed file, so that a diff shows which fold changed. Every entry names the
layout of its file, so that unpacking restores the same bytes.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from cell_attention._files import is_unfinished, read_json, read_versioned, write_whole
from cell_attention.errors import DataError, InputError, SourceNotFoundError
from cell_attention.evaluation.packed_splits import pack_splits, splits_text

FORMAT = 1
_LAYOUTS: dict[str, Callable[[Any], str]] = {
    "json": lambda value: json.dumps(value) + "\n",
    "indented": lambda value: json.dumps(value, indent=2) + "\n",
}
"""How the files of a run are written; a file in another layout is packed as text."""
_LEFT_OUT = ("*.svg", "*.checkpoint", "*.safetensors", "molecules.json")
"""Files that running the same command creates again."""
_SIGNS = ("run.json", "search.json", "ablation.json", "*/run.json")
"""A folder with one of these files is a run, a search or an ablation, finished or not."""
_LARGEST = 1_000_000_000
"""Most characters that an archive may unpack to: a small hostile file must not fill the disk."""
_REMEDY = "; name a file that `cell-attention pack` wrote"


def pack(folder: Path, file: Path) -> None:
    """Write a folder of `crossval`, `ablate` or `search` as one file, without pictures, checkpoints
    and copies of the data. The same folder gives the same bytes.
    """
    if not folder.is_dir():
        raise SourceNotFoundError(f"{folder}: there is no such folder; name a RUN_DIR")
    if not any(any(folder.glob(sign)) for sign in _SIGNS):
        raise SourceNotFoundError(
            f"{folder} is not a RUN_DIR: run.json, search.json and ablation.json are missing"
        )
    if file.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"out {file} is inside the folder to pack; name another place")
    splits: list[str] = []
    entries = []
    for name, path in _files_below(folder).items():
        text = _read(path)
        packed = pack_splits(text) if path.name == "splits.json" else None
        if packed is None:
            entry = _packed(text)
        else:
            if packed not in splits:
                splits.append(packed)
            entry = f'{{"splits": {splits.index(packed)}}}'
        entries.append(f"{json.dumps(name)}: {entry}")
    rows = [f'"format": {FORMAT}', _block('"splits": [', splits, "]")]
    write_whole(file, _block("{", [*rows, _block('"files": {', entries, "}")], "}") + "\n")


def unpack(file: Path, folder: Path) -> None:
    """Restore the folder that was packed, with the same bytes in every file; the command that
    started the run can resume it there.
    """
    texts = _texts(file)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"folder must be a new or empty folder, but {folder} is not; name another")
    _write(folder, texts, write_whole)


@contextmanager
def run_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to read a run from: `path` itself, or a temporary one for a packed run."""
    if path.is_dir():
        yield path
        return
    if not path.is_file():
        raise SourceNotFoundError(f"{path} is neither a RUN_DIR nor a packed RUN_DIR")
    texts = _texts(path)
    with TemporaryDirectory(prefix="cell-attention-") as temporary:
        folder = Path(temporary) / "run"
        _write(folder, texts, lambda place, text: place.write_text(text, encoding="utf-8"))
        try:
            yield folder
        except (DataError, SourceNotFoundError) as error:  # name the path that the user gave
            raise type(error)(str(error).replace(str(folder), str(path))) from None


def _files_below(folder: Path) -> dict[str, Path]:
    """Find all files to pack, by their name relative to the folder."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if _is_left_out(name) or (path.is_dir() and not path.is_symlink()):
            continue
        if not path.is_file():
            raise DataError(f"{path}: is neither a file nor a folder; move it away to pack the run")
        _check_name(folder, name)
        found[name] = path
    return dict(sorted(found.items()))


def _is_left_out(name: str) -> bool:
    last = name.rpartition("/")[2]
    return is_unfinished(Path(last)) or any(fnmatchcase(last, each) for each in _LEFT_OUT)


def _read(path: Path) -> str:
    """Read a file as text; only line endings change, as `write_whole` will restore them."""
    try:
        return path.read_bytes().decode("utf-8").replace(os.linesep, "\n")
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not a text file; move it away to pack the run") from None


def _packed(text: str) -> str:
    """Make an entry of `files`: a JSON value if a layout restores the text, else its lines."""
    try:
        value = json.loads(text)
        compact = json.dumps(value, separators=(",", ":"), allow_nan=False)
        for layout, write in _LAYOUTS.items():
            if write(value) == text:
                return f'{{"{layout}": {compact}}}'
    except (ValueError, RecursionError):  # a text, or JSON that does not survive a round trip
        pass
    lines = [json.dumps(line, ensure_ascii=False) for line in text.split("\n")]
    return _block('{"text": [', lines, "]}")


def _block(opening: str, rows: list[str], closing: str) -> str:
    """Join rows, one per line."""
    return "\n".join([opening, ",\n".join(rows), closing]) if rows else opening + closing


def _texts(file: Path) -> dict[str, str]:
    """Read the text of every file in an archive; all are checked before the first is written."""
    if not file.is_file():
        raise SourceNotFoundError(f"{file}: there is no such file{_REMEDY}")
    if "files" not in read_json(file, _REMEDY):  # some other file of ours, whatever its format
        raise DataError(f"{file}: is not a packed RUN_DIR{_REMEDY}")
    record = read_versioned(file, FORMAT, _REMEDY)
    files, splits = record.get("files"), record.get("splits")
    if record["format"] != FORMAT or not isinstance(files, dict) or not isinstance(splits, list):
        raise DataError(f"{file}: is not a packed RUN_DIR{_REMEDY}")
    for name in files:
        _check_name(file, name)
    texts: dict[str, str] = {}
    whole: dict[int, str] = {}
    characters = 0
    for name, entry in files.items():
        if _is_left_out(name) or any(str(each) in files for each in PurePosixPath(name).parents):
            raise DataError(f"{file}: {name!r} cannot be a file of a run")
        try:
            texts[name] = _unpacked(entry, splits, whole)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DataError(f"{file}: {name!r} is not a valid entry ({error})") from None
        characters += len(texts[name])
        if characters > _LARGEST:
            raise DataError(f"{file}: an archive must unpack to at most {_LARGEST:,} characters")
    return texts


def _unpacked(entry: Any, splits: list[Any], whole: dict[int, str]) -> str:
    """Restore the text of one entry; whole: a cache of splits that were already restored."""
    if not isinstance(entry, dict) or len(entry) != 1:
        raise ValueError("an entry must name one layout")
    ((layout, value),) = entry.items()
    if layout == "splits":
        if type(value) is not int or not 0 <= value < len(splits):
            raise ValueError(f"there are no splits with number {value!r}")
        if value not in whole:
            whole[value] = splits_text(splits[value])
        return whole[value]
    if layout == "text":
        if not isinstance(value, list):
            raise ValueError("a text must be a list of lines")
        text = "\n".join(value)
        text.encode("utf-8")  # half of a surrogate pair cannot be written
        return text
    if layout not in _LAYOUTS:
        raise ValueError(f"layout {layout!r} is unknown")
    return _LAYOUTS[layout](value)


def _check_name(place: Path, name: str) -> None:
    """Refuse a name that could lead out of the folder, on this system or another one."""
    parts = name.split("/")
    if not name.isprintable() or set(parts) & {"", ".", ".."} or set(name) & {"\\", ":"}:
        raise DataError(f"{place}: {name!r} is not a valid file name inside a run folder")


def _write(folder: Path, texts: dict[str, str], write: Callable[[Path, str], object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, text)
