"""How far a molecule, and what is predicted for it, is from what was learned.

By what was in the training graphs, by the fingerprints that a model keeps of its training molecules
(`neighbours.safetensors`), and by the ranges of their values.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from cell_attention.errors import DataError
from cell_attention.inference.model_record import file_of
from cell_attention.topology.complex import CellComplex

if TYPE_CHECKING:
    from cell_attention.data.molecules.features import Featurised
    from cell_attention.inference.model_folder import Model

Fingerprints = NDArray[np.uint64]

FILE = "neighbours.safetensors"
RADIUS, BITS = 2, 2048
"""Of the Morgan fingerprints: large enough to tell drugs apart, and 256 bytes per molecule."""
MOST = 100_000
"""Molecules that are kept at most, 26 MB; of more a seeded sample."""
UNLIKE = 1.0
"""Percentage of the training molecules that are less similar to the others than the threshold: the
share of warnings among new molecules that are like those of training."""

WIDER = 0.5
"""How far beyond the range of the training values a prediction may lie without a warning, as a part
of the width of the range."""
_CHARGES = {"charges": "net charge {:+} was", "atom_charges": "atoms of charge {:+} were"}


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The fingerprints of the training molecules."""

    fingerprints: Fingerprints
    """(molecules, BITS / 64) packed bits."""
    least: float
    """The similarity to the nearest other training molecule that all but UNLIKE % of them reach."""


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
        table = load(data)["fingerprints"]
    except (SafetensorError, KeyError) as error:
        raise DataError(f"{folder / FILE}: not a file of fingerprints ({error})") from None
    if table.dtype != torch.uint8 or table.dim() != 2 or table.shape[1] != BITS // 8:
        raise DataError(f"{folder / FILE}: fingerprints must be (molecules, {BITS // 8}) bytes")
    if not 1 <= len(table) <= MOST:
        raise DataError(f"{folder / FILE}: 1…{MOST:,} fingerprints are expected, got {len(table)}")
    return Neighbours(table.contiguous().numpy().view(np.uint64), float(least))


