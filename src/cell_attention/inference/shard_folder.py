"""A folder of shards: what was asked in run.json, and a record beside every finished shard.

A run that was killed at any moment goes on with the same command, and leaves the same bytes.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cell_attention._files import (
    is_unfinished,
    lock_folder,
    naming,
    read_versioned,
    write_whole,
)
from cell_attention.errors import DataError, InputError
from cell_attention.inference.computed import Cells, Computed, Counts
from cell_attention.inference.selection import Selection
from cell_attention.inference.shard_files import ShardLayout, file_sha256
from cell_attention.inference.sources import MoleculeSources, Part, ShardKey

FORMAT = 1
AGAIN = "; delete it to compute this shard again"
_MADE_HERE = ("result.json", "top.*", "shard-*.csv", "shard-*.parquet", "shard-*.json", "run.json")
"""In the order of deletion: until the last file is deleted, the folder counts as ours."""


@dataclass
class ShardFolder:
    """The shards of one question: its sources, its model and its options."""

    folder: Path
    asked: dict[str, Any]
    sources: MoleculeSources
    finished: dict[ShardKey, bool] = field(default_factory=dict)
    """The finished shards, and whether each is the last of its source."""
    counts: Counts = field(default_factory=Counts)

    @staticmethod
    @contextmanager
    def begin(
        folder: Path, asked: dict[str, Any], sources: MoleculeSources, *, fresh: bool
    ) -> "Iterator[ShardFolder]":
        """Start or go on, with a lock on the folder; refuse a folder with another question."""
        run = ShardFolder(folder, asked, sources)
        there = folder.iterdir() if folder.is_dir() and not run._file.is_file() else ()
        if not all(map(is_unfinished, there)):
            raise InputError(
                f"folder {folder} is neither empty nor a folder of shards; name another"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            for pattern in _MADE_HERE if fresh else ():
                for path in sorted(folder.glob(pattern)):
                    path.unlink()
            for path in filter(is_unfinished, folder.iterdir()):
                path.unlink()
            run._resume()
            yield run

    @property
    def _file(self) -> Path:
        return self.folder / "run.json"

    @property
    def digest(self) -> str:
        """The digest of what was asked, which every shard repeats."""
        text = json.dumps(self.asked, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def shard(self, key: ShardKey, ending: str) -> Path:
        """Return the file of a shard, or of its record (`.json`)."""
        return self.folder / f"shard-{key[0]:04}-{key[1]:06}{ending}"

    def _resume(self) -> None:
        """Read the finished shards, and write what is asked now."""
        listed = [_state(path) for path in self.sources.paths]
        before: list[Any] = []
        if self._file.is_file():
            record = read_versioned(self._file, FORMAT)
            self._require_same(record.get("asked"))
            before = record.get("sources") or []
            self._read_records()
        # Files that were not begun may change or be replaced: no shard depends on them.
        begun = 1 + max((source for source, _ in self.finished), default=-1)
        for old, new in zip(before[:begun], [*listed, *[None] * begun], strict=False):
            if old != new:
                name = old.get("name") if isinstance(old, dict) else old
                raise InputError(
                    f"folder {self.folder} has shards of {name}, which has changed or is not in "
                    "its place among the sources; name another folder, or use fresh to start over"
                )
        record = {"format": FORMAT, "asked": self.asked, "sources": listed}
        write_whole(self._file, json.dumps(record, indent=2) + "\n")

    def _require_same(self, there: Any) -> None:
        if not isinstance(there, dict):
            raise DataError(f"{self._file}: the entry 'asked' is missing")
        differences = [
            f"{name} was {there.get(name)!r:.60}, is {self.asked.get(name)!r:.60}"
            for name in sorted({*there, *self.asked})
            if there.get(name) != json.loads(json.dumps(self.asked.get(name)))
        ]
        if differences:
            raise InputError(
                f"folder {self.folder} answers another question: {'; '.join(differences[:3])}; "
                "name another folder, or use fresh to start over"
            )

    def _read_records(self) -> None:
        for path in sorted(self.folder.glob("shard-*.json")):
            record = read_versioned(path, FORMAT, AGAIN)
            file = path.with_suffix(f".{self.asked['format']}")
            if record.get("asked") != self.digest:
                raise DataError(f"{path}: belongs to another question{AGAIN}")
            if not file.is_file() or file_sha256(file) != record.get("sha256"):
                fault = f"damaged, or not the shard of {path.name}; delete both"
                raise DataError(f"{file}: {fault} to compute this shard again")
            try:
                self.counts.add(Counts(**record["counts"]))
                source, shard = (int(word) for word in path.stem.split("-")[1:])
                self.finished[source, shard] = bool(record["last"])
            except (KeyError, TypeError, ValueError) as error:
                raise DataError(f"{path}: not a valid record of a shard ({error}){AGAIN}") from None

    def write(
        self,
        computed: Iterable[tuple[Part, Computed]],
        layout: ShardLayout,
        selection: Selection,
        *,
        skip_bad: bool,
    ) -> None:
        """Write one shard after the other, each with its record."""
        pairs = iter(computed)
        for first in pairs:
            self._write_shard(first, pairs, layout=layout, selection=selection, skip_bad=skip_bad)

    def _write_shard(
        self,
        pair: tuple[Part, Computed],
        pairs: Iterator[tuple[Part, Computed]],
        *,
        layout: ShardLayout,
        selection: Selection,
        skip_bad: bool,
    ) -> None:
        """Write the shard that begins with `pair`. Of the rows that `top` asks for, a shard keeps
        its own best: no other row of it can be among the best of all.
        """
        key, counts, held = pair[0].shard, Counts(), list[Cells]()
        path = self.shard(key, f".{layout.form}")
        with layout.writing(path) as writer:
            while True:
                part, found = pair
                lines = counts.lines(part.rows, found, layout.width, skip_bad=skip_bad)
                rows = selection.kept(cells for cells, _ in lines)
                if selection.top is None:
                    with naming(path):
                        writer.write(rows)
                else:
                    held = selection.best([*held, *rows])
                if part.ends_shard:
                    break
                pair = next(pairs)
            with naming(path):
                writer.write(held)
        record = {
            "format": FORMAT, "asked": self.digest, "source": self.sources.paths[key[0]].name,
            "sha256": file_sha256(path), "counts": asdict(counts), "last": part.ends_source,
        }  # fmt: skip
        write_whole(self.shard(key, ".json"), json.dumps(record) + "\n")
        self.counts.add(counts)
        self.finished[key] = part.ends_source

    def finish(self, layout: ShardLayout, selection: Selection) -> None:
        """Write the best rows of all shards, if they were asked for, and the counts."""
        if selection.top is not None:
            files = (self.shard(key, f".{layout.form}") for key in sorted(self.finished))
            best = selection.best(row for file in files for row in layout.read(file))
            with layout.writing(self.folder / f"top.{layout.form}") as writer:
                writer.write(best)
        record = {"format": FORMAT, "shards": len(self.finished), **asdict(self.counts)}
        write_whole(self.folder / "result.json", json.dumps(record) + "\n")


def _state(path: Path) -> dict[str, Any]:
    """Return what tells whether a file has changed."""
    found = path.stat()
    return {"name": path.name, "size": found.st_size, "modified": found.st_mtime_ns}
