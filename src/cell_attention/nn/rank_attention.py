"""The layer of attention on every rank: joint projections, of which each neighbourhood takes its
columns, and the round in which all cells hear each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor, nn

from cell_attention.nn.config import Activation, Kernel
from cell_attention.nn.functional import segment_sum
from cell_attention.nn.kernels import compilable
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.neighbourhoods import Side, incidences

if TYPE_CHECKING:
    from cell_attention.nn.hearing import Heard, Weights

Voices = Literal["one", "each"]
NEIGHBOURHOODS: dict[str, tuple[int, Side]] = {
    "nodes": (0, "upper"),
    "lower": (1, "lower"),
    "upper": (1, "upper"),
    "polygons": (2, "lower"),
}
"""The neighbourhoods by name: the rank that hears and the side of the shared cell."""
SUMS = {"faces": ((1, 0), (2, 1)), "cofaces": ((0, 1), (1, 2))}
"""(rank, rank of the cells that are summed)."""


@dataclass(frozen=True)
class Hearing:
    """Which columns of the joint projections a neighbourhood uses; −1 for a term that is zero."""

    name: str
    rank: int
    through: int
    value: int
    query: int
    key: int
    shared_value: int
    shared_key: int
    message: frozenset[tuple[int, int]]
    """The ranks and columns that its messages are made of. A node that speaks through an edge says
    the same as the edge through that node, if both have one voice: computed once."""


@dataclass(frozen=True)
class Plan:
    """The blocks of columns of a round. Each rank's first block is its own term W h + b."""

    width: int
    heads: int
    hearings: tuple[Hearing, ...]
    sums: tuple[tuple[int, int, int], ...]
    """(rank, of, column): from this column on, the projection of the rank `of` is summed at the
    cells of `rank`."""
    columns: tuple[int, int, int]
    """Number of columns of the projection of every rank; 0 for a rank that takes no part."""
    weights: "Weights"
    activation: Activation
    slope: float
    rectified: bool = True


@dataclass(frozen=True)
class Round:
    """All ranks after one round."""

    cells: list[Tensor]
    """(cells, H·F) z of every rank."""
    weights: dict[str, Tensor]
    """(M, H) weights of every neighbourhood by name, in the order of its triples."""


