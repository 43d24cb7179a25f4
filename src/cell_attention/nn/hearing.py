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

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from cell_attention.nn.config import Activation
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.functional import segment_softmax, segment_sum
from cell_attention.topology.neighbourhoods import Neighbourhood

Weights = Literal["softmax", "gate", "sum"]


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
