"""The training molecules that a model knows: how similar the nearest ones are, and which they are.

It keeps their fingerprints, and their SMILES, names and targets as one text in UTF-8 with the
places where its lines end: a line is only read when it is looked up, and a hundred thousand of them
are loaded like any other numbers.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load
from scipy.sparse import csr_array
from torch import Tensor

from cell_attention.errors import DataError, printable
from cell_attention.inference.model_record import file_of

Fingerprints = NDArray[np.uint64]
Block = csr_array
"""(BITS, molecules) fingerprints as columns."""

FILE = "neighbours.safetensors"
RADIUS, BITS = 2, 2048
"""Of the Morgan fingerprints: large enough to tell drugs apart, and 256 bytes per molecule."""
MOST = 100_000
"""Molecules that are kept at most, 26 MB; of more a seeded sample."""
FEW, MANY = 128, 4096
"""Molecules that are compared with how many others at once."""
UNLIKE = 1.0
"""Percentage of the training molecules that are less similar to the others than the threshold: the
share of warnings among new molecules that are like those of training."""


class Near(NamedTuple):
    """A training molecule near to another one."""

    similarity: float
    row: int
    """Its number among those that the model knows."""


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


def _plain(text: str) -> str:
    """Return a text without tabs, line breaks and control characters."""
    return printable(" ".join(text.split()))


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The fingerprints of the training molecules, and what identifies them."""

    fingerprints: Fingerprints
    """(molecules, BITS / 64) packed bits."""
    least: float
    """The similarity to the nearest other training molecule that all but UNLIKE % of them reach."""
    names: TrainingNames | None = None
    """Their SMILES, names and targets; None in models of earlier versions."""

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The fingerprints as columns, for `nearest`."""
        return blocks_of(self.fingerprints)

    def anonymous(self) -> "Neighbours":
        """Return the fingerprints alone, for a model that must not name what it was trained on."""
        return replace(self, names=None)

    def nearest_to(self, molecule: Any, count: int) -> list[Near]:
        """Return the training molecules most similar to a molecule, the nearest first."""
        query = morgan_bits([molecule])
        similar = np.concatenate([tanimoto(query, block)[0] for block in self.blocks])
        order = np.argsort(-similar, kind="stable")[:count].tolist()
        return [Near(float(similar[row]), row) for row in order]

    def named(self, near: Near) -> TrainingMolecule | None:
        """Look up what identifies a training molecule; None if the model does not know it."""
        return None if self.names is None else self.names[near.row]


def morgan_bits(molecules: Iterable[Any]) -> Fingerprints:
    """Return (molecules, BITS / 64) the packed Morgan fingerprints."""
    from rdkit import rdBase
    from rdkit.Chem import rdFingerprintGenerator

    from cell_attention.data.molecules.atoms import complete

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    with rdBase.BlockLogs():
        packed = [
            np.packbits(generator.GetFingerprintAsNumPy(complete(molecule)))
            for molecule in molecules
        ]
    return np.stack(packed).view(np.uint64) if packed else np.empty((0, BITS // 64), np.uint64)


def blocks_of(fingerprints: Fingerprints) -> tuple[Block, ...]:
    """Return the fingerprints as columns of sparse matrices of some thousand columns each."""
    parts = (fingerprints[first : first + MANY] for first in range(0, len(fingerprints), MANY))
    return tuple(_bits(part).T.tocsr() for part in parts)


def nearest(
    queries: Fingerprints, known: Sequence[Block], own: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the largest Tanimoto similarity of each query, and its place in `known`, the first of
    equals; own: the place of each query in `known`, which does not count.
    """
    found, places = np.full(len(queries), -1.0), np.zeros(len(queries), np.int64)
    for first in range(0, len(queries), FEW):
        part, start = slice(first, first + FEW), 0
        for block in known:
            similar = tanimoto(queries[part], block)
            if own is not None:
                rows = np.arange(start, start + similar.shape[1])
                similar[own[part, None] == rows] = 0.0
            best = similar.argmax(1)
            most = np.take_along_axis(similar, best[:, None], 1)[:, 0]
            nearer = most > found[part]
            found[part] = np.where(nearer, most, found[part])
            places[part] = np.where(nearer, start + best, places[part])
            start += similar.shape[1]
    return found, places


def tanimoto(queries: Fingerprints, block: Block) -> NDArray[np.float64]:
    """Return (queries, columns) the common bits of two fingerprints by the bits of either."""
    # Few bits are set: a product of sparse matrices touches only those that are common.
    bits = _bits(queries)
    common = (bits @ block).toarray().astype(np.float64)
    either = bits.sum(1)[:, None] + block.sum(0) - common
    # Two without bits are equal, as for RDKit.
    found: NDArray[np.float64] = np.where(either > 0, common / np.maximum(either, 1), 1.0)
    return found


def _bits(fingerprints: Fingerprints) -> Block:
    """(molecules, BITS) the bits that are set."""
    found: Any = np.unpackbits(fingerprints.view(np.uint8), axis=1)
    return csr_array(found, dtype=np.float32)


def load_neighbours(folder: Path, path: Path, entry: Any) -> Neighbours | None:
    """Read the fingerprints that an entry of `config.json`, at `path`, describes; None has none."""
    if entry is None:
        return None
    names = {"sha256", "radius", "bits", "least"}
    if not isinstance(entry, dict) or entry.keys() != names:
        raise DataError(f"{path}: neighbours must hold {', '.join(sorted(names))}")
    if (entry["radius"], entry["bits"]) != (RADIUS, BITS):
        raise DataError(
            f"{path}: neighbours must have radius {RADIUS} and {BITS} bits, got {entry['radius']} "
            f"and {entry['bits']}"
        )
    least = entry["least"]
    if type(least) not in (int, float) or not math.isfinite(least) or not 0 <= least <= 1:
        raise DataError(f"{path}: neighbours least must lie in [0, 1], got {least!r:.60}")
    data = file_of(folder, FILE).read_bytes()
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise DataError(f"{folder / FILE}: the SHA-256 differs from that in {path.name}")
    try:
        tensors = load(data)
        table = tensors["fingerprints"]
    except (SafetensorError, KeyError) as error:
        raise DataError(f"{folder / FILE}: not a file of fingerprints ({error})") from None
    if table.dtype != torch.uint8 or table.dim() != 2 or table.shape[1] != BITS // 8:
        raise DataError(f"{folder / FILE}: fingerprints must be (molecules, {BITS // 8}) bytes")
    if not 1 <= len(table) <= MOST:
        raise DataError(f"{folder / FILE}: 1…{MOST:,} fingerprints are expected, got {len(table)}")
    identified = None
    if "text" in tensors and "ends" in tensors:
        identified = TrainingNames.from_tensors(folder / FILE, tensors, len(table))
    return Neighbours(table.contiguous().numpy().view(np.uint64), float(least), identified)
