"""Splits that keep groups together: molecules of one scaffold are never on both sides."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from cell_attention.errors import InputError


def scaffolds(smiles: Sequence[str]) -> tuple[str, ...]:
    """Return the Bemis–Murcko scaffold of every molecule: its rings and their links, as SMILES.

    All molecules without a ring share the empty one.
    """
    from rdkit import Chem, rdBase
    from rdkit.Chem.Scaffolds import MurckoScaffold

    scaffold_of: Any = MurckoScaffold.GetScaffoldForMol

    found = []
    with rdBase.BlockLogs():
        for text in smiles:
            try:
                scaffold = scaffold_of(Chem.MolFromSmiles(text))
                Chem.RemoveStereochemistry(scaffold)
                found.append(Chem.MolToSmiles(scaffold))
            except (ValueError, RuntimeError, TypeError):  # no scaffold from RDKit: its own group
                found.append(text)
    return tuple(found)


def hold_out_groups(
    graphs: Sequence[int], groups: Sequence[str], *, share: float, seed: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Hold out about a share of these graphs as whole groups; return the rest and the share.

    Groups larger than half the share are not held out if there are smaller ones, so that the share
    has many groups; of the others, in random order, each is held out that still fits.
    """
    members = _members(graphs, groups)
    size = min(max(1, round(share * len(graphs))), len(graphs) - 1)
    taken: list[int] = []
    small = [group for group in members if len(members[group]) <= max(1, size // 2)]
    small = small or [group for group in members if len(members[group]) <= size]
    for place in np.random.default_rng(seed).permutation(len(small)):
        if len(taken) + len(members[small[place]]) <= size:
            taken += members[small[place]]
    if not taken:
        raise InputError(
            f"no scaffold is small enough to hold out {size} of {len(graphs)} molecules; use "
            "another split"
        )
    kept = sorted(set(graphs).difference(taken))
    return tuple(kept), tuple(sorted(taken))


def folds_by_group(groups: Sequence[str], folds: int, seed: int) -> list[tuple[int, ...]]:
    """Divide whole groups into folds of sizes as equal as possible: from the largest group on, each
    goes to the smallest fold, groups of equal size in random order.
    """
    members = _members(range(len(groups)), groups)
    if len(members) < 2:
        raise InputError("folds by scaffold need at least 2 scaffolds, got 1")
    if not 2 <= folds <= len(members):
        raise InputError(
            f"folds must lie in 2…{len(members)}, the number of scaffolds, got {folds}"
        )
    names = list(members)
    shuffled = [names[i] for i in np.random.default_rng(seed).permutation(len(names))]
    parts: list[list[int]] = [[] for _ in range(folds)]
    for name in sorted(shuffled, key=lambda name: -len(members[name])):
        min(parts, key=len).extend(members[name])
    return [tuple(sorted(part)) for part in parts]


def _members(graphs: Sequence[int], groups: Sequence[str]) -> dict[str, list[int]]:
    members: dict[str, list[int]] = defaultdict(list)
    for graph in graphs:
        members[groups[graph]].append(graph)
    return members
