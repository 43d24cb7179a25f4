"""How far a molecule, and what is predicted for it, is from what was learned."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from rdkit import Chem
from torch import Tensor

from cell_attention.data.molecules.features import Featurised
from cell_attention.data.molecules.molecule import traits_of
from cell_attention.inference.model_folder import Model
from cell_attention.inference.neighbours import UNLIKE
from cell_attention.topology.complex import CellComplex

WIDER = 0.5
"""How far beyond the range of the training values a prediction may lie without a warning, as a part
of the width of the range."""
_CHARGES = {"charges": "net charge {:+} was", "atom_charges": "atoms of charge {:+} were"}


def unfamiliar(
    model: Model,
    made: Featurised,
    molecules: Sequence[Any],
    *,
    similarities: Sequence[float],
) -> list[str]:
    """Describe, per molecule, what was not in training: size, elements, bond types, charges,
    radicals, and rings; and how unlike those of training it is as a whole.

    similarities: to the nearest training molecules; empty if these are not known.
    """
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


def too_large(model: Model, graphs: CellComplex, nodes: str) -> list[list[str]]:
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


def _unseen_traits(model: Model, molecule: Any) -> Iterator[str]:
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
    model: Model, warnings: Sequence[str], *, place: Sequence[int | None], values: Tensor
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
