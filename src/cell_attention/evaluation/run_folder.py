"""A RUN_DIR: the settings, one file per finished job, the result.

A run that was killed at any moment can be resumed with the same settings.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cell_attention._files import (
    is_unfinished,
    lock_folder,
    read_json,
    read_versioned,
    write_whole,
)
from cell_attention.data.splits.folds import Fold, Splits
from cell_attention.errors import DataError, InputError, warn
from cell_attention.models.settings import Settings, leaves, versions

FORMAT = 2
"""Format 1 has the same content under other keys; `upgraded` reads it."""
AGAIN = "; delete it to run this job again"
_MADE_HERE = (
    "result.json", "timing.json", "curves.svg", "fold-*.json", "fair-*.json", "*.checkpoint",
    "complexes.safetensors", "molecules.json", "splits.json", "run.json",
)  # fmt: skip
"""In the order of deletion: until the last file is deleted, the folder counts as a run."""


class RunFolder:
    """The folder of one cross-validation: its settings, records, checkpoints and result."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    @contextmanager
    def begin(
        folder: Path, settings: Settings, splits: Splits, *, fresh: bool
    ) -> "Iterator[RunFolder]":
        """Start a new run or resume the same one, with a lock on its folder meanwhile.

        A folder with a run of other settings is refused.
        """
        if folder.exists() and not folder.is_dir():
            raise InputError(f"folder {folder} is a file; name another")
        run = RunFolder(folder.resolve())
        there = folder.iterdir() if folder.is_dir() and not run.asked.is_file() else ()
        if not all(map(is_unfinished, there)):
            raise InputError(f"folder {folder} is neither empty nor a RUN_DIR; name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            run._clear(_MADE_HERE if fresh else ())
            digest, makers = settings.digest(), []
            if run.asked.is_file():
                makers = run._check(settings)
                digest = run.digest()
            if (now := versions(settings.model)) not in makers:
                makers.append(now)
            record = {
                "format": FORMAT, "settings": settings.record(), "digest": digest,
                "versions": makers,
            }  # fmt: skip
            write_whole(run.asked, json.dumps(record, indent=2) + "\n")
            listed = [asdict(fold) for fold in splits.folds]
            write_whole(run.folder / "splits.json", json.dumps(listed))
            yield run

    @property
    def asked(self) -> Path:
        """The file of the settings, and of the versions that worked on them."""
        return self.folder / "run.json"

    @property
    def result(self) -> Path:
        """The file of the result, once the run is finished."""
        return self.folder / "result.json"

    @property
    def complexes(self) -> Path:
        """The file of the data that all workers read, until the run is finished."""
        return self.folder / "complexes.safetensors"

    @property
    def molecules(self) -> Path:
        """The file of the SMILES of the graphs, for models that read molecules."""
        return self.folder / "molecules.json"

    def smiles(self) -> list[str]:
        """Read the SMILES from `molecules`."""
        listed = read_json(self.molecules).get("smiles")
        if not isinstance(listed, list):
            raise DataError(f"{self.molecules}: smiles must be a list of texts")
        return [str(text) for text in listed]

    def job(self, stem: str) -> Path:
        """Return the file of the record of a finished job."""
        return self.folder / f"{stem}.json"

    def checkpoint(self, stem: str) -> Path:
        """Return the file of the checkpoint of an unfinished job."""
        return self.folder / f"{stem}.checkpoint"

    def settings(self) -> Settings:
        """Read the settings."""
        record = upgraded(read_versioned(self.asked, FORMAT))
        try:
            return Settings.of(record["settings"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{self.asked}: not valid settings of a run ({error})") from None

    def digest(self) -> str:
        """Return the digest in the files of this run: that of the version which started it, since a
        later version may have more fields.
        """
        return str(read_json(self.asked).get("digest") or self.settings().digest())

    def folds(self) -> list[Fold]:
        """Read the splits."""
        path = self.folder / "splits.json"
        try:
            return [
                Fold(**{name: tuple(values) for name, values in entry.items()})
                for entry in json.loads(path.read_text(encoding="utf-8"))
            ]
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: cannot be read ({error})") from None

    def finished(self, stem: str, digest: str) -> dict[str, Any] | None:
        """Read the record of a job; None if it is not finished. Refuse one of another run."""
        path, checkpoint = self.job(stem), self.checkpoint(stem)
        for place in (path, checkpoint):
            if place.is_dir():
                raise DataError(f"{place}: is a folder, but must be a file; move it away")
        if not path.is_file():
            return None
        record = upgraded(read_versioned(path, FORMAT, AGAIN))
        if record.get("settings") != digest or record.get("job") != stem:
            raise DataError(f"{path}: belongs to another run or job; use fresh to start over")
        return record

    def _check(self, settings: Settings) -> list[dict[str, str]]:
        """Refuse other settings; return the versions that worked on this run before."""
        there = self.settings()
        differences = [
            f"{name} was {old!r}, is {new!r}"
            for name, old, new in leaves(there.record(), settings.record())
            if old != new
        ]
        if differences:
            raise InputError(
                f"folder {self.folder} has a run with other settings: "
                f"{'; '.join(differences[:4])}; name another folder, or use fresh to start over"
            )
        makers: list[dict[str, str]] = read_json(self.asked).get("versions") or [{}]
        if not isinstance(makers, list) or not all(isinstance(maker, dict) for maker in makers):
            raise DataError(f"{self.asked}: versions must be a list of objects")
        now = versions(settings.model)
        changes = [
            f"{name} {_short(makers[-1].get(name, 'unknown'))} → {_short(now[name])}"
            for name in now
            if makers[-1].get(name) != now[name]
        ]
        if changes:
            warn(f"{self.folder} was started with other versions ({', '.join(changes)}); resuming")
        return makers

    def tidy(self) -> None:
        """Delete the files that only an unfinished run needs."""
        self._clear(("*.checkpoint", self.complexes.name, self.molecules.name))

    def tidy_data(self) -> None:
        """Delete the copy of the data; unfinished jobs can still be resumed."""
        self._clear((self.complexes.name,))

    def _clear(self, patterns: tuple[str, ...]) -> None:
        for pattern in patterns:
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        for path in filter(is_unfinished, self.folder.iterdir()):
            path.unlink(missing_ok=True)


def _short(version: object) -> str:
    """Return a version as text, and of a SHA-256 the first digits."""
    text = str(version)
    return text[:12] if len(text) >= 64 else text


def upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """Rename the keys of a record of format 1 to those of today."""
    names = {"question": "settings", "part": "job"}
    return {names.get(key, key): value for key, value in record.items()}
