"""The branch of the network that counts what surrounds the nodes.

What is within some steps of a node, and how often:

    x_C = s Σ_(r, c, k) E_hash(r, c, k) / √n_C   over colours c of round r and k = 1 … count of c
    y_C = w φ(norm(x_C)) + b

Attention blurs: what distinguishes two molecules may be one group of atoms among a hundred. Exact
counts of the surroundings of every node (see `topology/colours.py`) keep it; the kernels of
Weisfeiler and Leman compare the same. n_C is the number of terms: large complexes do not shout.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from cell_attention.nn.config import Kernel, NetworkConfig
from cell_attention.nn.functional import segment_sum
from cell_attention.nn.norm import NormedActivation
from cell_attention.topology.colours import surroundings
from cell_attention.topology.complex import CellComplex

BUCKETS, WIDTH = 32768, 16
"""Rows and columns of E; codes that fall into the same row share it."""
SCALE = 4.0
"""s, so that a row learns as fast as other weights do."""


class SurroundingCounts(nn.Module):
    """Outputs from the counts of what is within 0 … `config.counts` steps of the nodes."""

    def __init__(self, config: NetworkConfig, outputs: int, kernel: Kernel) -> None:
        super().__init__()
        self.rounds, self.dropout, self.kernel = config.counts, config.head_dropout, kernel
        self.table = nn.EmbeddingBag(BUCKETS, WIDTH, mode="sum")
        nn.init.normal_(self.table.weight, std=0.01)
        self.norm = NormedActivation.from_config(config, WIDTH, kernel)
        self.last = nn.Linear(WIDTH, outputs)

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)"""
        weight, rate = self.table.weight, self.dropout if self.training else 0.0
        start, codes = surroundings(complexes, self.rounds)
        rows = torch.from_numpy((codes % np.uint64(BUCKETS)).astype(np.int64)).to(weight.device)
        first = torch.from_numpy(start).to(weight.device)
        terms = first.diff()
        share = (SCALE / terms.clamp(min=1).to(weight).sqrt()).repeat_interleave(terms)
        share = dropout(share, rate, self.training)
        if self.kernel == "torch":  # EmbeddingBag has no second derivatives
            complex_of = torch.arange(terms.size(0), device=weight.device).repeat_interleave(terms)
            x = segment_sum(share[:, None] * weight[rows], complex_of, terms.size(0))
        else:
            x = self.table(rows, first[:-1], per_sample_weights=share)
        found: Tensor = self.last(self.norm(x, rate))
        return found
