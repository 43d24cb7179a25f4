"""One round of attention on every rank: each cell hears others through the cells that they share.

For a receiver e, a sender k and a cell c that both are incident to (see `neighbourhoods`):

    m_kc    = φ_m(V h_k + C h_c)                        what k says through c
    α_e,kc  = softmax_kc φ_a(qᵀh_e + sᵀh_k + tᵀh_c)      how much e listens to it, per head
    z_e     = W h_e + b + Σ_kc α_e,kc m_kc + Σ_c C h_c

The last sum is over the faces of e (the nodes of an edge, the edges of a polygon) and over its
cofaces. With voices "one" every rank has one V, and C is the V of the shared cell's rank: a cell
says the same to all who hear it. With "each", every neighbourhood has its own V and C, and a shared
cell speaks with the same C for itself and beside others. Every neighbourhood has its own q, s and
t. Without C and t, with "each", with the identity for φ_m and with qᵀ = a₁ᵀV, sᵀ = a₂ᵀV this is the
paper's layer (App. A).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from cell_attention.nn.config import Activation, Kernel
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.functional import segment_softmax, segment_sum
from cell_attention.nn.kernels import compilable
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.neighbourhoods import Neighbourhood, Side, incidences

Weights = Literal["softmax", "gate", "sum"]
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
class Heard:
    """What every edge heard from its neighbours, and how much it listened to each."""

    messages: Tensor
    """(E, H, F); zeros for an edge without neighbours: it has heard nothing."""
    weights: Tensor
    """(M, H) attention of every pair; those of one receiver sum to 1."""


def hear(
    neighbourhood: Neighbourhood,
    values: Tensor,
    shared_values: Tensor | None = None,
    *,
    query: Tensor,
    key: Tensor,
    shared_key: Tensor | None = None,
    weights: Weights = "softmax",
    activation: Activation = "leaky_relu",
    negative_slope: float = 0.2,
    rectified: bool = True,
) -> Heard:
    """Weigh what every cell hears in a neighbourhood, and add it up.

    values: (cells, H, F) V h. shared_values: (shared cells, H, F) C h, or None for zeros. query,
    key: (cells, H) and shared_key: (shared cells, H) or None, the terms of the score. weights:
    "softmax" of a receiver's scores; "gate", the sigmoid of each, which can count; or "sum", ones.
    rectified: whether φ_m is a ReLU, else the identity.
    """
    sender, shared, heard = neighbourhood.sender, neighbourhood.shared, neighbourhood.heard
    messages = values[sender]
    if shared_values is not None:
        messages = messages + shared_values[shared]
    if rectified:
        messages = messages.relu()
    receiver, count = neighbourhood.receiver, values.size(0)
    if weights == "sum":
        used = values.new_ones(heard.size(0), values.size(1))
    else:
        keys = key[sender] if shared_key is None else key[sender] + shared_key[shared]
        logits = pointwise(activation, negative_slope)(query[receiver] + keys[heard])
        used = logits.sigmoid() if weights == "gate" else segment_softmax(logits, receiver, count)
    return Heard(segment_sum(used.unsqueeze(-1) * messages[heard], receiver, count), used)


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
class IncidenceSum:
    """Which column of the projection of rank `of` is summed at the cells of `rank`."""

    rank: int
    of: int
    column: int


@dataclass(frozen=True)
class Plan:
    """The blocks of columns of a round. Each rank's first block is its own term W h + b."""

    width: int
    heads: int
    hearings: tuple[Hearing, ...]
    sums: tuple[IncidenceSum, ...]
    columns: tuple[int, int, int]
    """Number of columns of the projection of every rank; 0 for a rank that takes no part."""
    weights: Weights
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
    """One round of attention on the given ranks (see the formula above)."""

    def __init__(
        self,
        in_channels: Sequence[int],
        out_channels: int,
        heads: int = 1,
        *,
        ranks: Sequence[int] = (0, 1, 2),
        neighbourhoods: Sequence[str] = ("nodes", "lower", "upper", "faces", "cofaces"),
        shared: bool = True,
        weights: Weights = "softmax",
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
            summed = [incidences(complexes, step.rank, step.of) for step in plan.sums]
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
        for step in plan.sums:
            to, of = incidences(complexes, step.rank, step.of)
            values = joints[step.of][:, step.column : step.column + plan.width]
            total = segment_sum(values[of], to, totals[step.rank].size(0))
            totals[step.rank] = totals[step.rank] + total
        return Round(totals, weights)

    def _hear(self, hearing: Hearing, joints: Sequence[Tensor], complexes: CellComplex) -> Heard:
        plan, own, shared = self.plan, joints[hearing.rank], joints[hearing.through]

        def columns(joint: Tensor, first: int, width: int) -> Any:
            return None if first < 0 else joint[:, first : first + width]

        def by_head(joint: Tensor, first: int) -> Any:
            found = columns(joint, first, plan.width)
            return None if found is None else found.unflatten(1, (plan.heads, -1))

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
    weights: Weights,
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
        IncidenceSum(rank, of, take(of, width, (rank, of) if each else "all"))
        for name, pairs in SUMS.items()
        for rank, of in pairs
        if name in names and rank in ranks and of in ranks
    ]
    return Plan(
        width, heads, tuple(hearings), tuple(sums), (columns[0], columns[1], columns[2]), weights,
        activation, slope,
    )  # fmt: skip
