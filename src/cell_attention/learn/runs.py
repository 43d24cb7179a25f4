"""A RUN_DIR: what was asked, one file per finished part, the answer. Killed at any moment, the
same question goes on from what is there.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeVar

from cell_attention import __version__
from cell_attention._files import write_whole
from cell_attention.data.splits import Fold, Splits
from cell_attention.errors import DataError, InputError, warn
from cell_attention.nn.config import NetworkConfig, TrainingConfig
from cell_attention.topology.complex import CellComplex

FORMAT = 1
_MADE_HERE = ("run.json", "splits.json", "complexes.safetensors", "result.json", "timing.json")
_MADE_HERE_TOO = ("curves.svg", "fold-*.json", "fair-*.json", "*.checkpoint", ".*.part")
Protocol = Literal["paper", "fair"]
Config = TypeVar("Config", NetworkConfig, TrainingConfig)


@dataclass(frozen=True)
class Question:
    """Everything that the answer depends on."""

    source: str
    graphs: int
    data: str
    """SHA-256 of the complexes."""
    splits: str
    """Where the folds come from."""
    folds: str
    """SHA-256 of the folds."""
    network: NetworkConfig
    training: TrainingConfig
    class_weights: bool = False
    model: str = "can"
    protocol: Protocol = "paper"
    grid: tuple[dict[str, dict[str, Any]], ...] = ()
    """What the configurations that the fair protocol chooses from change, table by table."""

    def configurations(self) -> list[tuple[NetworkConfig, TrainingConfig]]:
        """What there is to choose from: the one that is named above, or the grid's."""
        entries: tuple[dict[str, dict[str, Any]], ...] = self.grid or ({},)
        return [
            (
                replace(self.network, **_tuples(entry.get("network", {}))),
                replace(self.training, **_tuples(entry.get("training", {}))),
            )
            for entry in entries
        ]

    def record(self) -> dict[str, Any]:
        """As JSON would hold it."""
        record: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return record

    def digest(self) -> str:
        """One name for the question, for files that belong to it."""
        return hashlib.sha256(json.dumps(self.record(), sort_keys=True).encode()).hexdigest()

    @staticmethod
    def of(record: dict[str, Any]) -> "Question":
        """Back from JSON."""
        parts = dict(record)
        parts["network"] = config_of(NetworkConfig, record["network"])
        parts["training"] = config_of(TrainingConfig, record["training"])
        parts["grid"] = tuple(record.get("grid", ()))
        return Question(**parts)


def config_of(kind: type[Config], record: dict[str, Any]) -> Config:
    """A configuration back from JSON, which has no tuples."""
    return kind(**_tuples(record))


def _tuples(record: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}


def data_digest(complexes: CellComplex) -> str:
    """SHA-256 of every tensor of the complexes, with its name, type and shape."""
    total = hashlib.sha256(str(complexes.num_complexes).encode())
    for name, value in sorted(complexes.tensors().items()):
        total.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        total.update(value.detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


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
            for name, old, new in _pairs(there.record(), question.record())
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


def versions() -> dict[str, str]:
    """Of this program and of what the bits of a result depend on."""
    others = {name: version(name) for name in ("torch", "numpy", "numba", "scikit-learn")}
    return {"cell-attention": __version__, **others}


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


def _pairs(old: Any, new: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """The leaves of two records side by side."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            leaf
            for key in sorted({*old, *new})
            for leaf in _pairs(old.get(key), new.get(key), f"{name}.{key}".strip("."))
        ]
    return [(name, old, new)]


def read_object(path: Path, remedy: str = "") -> dict[str, Any]:
    """The JSON object that a file holds."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a whole JSON file ({error}){remedy}") from None
    if not isinstance(record, dict):
        raise DataError(f"{path}: must hold one JSON object{remedy}")
    return record
