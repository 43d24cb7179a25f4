"""What a model has seen in training: `seen`, `ranges` and `neighbours` of `config.json`."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cell_attention.data.dataset import GraphSet
from cell_attention.errors import DataError
from cell_attention.inference.neighbours import Neighbours, neighbours_of
from cell_attention.topology.complex import CellComplex

Range = tuple[float, float] | None
"""The least and the largest value of a column; None if there are no two different ones."""

LISTS = {
    "elements": (0, 999), "bonds": (0, 999), "charges": (-10_000, 10_000),
    "atom_charges": (-999, 999), "radicals": (0, 10_000), "nodes": (0, 2**40), "rings": (0, 2**40),
}  # fmt: skip
"""The lists of whole numbers in `seen`, and between which numbers they lie: elements and bond types
by RDKit's numbers, net charges, charges of atoms, unpaired electrons, and, as lists of one number,
the most nodes of a graph and the most atoms of a ring."""


def seen_in(graph_set: GraphSet, train: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the lists of `LISTS` for the training graphs, as far as they are known."""
    graphs, molecules, chosen = graph_set.graphs, graph_set.molecules, torch.tensor(train)
    nodes = torch.bincount(graphs.node_complex, minlength=graphs.num_complexes)[chosen]
    found: dict[str, tuple[int, ...]] = {"nodes": (int(nodes.max()),)}
    if molecules is not None:
        elements, bonds = molecules.elements, molecules.bonds
        if molecules.smiles:
            found |= _charges([molecules.smiles[row] for row in train])
        if molecules.rings:
            found["rings"] = (max(molecules.rings[row] for row in train),)
    elif "elements" in graph_set.featuriser and graphs.edge_features is not None:
        from cell_attention.data.molecules.rebuild import decoded  # RDKit takes a while to import

        elements, bonds = decoded(graphs, graph_set.featuriser)
    else:
        return found
    return {
        "elements": _distinct(elements[torch.isin(graphs.node_complex, chosen)]),
        "bonds": _distinct(bonds[torch.isin(graphs.edge_complex, chosen)]),
        **found,
    }


def _distinct(numbers: Tensor) -> tuple[int, ...]:
    return tuple(numbers.unique().tolist())


def _charges(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the charges and radicals of molecules, given as canonical SMILES."""
    from cell_attention.data.molecules.traits import reread, traits_of

    every = [traits_of(molecule) for molecule in reread(texts)]
    return {
        "charges": tuple(sorted({one.charge for one in every})),
        "atom_charges": tuple(sorted({c for one in every for c in one.atom_charges})),
        "radicals": tuple(sorted({one.radicals for one in every})),
    }


def neighbours_in(graph_set: GraphSet, train: Sequence[int]) -> Neighbours | None:
    """Return the fingerprints of the training graphs, if they are molecules of a file."""
    molecules = graph_set.molecules
    if molecules is None or not molecules.smiles:
        return None
    return neighbours_of([molecules.smiles[row] for row in train])


def ranges_in(graphs: CellComplex, train: Sequence[int]) -> tuple[Range, ...]:
    """Return the range of every column of values over the training graphs; bounds count as their
    numbers.
    """
    targets = graphs.targets
    if targets is None:
        return ()
    table = targets[torch.tensor(train)].double()
    return tuple(map(_range, table.reshape(len(train), -1).unbind(1)))


def _range(column: Tensor) -> Range:
    known = column[column.isfinite()]
    if known.unique().numel() < 2:
        return None
    return float(known.min()), float(known.max())


def seen_from(path: Path, record: Any) -> dict[str, tuple[int, ...]]:
    """Read the entry `seen`; refuse what is not a known list of whole numbers."""
    for name, numbers in record.items():
        if name not in LISTS or not isinstance(numbers, list):
            raise DataError(f"{path}: seen must hold lists of {', '.join(LISTS)}")
        least, most = LISTS[name]
        if not all(type(number) is int and least <= number <= most for number in numbers):
            raise DataError(f"{path}: seen {name} must be whole numbers in {least}…{most}")
        if name in ("nodes", "rings") and len(numbers) != 1:
            raise DataError(f"{path}: seen {name} must hold one number, got {len(numbers)}")
    return {str(name): tuple(numbers) for name, numbers in record.items()}


def ranges_from(path: Path, record: Any, columns: int) -> tuple[Range, ...]:
    """Read the entry `ranges`: a range or null for each column of values, or nothing at all."""
    if not isinstance(record, list) or len(record) not in {0, columns}:
        raise DataError(f"{path}: ranges must be a list with an entry per column of values")
    return tuple(_ranges_from(path, record))


def _ranges_from(path: Path, record: list[Any]) -> Iterator[Range]:
    for entry in record:
        if entry is None:
            yield None
            continue
        if not isinstance(entry, list) or len(entry) != 2 or not all(map(is_number, entry)):
            raise DataError(f"{path}: ranges must hold two finite numbers each, got {entry!r:.60}")
        low, high = map(float, entry)
        if low >= high:
            raise DataError(f"{path}: ranges must increase, got {entry}")
        yield low, high


def is_number(value: Any) -> bool:
    """Whether this entry of a record is a finite number."""
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # a whole number beyond float64
        return False
