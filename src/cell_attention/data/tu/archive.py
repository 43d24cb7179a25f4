"""Archives of TU sets: the tables in a .zip, wherever they are in it."""

import re
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cell_attention._files import UNREADABLE
from cell_attention.data.file_format import FileFormat, read_limited, require_regular
from cell_attention.errors import DataError


class ZipFolder:
    """The one folder of a .zip that holds tables of a set: `NAME/`, `NAME//`, `NAME/raw/` or none.

    What is read from it is bounded by `FileFormat.most_bytes`, all tables together.
    """

    def __init__(self, path: Path, file_format: FileFormat) -> None:
        require_regular(path)
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
            self._left = file_format.most_bytes(path.stat().st_size)
        except UNREADABLE as error:
            raise DataError(f"{path}: cannot be read ({error})") from None
        self._limit = self._left
        self._entries = self._tables()

    def _tables(self) -> dict[str, zipfile.ZipInfo]:
        """Return the files of the folder with tables, by name."""
        folders: dict[str, dict[str, zipfile.ZipInfo]] = {}
        for entry in self._archive.infolist():
            folder, _, name = re.sub(r"/+", "/", entry.filename).rpartition("/")
            if name and not name.startswith("._"):  # a Mac's notes on other files
                folders.setdefault(folder, {}).setdefault(name, entry)
        full = {
            folder: files
            for folder, files in folders.items()
            if any(name.endswith("_A.txt") for name in files)
        }
        if len(full) > 1:
            listed = ", ".join(sorted(folder or "." for folder in full))
            raise DataError(f"{self.path}: not an archive of one TU set (sets in {listed})")
        return next(iter(full.values()), {})

    def __truediv__(self, name: str) -> "ZipEntry":
        return ZipEntry(self, name)

    def __str__(self) -> str:
        return str(self.path)

    def iterdir(self) -> Iterator["ZipEntry"]:
        """Yield the tables."""
        return (ZipEntry(self, name) for name in self._entries)

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return name in self._entries

    def read(self, name: str) -> bytes:
        """Unpack a file."""
        if name not in self._entries:
            raise FileNotFoundError(name)
        entry = self._entries[name]
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise DataError(f"{self / name}: a link in an archive is not followed")
        with self._archive.open(entry) as file:
            try:
                content = read_limited(file.read, self / name, self._left)
            except DataError:
                raise DataError(
                    f"{self.path}: unpacks to more than {self._limit:,} bytes; max_bytes allows "
                    "more"
                ) from None
        self._left -= len(content)
        return content


@dataclass(frozen=True)
class ZipEntry:
    """A file in a ZipFolder, which may not exist."""

    folder: ZipFolder
    name: str

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}"

    def is_file(self) -> bool:
        """Whether it exists."""
        return self.folder.has(self.name)

    def read_bytes(self) -> bytes:
        """Unpack it."""
        return self.folder.read(self.name)
