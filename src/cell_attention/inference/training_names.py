"""What identifies the training molecules that a model knows: their SMILES, names and targets.

All of it is one text in UTF-8 and the places where its lines end, so that a line is only read when
it is looked up, and a hundred thousand of them are loaded like any other numbers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import DataError, printable

LONGEST = 200
"""Letters of a name or a target that are kept."""
MOST_CELLS = 2_000_000
"""Targets that are kept at most, over all molecules; of more none."""


@dataclass(frozen=True)
class TrainingMolecule:
    """A molecule that a model was trained on."""

    smiles: str
    """Canonical SMILES."""
    name: str = ""
    """Its name in the file of the training data, or several joined by " / "."""
    targets: tuple[str, ...] = ()
    """Its targets as words or numbers, in the order of the model's columns; "" is unknown."""

    @property
    def text(self) -> str:
        """The molecule as a line of a .smi file."""
        return f"{self.smiles} {self.name}".rstrip()


@dataclass(frozen=True, eq=False)
class TrainingNames:
    """The training molecules of a model, looked up by number."""

    text: NDArray[np.uint8]
    """One line per molecule in UTF-8: SMILES, name and targets, separated by tabs."""
    ends: NDArray[np.int64]
    """(molecules,) where every line ends."""

    @classmethod
    def of(cls, molecules: Iterable[TrainingMolecule]) -> "TrainingNames":
        """Pack the molecules."""
        lines = [
            "\t".join(map(_plain, (one.smiles, one.name, *one.targets))).encode()
            for one in molecules
        ]
        ends = np.cumsum([len(line) for line in lines], dtype=np.int64)
        return cls(np.frombuffer(b"".join(lines), np.uint8), ends)

    @classmethod
    def from_tensors(cls, path: Path, tensors: dict[str, Tensor], count: int) -> "TrainingNames":
        """Read what `tensors` made; refuse what does not name `count` molecules."""
        text, ends = tensors["text"], tensors["ends"]
        fits = text.dtype == torch.uint8 and ends.dtype == torch.int64
        if not fits or text.dim() != 1 or tuple(ends.shape) != (count,):
            raise DataError(f"{path}: text must be bytes and ends {count} whole numbers")
        steps = ends.diff(prepend=ends.new_zeros(1))
        if bool((steps < 0).any()) or int(ends[-1]) != text.numel():
            raise DataError(f"{path}: ends must increase to {text.numel()}, the length of text")
        return cls(text.numpy(), ends.numpy())

    def tensors(self) -> dict[str, Tensor]:
        """Return what a safetensors file holds."""
        return {"text": torch.from_numpy(self.text.copy()), "ends": torch.from_numpy(self.ends)}

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, row: int) -> TrainingMolecule:
        first = int(self.ends[row - 1]) if row else 0
        line = self.text[first : int(self.ends[row])].tobytes().decode("utf-8", "replace")
        smiles, *rest = line.split("\t")
        name, *targets = rest or [""]
        return TrainingMolecule(smiles, name, tuple(targets))


def distinct_molecules(
    smiles: Sequence[str], names: Sequence[str], targets: Sequence[Sequence[str]]
) -> dict[str, TrainingMolecule]:
    """Return every molecule once, by its SMILES; different names and targets of one are joined.

    names, targets: of every row; empty if there are none.
    """
    rows: dict[str, list[tuple[str, ...]]] = {}
    for text, name, known in zip(smiles, names or repeat(""), targets or repeat(()), strict=False):
        rows.setdefault(text, []).append((name, *known))
    found = {}
    for text, cells in rows.items():
        name, *known = (_joined(column) for column in zip(*cells, strict=True))
        found[text] = TrainingMolecule(text, name, tuple(known))
    return found


def _joined(cells: Sequence[str]) -> str:
    return " / ".join(dict.fromkeys(filter(None, cells)))[:LONGEST]


def _plain(text: str) -> str:
    """Return a text without tabs, line breaks and control characters."""
    return printable(" ".join(text.split()))
