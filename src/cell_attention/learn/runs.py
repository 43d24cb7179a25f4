"""A RUN_DIR: what was asked, one file per finished fold, the answer. Killed at any moment, the
same question goes on from what is there.
"""

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cell_attention import __version__
from cell_attention._files import write_whole
from cell_attention.data.splits import Fold, Splits
from cell_attention.errors import DataError, InputError, warn
from cell_attention.nn.config import NetworkConfig, TrainingConfig
from cell_attention.topology.complex import CellComplex

FORMAT = 1
_MADE_HERE = ("run.json", "splits.json", "complexes.safetensors", "result.json", "timing.json")
_MADE_HERE_TOO = ("curves.svg", "fold-*.json", "fold-*.checkpoint", ".*.part")


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
        parts["network"] = NetworkConfig(**_tuples(record["network"]))
        parts["training"] = TrainingConfig(**_tuples(record["training"]))
        return Question(**parts)


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
    def begin(folder: Path, question: Question, splits: Splits, fresh: bool) -> "Run":
        """A new run, or the same one taken up again; another question's folder is refused."""
        run = Run(folder)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"--out {folder} is a file; name a folder")
        if fresh and folder.is_dir():
            run._clear()
        if not run.asked.is_file():
            if folder.is_dir() and any(path.suffix != ".part" for path in folder.iterdir()):
                raise InputError(
                    f"--out {folder} is not empty and not a run of cell-attention; name another"
                )
            folder.mkdir(parents=True, exist_ok=True)
        else:
            run._check(question)
        record = {"format": FORMAT, "question": question.record(), "version": __version__}
        write_whole(run.asked, json.dumps(record, indent=2) + "\n")
        listed = [asdict(fold) for fold in splits.folds]
        write_whole(run.folder / "splits.json", json.dumps(listed))
        return run

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

    def fold(self, number: int) -> Path:
        """A finished fold."""
        return self.folder / f"fold-{number:02}.json"

    def checkpoint(self, number: int) -> Path:
        """An unfinished fold."""
        return self.folder / f"fold-{number:02}.checkpoint"

    def question(self) -> Question:
        """What was asked."""
        record = _read(self.asked)
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

    def finished(self, number: int, digest: str) -> dict[str, Any] | None:
        """A finished fold's curves, or None; one that is damaged is refused."""
        path = self.fold(number)
        if not path.is_file():
            return None
        record = _read(path)
        if record.get("question") != digest:
            raise DataError(f"{path}: belongs to another run; use --fresh to start over")
        if not isinstance(record.get("score"), list) or not record["score"]:
            raise DataError(f"{path}: has no scores; delete it to run this fold again")
        return record

    def _check(self, question: Question) -> None:
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
        version = _read(self.asked).get("version")
        if version != __version__:
            warn(f"{self.folder} was begun by version {version}, continued by {__version__}")

    def _clear(self) -> None:
        if not self.asked.is_file() and any(self.folder.iterdir()):
            raise InputError(f"--out {self.folder} is not a run of cell-attention; name another")
        for pattern in (*_MADE_HERE, *_MADE_HERE_TOO):
            for path in self.folder.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _pairs(old: Any, new: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """The leaves of two records side by side."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            leaf
            for key in sorted({*old, *new})
            for leaf in _pairs(old.get(key), new.get(key), f"{name}.{key}".strip("."))
        ]
    return [(name, old, new)]


def _read(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a whole JSON file ({error})") from None
    if not isinstance(record, dict):
        raise DataError(f"{path}: must hold one JSON object")
    return record
