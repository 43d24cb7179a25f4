"""What a model keeps of its training data: `seen`, `ranges`, `neighbours` of `config.json`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from cell_attention.data.dataset import GraphSet
from cell_attention.inference.model_record import Range
from cell_attention.inference.neighbours import Neighbours, neighbours_of
from cell_attention.topology.complex import CellComplex


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
