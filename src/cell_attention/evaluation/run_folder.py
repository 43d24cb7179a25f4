"""A RUN_DIR: what was asked, one file per finished part, the answer. Killed at any moment, the
same question goes on from what is there.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cell_attention._files import is_unfinished, write_whole
from cell_attention.data.splits.folds import Fold, Splits
from cell_attention.errors import DataError, InputError, warn
from cell_attention.training.settings import Question, leaves, versions

FORMAT = 1
AGAIN = "; delete it to run this part again"
_MADE_HERE = (
    "result.json", "timing.json", "curves.svg", "fold-*.json", "fair-*.json", "*.checkpoint",
    "complexes.safetensors", "molecules.json", "splits.json", "run.json",
)  # fmt: skip
"""In the order in which they are deleted: the folder is a run's until the last one has gone."""


class Run:
    """A folder that holds one question and what is known of its answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    @contextmanager
    def begin(folder: Path, question: Question, splits: Splits, fresh: bool) -> "Iterator[Run]":
        """A new run, or the same one taken up again, and nobody else in its folder meanwhile.

        A folder that holds another question is refused.
        """
        if folder.exists() and not folder.is_dir():
            raise InputError(f"--out {folder} is a file; name a folder")
        run = Run(folder.resolve())
        there = folder.iterdir() if folder.is_dir() and not run.asked.is_file() else ()
        if not all(map(is_unfinished, there)):
            raise InputError(
                f"--out {folder} is not empty and not a run of cell-attention; name another"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with alone_in(folder):
            run._clear(_MADE_HERE if fresh else ())
            digest, makers = question.digest(), []
            if run.asked.is_file():
                makers = run._check(question)
                digest = run.digest()
            if (now := versions(question.model)) not in makers:
                makers.append(now)
            record = {
                "format": FORMAT, "question": question.record(), "digest": digest,
                "versions": makers,
            }  # fmt: skip
            write_whole(run.asked, json.dumps(record, indent=2) + "\n")
            listed = [asdict(fold) for fold in splits.folds]
            write_whole(run.folder / "splits.json", json.dumps(listed))
            yield run

    @property
    def asked(self) -> Path:
        """What was asked, and by which version."""
        return self.folder / "run.json"

    @property
    def result(self) -> Path:
        """The answer, when it is there."""
        return self.folder / "result.json"

    @property
    def complexes(self) -> Path:
        """The data that all workers read, while there is work."""
        return self.folder / "complexes.safetensors"

    @property
    def molecules(self) -> Path:
        """The molecules behind the data, for models that read them."""
        return self.folder / "molecules.json"

    def smiles(self) -> list[str]:
        """What `molecules` holds."""
        listed = read_object(self.molecules).get("smiles")
        if not isinstance(listed, list):
            raise DataError(f"{self.molecules}: has no list of smiles")
        return [str(text) for text in listed]

    def part(self, stem: str) -> Path:
        """A finished part."""
        return self.folder / f"{stem}.json"

    def checkpoint(self, stem: str) -> Path:
        """An unfinished part."""
        return self.folder / f"{stem}.checkpoint"

    def question(self) -> Question:
        """What was asked."""
        record = read_versioned(self.asked, FORMAT)
        try:
            return Question.of(record["question"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{self.asked}: not what a run asks ({error})") from None

    def digest(self) -> str:
        """The name of the question that the files here belong to: that of the version which began
        the run, since a later one may know more fields.
        """
        return str(read_object(self.asked).get("digest") or self.question().digest())

    def folds(self) -> list[Fold]:
        """The divisions."""
        path = self.folder / "splits.json"
        try:
            return [
                Fold(**{name: tuple(values) for name, values in entry.items()})
                for entry in json.loads(path.read_text(encoding="utf-8"))
            ]
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: cannot be read ({error})") from None

    def finished(self, stem: str, digest: str) -> dict[str, Any] | None:
        """What the file of a finished part holds, or None; a foreign one is refused."""
        path, checkpoint = self.part(stem), self.checkpoint(stem)
        for place in (path, checkpoint):
            if place.is_dir():
                raise DataError(f"{place}: is a folder, where a file is to be written")
        if not path.is_file():
            return None
        record = read_versioned(path, FORMAT, AGAIN)
        if record.get("question") != digest or record.get("part") != stem:
            raise DataError(f"{path}: belongs to another run or part; use --fresh to start over")
        return record

    def _check(self, question: Question) -> list[dict[str, str]]:
        """The versions that worked here before, if it was on this question."""
        there = self.question()
        differences = [
            f"{name} was {old!r}, is {new!r}"
            for name, old, new in leaves(there.record(), question.record())
            if old != new
        ]
        if differences:
            raise InputError(
                f"--out {self.folder} holds another run: {'; '.join(differences[:4])}; "
                "name another folder, or use --fresh to start over"
            )
        makers: list[dict[str, str]] = read_object(self.asked).get("versions") or [{}]
        if not isinstance(makers, list) or not all(isinstance(maker, dict) for maker in makers):
            raise DataError(f"{self.asked}: versions must be a list of objects")
        now = versions(question.model)
        changes = [
            f"{name} {makers[-1].get(name, 'unknown')} → {now[name]}"
            for name in now
            if makers[-1].get(name) != now[name]
        ]
        if changes:
            warn(f"{self.folder} was begun with other versions ({', '.join(changes)}): continued")
        return makers

    def tidy(self) -> None:
        """Delete what only unfinished work needs."""
        self._clear(("*.checkpoint", self.complexes.name, self.molecules.name))

    def tidy_data(self) -> None:
        """Delete the copy of the data; what is unfinished can still be taken up."""
        self._clear((self.complexes.name,))

    def _clear(self, patterns: tuple[str, ...]) -> None:
        for pattern in patterns:
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        for path in filter(is_unfinished, self.folder.iterdir()):
            path.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the folder; refused while another process does. The system lets go when we end."""
    if os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InputError(
            f"--out {folder}: another cell-attention is at work in it; wait, or name another"
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(handle)


def read_versioned(path: Path, newest: int, remedy: str = "") -> dict[str, Any]:
    """The JSON object that a file of ours holds, unless its format is newer than we know."""
    record = read_object(path, remedy)
    found = record.get("format")
    if type(found) is not int:
        raise DataError(f"{path}: has no format{remedy}")
    if found > newest:
        raise DataError(
            f"{path}: format {found} is newer than {newest}, the newest that this version of "
            "cell-attention reads; upgrade it"
        )
    return record


def read_object(path: Path, remedy: str = "") -> dict[str, Any]:
    """The JSON object that a file holds."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a whole JSON file ({error}){remedy}") from None
    if not isinstance(record, dict):
        raise DataError(f"{path}: must hold one JSON object{remedy}")
    return record
