"""A directed message passing network (Yang et al. 2019): messages over bonds in both directions,
none of which returns along the bond that it came by.

    h⁰_vw = τ(W_i [x_v ‖ e_vw])
    h_vw  ← τ(h⁰_vw + W_m Σ_{k ∈ N(v)∖w} h_kv)          in every further layer, with the same W_m
    h_v   = τ(W_a [x_v ‖ Σ_{k ∈ N(v)} h_kv] + b)
    y     = FFN(Σ_v h_v)
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.functional import segment_sum
from cell_attention.topology.complex import CellComplex


class DirectedMessagePassing(nn.Module):
    """The network of Yang et al.; its layers share one map and so have one width.

    Deviation: the features of atoms and bonds are ours, without chirality and mass.
    """

    def __init__(
        self, config: NetworkConfig, node_features: int, edge_features: int, outputs: int
    ) -> None:
        super().__init__()
        width = config.hidden[0]
        if set(config.hidden) != {width}:
            raise InputError(
                f"hidden must be one width in all layers of 'dmpnn', got {config.hidden}"
            )
        self.steps = len(config.hidden)
        self.bond = nn.Linear(node_features + edge_features, width, bias=False)
        # A single layer passes no message.
        self.message = nn.Linear(width, width, bias=False) if self.steps > 1 else nn.Identity()
        self.atom = nn.Linear(node_features + width, width)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Sequential(
            nn.Dropout(config.dropout),
            nn.Linear(width, config.head_hidden),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.head_hidden, outputs),
        )

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        atoms = self.atoms(complexes)
        total = segment_sum(atoms, complexes.node_complex, complexes.num_complexes)
        logits: Tensor = self.head(total)
        return logits

    def atoms(self, complexes: CellComplex) -> Tensor:
        """(N, width) vectors of the atoms after all messages."""
        nodes, (low, high) = complexes.node_features, complexes.edge_nodes
        # Bond e runs from its lower node to the higher one in row e, and back in row E + e.
        sender, receiver = torch.cat([low, high]), torch.cat([high, low])
        given = nodes.index_select(0, sender)
        if complexes.edge_features is not None:
            bonds = complexes.edge_features.to(nodes.dtype)
            given = torch.cat([given, bonds.repeat(2, 1)], dim=1)
        first = self.bond(given)
        hidden = functional.relu(first)
        for _ in range(self.steps - 1):
            arrived = segment_sum(hidden, receiver, complexes.num_nodes)
            others = arrived.index_select(0, sender) - hidden.roll(complexes.num_edges, 0)
            hidden = self.dropout(functional.relu(first + self.message(others)))
        arrived = segment_sum(hidden, receiver, complexes.num_nodes)
        atoms = functional.relu(self.atom(torch.cat([nodes, arrived], dim=1)))
        dropped: Tensor = self.dropout(atoms)
        return dropped
