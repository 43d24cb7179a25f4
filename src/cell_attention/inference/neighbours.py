"""How similar a molecule is to the nearest ones of training, by fingerprints that a model keeps."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
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

from cell_attention._files import write_tensors
from cell_attention.errors import DataError
from cell_attention.inference.model_record import file_of
from cell_attention.inference.training_names import (
    MOST_CELLS,
    TrainingMolecule,
    TrainingNames,
    distinct_molecules,
)

Fingerprints = NDArray[np.uint64]
Block = csr_array
"""(BITS, molecules) fingerprints as columns."""

FILE = "neighbours.safetensors"
RADIUS, BITS = 2, 2048
"""Of the Morgan fingerprints: large enough to tell drugs apart, and 256 bytes per molecule."""
MOST = 100_000
"""Molecules that are kept at most, 26 MB; of more a seeded sample."""
COMPARED = 1000
"""Training molecules that are compared with all others at most, to find the threshold."""
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


def neighbours_of(
    smiles: Sequence[str], names: Sequence[str] = (), targets: Sequence[Sequence[str]] = ()
) -> Neighbours | None:
    """Keep the fingerprints of the training molecules, given as canonical SMILES.

    names, targets: what their file calls them, and their targets as words; empty if unknown.
    """
    from cell_attention.data.molecules.molecule import reread  # RDKit takes a while to import

    if sum(map(len, targets)) > MOST_CELLS:
        targets = ()
    distinct = distinct_molecules(smiles, names, targets)
    texts, draw, kept = list(distinct), np.random.default_rng(0), []
    if len(texts) > MOST:
        texts = [texts[row] for row in np.sort(draw.choice(len(texts), MOST, replace=False))]

    def read() -> Iterator[Any]:
        for text in texts:
            for molecule in reread((text,)):  # nothing if RDKit does not take it again
                kept.append(text)
                yield molecule

    known = morgan_bits(read())
    if not len(known):
        return None
    rows = np.sort(draw.choice(len(known), min(len(known), COMPARED), replace=False))
    found, _ = nearest(known[rows], blocks_of(known), rows)
    identified = TrainingNames.of(distinct[text] for text in kept)
    return Neighbours(known, float(np.percentile(found, UNLIKE)), identified)


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


def save_neighbours(folder: Path, neighbours: Neighbours | None) -> dict[str, Any] | None:
    """Write the file of the fingerprints; return its entry in `config.json`."""
    if neighbours is None:
        (folder / FILE).unlink(missing_ok=True)
        return None
    packed = torch.from_numpy(neighbours.fingerprints.view(np.uint8).copy())
    names = {} if neighbours.names is None else neighbours.names.tensors()
    write_tensors(folder / FILE, {"fingerprints": packed, **names}, {"format": "pt"})
    digest = hashlib.sha256((folder / FILE).read_bytes()).hexdigest()
    return {"sha256": digest, "radius": RADIUS, "bits": BITS, "least": neighbours.least}


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
