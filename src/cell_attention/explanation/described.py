"""What a prediction loses without a descriptor: the importance of the features of whole complexes.

    r_d = y(G) − y(G with d unknown)        and for all of them together y(G) − y(G with none known)

Only the branch that reads descriptors has to be computed again, so that it costs next to nothing
beside taking cells away.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cell_attention.explanation.importance import margin
from cell_attention.nn.network import Trace
from cell_attention.nn.rank_network import RankNetwork


@dataclass(frozen=True)
class Described:
    """What margins lose without features of whole complexes."""

    each: Tensor
    """(graphs, features) without one of them."""
    together: Tensor
    """(graphs,) without all of them."""


@torch.no_grad()
def described(network: nn.Module, trace: Trace, outputs: Tensor, *, classes: bool) -> Described:
    """Compute what the margins of a trace lose; of networks that read no descriptors nothing."""
    features = trace.complexes.complex_features
    branch = network.descriptors if isinstance(network, RankNetwork) else None
    if branch is None or features is None or not isinstance(network, RankNetwork):
        count = len(trace.complexes)
        return Described(trace.logits.new_zeros(count, 0), trace.logits.new_zeros(count))
    made_of, known = branch.composition(trace.complexes), branch.read
    share = 1.0 / network.num_branches
    whole, before = margin(trace.logits.double(), outputs, classes), known(made_of, features)

    def lost(without: Tensor) -> Tensor:
        changed = trace.logits.double() + share * (known(made_of, without) - before).double()
        return whole - margin(changed, outputs, classes)

    each = []
    for column in range(features.size(1)):
        without = features.clone()
        without[:, column] = float("nan")
        each.append(lost(without))
    return Described(torch.stack(each, 1), lost(torch.full_like(features, float("nan"))))
