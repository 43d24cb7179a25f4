"""What functional groups and scaffolds carry over many explained molecules.

Every atom belongs to one group and every bond between two atoms of one group to it too; the other
bonds have a row of their own. So the sums over all rows are the sums of the importances of all
atoms, and of all bonds. In the same way an atom is in the scaffold of its molecule or outside it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rdkit import Chem

from cell_attention.explanation.explanation import Explanation
from cell_attention.explanation.functional_groups import groups_of
from cell_attention.explanation.scaffold_cores import Core, cores_of

BETWEEN = "bonds between groups"
"""The row of the bonds that belong to no group."""


@dataclass
class GroupTotal:
    """What a functional group carries over all molecules."""

    group: str
    """Its name in `functional_groups.GROUPS`."""
    molecules: int = 0
    """Number of molecules that have it."""
    atoms: int = 0
    """Number of its atoms."""
    importance: float = 0.0
    """Sum of the importances of its atoms."""
    speaks_for: float = 0.0
    """Sum of those that are positive."""
    speaks_against: float = 0.0
    """Sum of those that are negative."""
    bonds: float = 0.0
    """Sum of the importances of the bonds within it."""

    @property
    def mean(self) -> float:
        """Importance of its atoms per molecule that has it."""
        return self.importance / max(1, self.molecules)


@dataclass
class ScaffoldTotal:
    """What a Bemis–Murcko scaffold carries over all molecules that share it."""

    scaffold: str
    """SMILES; empty for all molecules without a ring."""
    members: list[int]
    """Numbers of the explanations whose molecules have it."""
    importance: float = 0.0
    """Sum of the importances of its atoms."""
    outside: float = 0.0
    """Sum of the importances of the other atoms of these molecules."""

    @property
    def mean(self) -> float:
        """Importance of its atoms per molecule."""
        return self.importance / len(self.members)


def group_totals(explanations: Sequence[Explanation]) -> list[GroupTotal]:
    """Add up what functional groups carry, the largest in either direction first; graphs that are
    not known to be molecules do not count. All must explain the same class or value.
    """
    found: dict[str, GroupTotal] = {}

    def total(name: str) -> GroupTotal:
        return found.setdefault(name, GroupTotal(name))

    for one, molecule in _drawn(explanations):
        groups = groups_of(molecule)
        for name in {*groups}:
            total(name).molecules += 1
        for name, value in zip(groups, one.nodes.tolist(), strict=True):
            row = total(name)
            row.atoms += 1
            row.importance += value
            row.speaks_for += max(0.0, value)
            row.speaks_against += min(0.0, value)
        apart = False
        for (u, v), value in zip(one.complexes.edge_nodes.T.tolist(), one.edges.tolist(), strict=True):  # noqa: E501 # fmt: skip
            within = groups[u] == groups[v]
            apart |= not within
            total(groups[u] if within else BETWEEN).bonds += value
        if apart:
            total(BETWEEN).molecules += 1
    return sorted(found.values(), key=lambda row: (-abs(row.importance), row.group))


def groups_in(explanation: Explanation) -> dict[str, float]:
    """Return what the atoms of every functional group of one molecule carry."""
    carried: dict[str, float] = defaultdict(float)
    for one, molecule in _drawn([explanation]):
        for name, value in zip(groups_of(molecule), one.nodes.tolist(), strict=True):
            carried[name] += value
    return dict(carried)


def cores(explanations: Sequence[Explanation]) -> list[Core | None]:
    """Return the scaffold of every explained molecule; None for graphs that are none."""
    made = iter(cores_of([molecule for _, molecule in _drawn(explanations)]))
    return [None if one.molecule is None else next(made) for one in explanations]


def scaffold_totals(explanations: Sequence[Explanation]) -> list[ScaffoldTotal]:
    """Add up what scaffolds carry, those of most molecules first."""
    return totals_of(explanations, cores(explanations))


def totals_of(
    explanations: Sequence[Explanation], found: Sequence[Core | None]
) -> list[ScaffoldTotal]:
    """Add up what scaffolds carry, whose cores are known."""
    rows: dict[str, ScaffoldTotal] = {}
    for number, (one, core) in enumerate(zip(explanations, found, strict=True)):
        if core is not None:
            row = rows.setdefault(core.smiles, ScaffoldTotal(core.smiles, []))
            inside = float(one.nodes[list(core.atoms)].sum())
            row.members.append(number)
            row.importance += inside
            row.outside += float(one.nodes.sum()) - inside
    return sorted(rows.values(), key=lambda row: (-len(row.members), row.scaffold))


def _drawn(explanations: Iterable[Explanation]) -> Iterable[tuple[Explanation, Chem.Mol]]:
    """Yield the explanations of molecules with these."""
    return ((one, one.molecule) for one in explanations if one.molecule is not None)