def morgan_bits(molecules: Iterable[Any]) -> Fingerprints:
    """Return (molecules, BITS / 64) the packed Morgan fingerprints."""
    from rdkit import rdBase
    from rdkit.Chem import rdFingerprintGenerator

    from cell_attention.data.molecules.features import complete

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    with rdBase.BlockLogs():
        packed = [
            np.packbits(generator.GetFingerprintAsNumPy(complete(molecule)))
            for molecule in molecules
        ]
    return np.stack(packed).view(np.uint64) if packed else np.empty((0, BITS // 64), np.uint64)


def nearest(
    queries: Fingerprints, known: Fingerprints, own: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return the largest Tanimoto similarity of each query; own: the row of each in `known`, which
    does not count.
    """
    found = np.zeros(len(queries))
    many, few = 4096, 128  # a block of pairs stays in the cache
    for first in range(0, len(queries), few):
        part = slice(first, first + few)
        for start in range(0, len(known), many):
            similar = tanimoto(queries[part], known[start : start + many])
            if own is not None:
                rows = np.arange(start, start + similar.shape[1])
                similar[own[part, None] == rows] = 0.0
            found[part] = np.maximum(found[part], similar.max(1))
    return found


def tanimoto(left: Fingerprints, right: Fingerprints) -> NDArray[np.float64]:
    """Return (left, right) the common bits of two fingerprints by the bits of either."""
    bits = getattr(np, "bitwise_count", _bits)  # since numpy 2
    common = np.zeros((len(left), len(right)), np.int32)
    for word in range(left.shape[1]):
        common += bits(left[:, word, None] & right[None, :, word])
    sizes = [bits(table).sum(1, dtype=np.int32) for table in (left, right)]
    either = sizes[0][:, None] + sizes[1] - common
    # Two without bits are equal, as for RDKit.
    return np.where(either > 0, common / np.maximum(either, 1), 1.0)


_BITS_OF_16 = (
    np.unpackbits(np.arange(2**16, dtype=np.uint16).view(np.uint8))
    .reshape(-1, 16)
    .sum(1, dtype=np.uint8)
)
"""Number of bits of every number of 16 bits."""


def _bits(words: Fingerprints) -> NDArray[Any]:
    """Count the bits of every word."""
    parts = np.ascontiguousarray(words).view(np.uint16).reshape(*words.shape, 4)
    counted: NDArray[Any] = _BITS_OF_16[parts].sum(-1, dtype=np.uint8)
    return counted


def unfamiliar(
    model: "Model",
    made: "Featurised",
    molecules: Sequence[Any],
    *,
    similarities: Sequence[float],
) -> list[str]:
    """Describe, per molecule, what was not in training: size, elements, bond types, charges,
    radicals, and rings; and how unlike those of training it is as a whole.

    similarities: to the nearest training molecules; empty if these are not known.
    """
    from rdkit import Chem

    table, graphs, seen, known = Chem.GetPeriodicTable(), made.graphs, model.seen, model.neighbours
    said = too_large(model, graphs, "atoms")
    for graph, number in _unseen(made.elements, graphs.node_complex, seen.get("elements")):
        said[graph].append(f"element {table.GetElementSymbol(number)} was not in training")
    for graph, number in _unseen(made.bonds, graphs.edge_complex, seen.get("bonds")):
        said[graph].append(
            f"{Chem.BondType.values[number].name.lower()} bonds were not in training"
        )
    for texts, molecule in zip(said, molecules, strict=True):
        texts += _unseen_traits(model, molecule)
    for texts, similarity in zip(said, similarities, strict=False):
        if known is not None and similarity < known.least:
            texts.append(
                f"unlike the training molecules: the nearest has similarity {similarity:.3f}, "
                f"among them {100 - UNLIKE:g} % have one of at least {known.least:.3f}"
            )
    return ["; ".join(texts) for texts in said]


def too_large(model: "Model", graphs: CellComplex, nodes: str) -> list[list[str]]:
    """Say of every graph with more nodes than any in training how many it has.

    nodes: the word for them.
    """
    said: list[list[str]] = [[] for _ in range(graphs.num_complexes)]
    if "nodes" in model.seen:
        (most,) = model.seen["nodes"]
        counts = torch.bincount(graphs.node_complex, minlength=graphs.num_complexes)
        for graph in (counts > most).nonzero().flatten().tolist():
            said[graph].append(
                f"{int(counts[graph]):,} {nodes} are more than any in training ({most:,})"
            )
    return said


def _unseen(
    values: Tensor, graph: Tensor, known: tuple[int, ...] | None
) -> Iterator[tuple[int, int]]:
    """Yield every (graph, value) that was not in training, once; nothing if `known` is None."""
    if known is not None:
        new = ~torch.isin(values, torch.tensor(known, dtype=values.dtype))
        rows = new.nonzero().flatten().tolist()
        yield from sorted({(int(graph[row]), int(values[row])) for row in rows})


def _unseen_traits(model: "Model", molecule: Any) -> Iterator[str]:
    from cell_attention.data.molecules.molecule import traits_of

    seen, traits = model.seen, traits_of(molecule)
    for name, text in _CHARGES.items():
        for charge in traits[name]:
            if charge not in seen.get(name, traits[name]):
                yield f"{text.format(charge)} not in training"
    if any(traits["radicals"]) and not any(seen.get("radicals", (1,))):
        yield "radicals were not in training"
    (ring,), (most,) = traits["rings"], seen.get("rings", traits["rings"])
    if ring > model.config.max_polygon:
        yield f"a ring of {ring} atoms is not a polygon (at most {model.config.max_polygon})"
    elif ring > most:
        largest = f"the largest has {most}" if most else "there is no ring"
        yield f"rings of {ring} atoms were not in training ({largest})"


def warnings_with_values(
    model: "Model", warnings: Sequence[str], *, place: Sequence[int | None], values: Tensor
) -> list[str]:
    """Join the warnings of rows with those about predicted values far outside those of training.

    place: the row of `values` that each has, None if it has none. values: (graphs, ·) as predicted.
    """
    said: list[list[str]] = [[] for _ in range(values.size(0))]
    for column, known in enumerate(model.ranges):
        if known is None:
            continue
        (low, high), found = known, values[:, column]
        slack = WIDER * (high - low)
        name = f"{model.target_columns[column]}: " if len(model.ranges) > 1 else ""
        beyond = ~((found >= low - slack) & (found <= high + slack))
        for graph in beyond.nonzero().flatten().tolist():
            said[graph].append(
                f"{name}{float(found[graph]):.6g} is beyond the values of training "
                f"({low:.6g} … {high:.6g})"
            )
    return [
        "; ".join(filter(None, (warning, *([] if where is None else said[where]))))
        for warning, where in zip(warnings, place, strict=True)
    ]
