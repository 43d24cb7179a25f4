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

from cell_attention._files import write_whole
from cell_attention.data.splits import Fold, Splits
from cell_attention.errors import DataError, InputError, warn
from cell_attention.learn.question import Question, leaves, versions

FORMAT = 1
_MADE_HERE = ("run.json", "splits.json", "complexes.safetensors", "result.json", "timing.json")
_MADE_HERE_TOO = ("curves.svg", "fold-*.json", "fair-*.json", "*.checkpoint", ".*.part")


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
        if any(path.suffix != ".part" for path in there):
            raise InputError(
                f"--out {folder} is not empty and not a run of cell-attention; name another"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with alone_in(folder):
            run._clear((*_MADE_HERE, *_MADE_HERE_TOO) if fresh else (".*.part",))
            makers = run._check(question) if run.asked.is_file() else []
            if versions() not in makers:
                makers.append(versions())
            record = {"format": FORMAT, "question": question.record(), "versions": makers}
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

    def part(self, stem: str) -> Path:
        """A finished part."""
        return self.folder / f"{stem}.json"

    def checkpoint(self, stem: str) -> Path:
        """An unfinished part."""
        return self.folder / f"{stem}.checkpoint"

    def question(self) -> Question:
        """What was asked."""
        record = read_object(self.asked)
        if record.get("format", 0) > FORMAT:
            raise DataError(
                f"{self.asked}: format {record['format']} is newer than {FORMAT}, the newest that "
                "this version of cell-attention reads; upgrade it"
            )
        try:
            return Question.of(record["question"])
        except (KeyError, TypeError) as error:
            raise DataError(f"{self.asked}: not what a run asks ({error})") from None

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
        """A finished part's scores and more, or None; one that is damaged is refused."""
        path = self.part(stem)
        if not path.is_file():
            return None
        record = read_object(path, "; delete it to run this part again")
        if record.get("question") != digest:
            raise DataError(f"{path}: belongs to another run; use --fresh to start over")
        if not _numbers(record.get("score")):
            raise DataError(f"{path}: has no scores; delete it to run this part again")
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
        now = versions()
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
        self._clear(("*.checkpoint", self.complexes.name))

    def _clear(self, patterns: tuple[str, ...]) -> None:
        for pattern in patterns:
            for path in self.folder.glob(pattern):
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


def _numbers(values: Any) -> bool:
    """Whether this is a list of at least one number."""
    kinds = (int, float)
    return isinstance(values, list) and bool(values) and all(type(v) in kinds for v in values)


def read_object(path: Path, remedy: str = "") -> dict[str, Any]:
    """The JSON object that a file holds."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a whole JSON file ({error}){remedy}") from None
    if not isinstance(record, dict):
        raise DataError(f"{path}: must hold one JSON object{remedy}")
    return record
