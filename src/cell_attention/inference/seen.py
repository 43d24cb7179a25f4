"""What a model keeps of its training data: `seen`, `ranges`, `neighbours` of `config.json`."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cell_attention._files import write_tensors
from cell_attention.data.dataset import GraphSet
from cell_attention.inference.familiarity import (
    BITS,
    FILE,
    MOST,
    RADIUS,
    UNLIKE,
    Neighbours,
    morgan_bits,
    nearest,
)
from cell_attention.inference.model_record import Range
from cell_attention.topology.complex import CellComplex

COMPARED = 1000
"""Training molecules that are compared with all others at most, to find the threshold."""


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
    """Return the fingerprints of the training graphs, if they are molecules of a file."""
    molecules = graph_set.molecules
    if molecules is None or not molecules.smiles:
        return None
    return neighbours_of([molecules.smiles[row] for row in train])


def neighbours_of(smiles: Sequence[str]) -> Neighbours | None:
    """Keep the fingerprints of the training molecules, given as canonical SMILES."""
    from cell_attention.data.molecules.molecule import reread  # RDKit takes a while to import

    texts, draw = list(dict.fromkeys(smiles)), np.random.default_rng(0)
    if len(texts) > MOST:
        texts = [texts[row] for row in np.sort(draw.choice(len(texts), MOST, replace=False))]
    known = morgan_bits(reread(texts))
    if not len(known):
        return None
    rows = np.sort(draw.choice(len(known), min(len(known), COMPARED), replace=False))
    found = nearest(known[rows], known, rows)
    return Neighbours(known, float(np.percentile(found, UNLIKE)))


def save_neighbours(folder: Path, neighbours: Neighbours | None) -> dict[str, Any] | None:
    """Write the file of the fingerprints; return its entry in `config.json`."""
    if neighbours is None:
        (folder / FILE).unlink(missing_ok=True)
        return None
    packed = torch.from_numpy(neighbours.fingerprints.view(np.uint8).copy())
    write_tensors(folder / FILE, {"fingerprints": packed}, {"format": "pt"})
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
