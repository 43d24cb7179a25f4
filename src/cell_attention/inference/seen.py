"""What a model keeps of its training data: `seen`, `ranges`, `neighbours` of `config.json`."""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cell_attention._files import write_tensors
from cell_attention.data.dataset import GraphSet
from cell_attention.inference.model_record import Range
from cell_attention.inference.neighbours import (
    BITS,
    FILE,
    MOST,
    RADIUS,
    UNLIKE,
    Neighbours,
    TrainingMolecule,
    TrainingNames,
    blocks_of,
    morgan_bits,
    nearest,
)
from cell_attention.topology.complex import CellComplex

COMPARED = 1000
"""Training molecules that are compared with all others at most, to find the threshold."""
LONGEST = 200
"""Letters of a name or a target that are kept."""
MOST_CELLS = 2_000_000
"""Targets that are kept at most, over all molecules; of more none."""


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
    from cell_attention.data.molecules.molecule import reread, traits_of

    every = [traits_of(molecule) for molecule in reread(texts)]
    return {
        name: tuple(sorted({number for traits in every for number in traits[name]}))
        for name in ("charges", "atom_charges", "radicals")
    }


def neighbours_in(graph_set: GraphSet, train: Sequence[int]) -> Neighbours | None:
    """Return the fingerprints of the training graphs and what identifies them, if they are
    molecules of a file.
    """
    molecules = graph_set.molecules
    if molecules is None or not molecules.smiles:
        return None
    names = [molecules.names[row] for row in train] if molecules.names else ()
    smiles = [molecules.smiles[row] for row in train]
    return neighbours_of(smiles, names, _target_texts(graph_set, train))


def _target_texts(graph_set: GraphSet, train: Sequence[int]) -> list[list[str]]:
    """Return the targets of every training graph as words: names of classes, or numbers, with the
    sign of a bound before them; "" for an unknown one.
    """
    targets, bounds = graph_set.graphs.targets, graph_set.graphs.target_bounds
    if targets is None:
        return []
    rows, signs = torch.tensor(train), {1: ">", -1: "<"}
    if not targets.is_floating_point():
        classes = graph_set.class_names or tuple(map(str, range(int(targets.max()) + 1)))
        return [[classes[number]] for number in targets[rows].tolist()]
    values = targets[rows].double().reshape(len(train), -1)
    beyond = torch.zeros_like(values) if bounds is None else bounds[rows].reshape(values.shape)
    return [
        [
            "" if value != value else f"{signs.get(int(sign), '')}{value:.6g}"
            for value, sign in zip(row, row_signs, strict=True)
        ]
        for row, row_signs in zip(values.tolist(), beyond.tolist(), strict=True)
    ]


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