class RankAttention(nn.Module):
    """One round of attention on the given ranks (the formula is in `nn/hearing.py`)."""

    def __init__(
        self,
        in_channels: Sequence[int],
        out_channels: int,
        heads: int = 1,
        *,
        ranks: Sequence[int] = (0, 1, 2),
        neighbourhoods: Sequence[str] = ("nodes", "lower", "upper", "faces", "cofaces"),
        shared: bool = True,
        weights: "Weights" = "softmax",
        activation: Activation = "leaky_relu",
        negative_slope: float = 0.2,
        voices: Voices = "one",
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        self.ranks, self.shared, self.kernel = tuple(ranks), shared, kernel
        self.plan = _plan(
            heads * out_channels, heads, ranks, names=neighbourhoods, shared=shared,
            weights=weights, activation=activation, slope=negative_slope, voices=voices,
        )  # fmt: skip
        self.project = nn.ModuleList(
            nn.Linear(width, columns) if columns else nn.Identity()
            for width, columns in zip(in_channels, self.plan.columns, strict=True)
        )

    def forward(self, cells: Sequence[Tensor], complexes: CellComplex) -> Round:
        """cells: (cells, in_channels) of every rank."""
        joints = [project(values) for project, values in zip(self.project, cells, strict=True)]
        plan = self.plan
        first = joints[self.ranks[0]]
        if compilable(self.kernel, first, plan.activation):
            from cell_attention.nn.kernels.hearing import FusedRound

            near = [complexes.neighbourhood(*NEIGHBOURHOODS[step.name]) for step in plan.hearings]
            summed = [incidences(complexes, rank, of) for rank, of, _ in plan.sums]
            structure = (
                [
                    [part.numpy() for part in (n.sender, n.shared, n.start, n.heard, n.blocks)]
                    for n in near
                ],
                [(to.numpy(), of.numpy()) for to, of in summed],
            )
            (*found,) = FusedRound.apply(plan, structure, *joints)  # type: ignore[no-untyped-call]
            names = [hearing.name for hearing in plan.hearings]
            return Round(list(found[:3]), dict(zip(names, found[3:], strict=True)))
        totals = [joint[:, : plan.width] for joint in joints]
        weights = {}
        for hearing in plan.hearings:
            heard = self._hear(hearing, joints, complexes)
            totals[hearing.rank] = totals[hearing.rank] + heard.messages.flatten(1)
            weights[hearing.name] = heard.weights
        for rank, other, column in plan.sums:
            to, of = incidences(complexes, rank, other)
            values = joints[other][:, column : column + plan.width]
            totals[rank] = totals[rank] + segment_sum(values[of], to, totals[rank].size(0))
        return Round(totals, weights)

    def _hear(self, hearing: Hearing, joints: Sequence[Tensor], complexes: CellComplex) -> "Heard":
        plan, own, shared = self.plan, joints[hearing.rank], joints[hearing.through]

        def columns(joint: Tensor, first: int, width: int) -> Any:
            return None if first < 0 else joint[:, first : first + width]

        def by_head(joint: Tensor, first: int) -> Any:
            found = columns(joint, first, plan.width)
            return None if found is None else found.unflatten(1, (plan.heads, -1))

        from cell_attention.nn.hearing import hear

        rank, side = NEIGHBOURHOODS[hearing.name]
        return hear(
            complexes.neighbourhood(rank, side),
            by_head(own, hearing.value),
            by_head(shared, hearing.shared_value),
            query=columns(own, hearing.query, plan.heads),
            key=columns(own, hearing.key, plan.heads),
            shared_key=columns(shared, hearing.shared_key, plan.heads),
            weights=plan.weights,
            activation=plan.activation,
            negative_slope=plan.slope,
            rectified=plan.rectified,
        )


def _plan(
    width: int,
    heads: int,
    ranks: Sequence[int],
    *,
    names: Sequence[str],
    shared: bool,
    weights: "Weights",
    activation: Activation,
    slope: float,
    voices: Voices,
) -> Plan:
    """Give every term of the round its columns in the joint projection of a rank."""
    columns = [width if rank in ranks else 0 for rank in range(3)]

    taken: dict[tuple[int, object], int] = {}
    each = voices == "each"

    def take(rank: int, count: int, purpose: object, *, wanted: bool = True) -> int:
        """Return the first of the columns of a rank for a purpose, which are new the first time."""
        if not wanted:
            return -1
        if (rank, purpose) not in taken:
            taken[rank, purpose] = columns[rank]
            columns[rank] += count
        return taken[rank, purpose]

    hearings = []
    scored = weights != "sum"
    for name, (rank, side) in NEIGHBOURHOODS.items():
        through = rank + (1 if side == "upper" else -1)
        if name not in names or rank not in ranks:
            continue
        known = shared and through in ranks
        value = take(rank, width, name if each else "all")
        shared_value = take(through, width, (rank, through) if each else "all", wanted=known)
        hearings.append(
            Hearing(
                name, rank, through,
                value=value,
                query=take(rank, heads, (name, "query"), wanted=scored),
                key=take(rank, heads, (name, "key"), wanted=scored),
                shared_value=shared_value,
                shared_key=take(through, heads, (name, "shared key"), wanted=known and scored),
                message=frozenset({(rank, value), (through, shared_value)}),
            )
        )  # fmt: skip
    sums = [
        (rank, of, take(of, width, (rank, of) if each else "all"))
        for name, pairs in SUMS.items()
        for rank, of in pairs
        if name in names and rank in ranks and of in ranks
    ]
    return Plan(
        width, heads, tuple(hearings), tuple(sums), (columns[0], columns[1], columns[2]), weights,
        activation, slope,
    )  # fmt: skip
