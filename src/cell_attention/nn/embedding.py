"""`Embedding`: what `CellAttentionNetwork.embed` returns, such as for fingerprints."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Embedding:
    """The input of the head, and the edges that it was read out from."""

    edges: Tensor
    """(K, F) features of the edges that survive the last layer."""
    edge_complex: Tensor
    """(K,) their complexes."""
    complexes: Tensor
    """(num_complexes, ·) h_C, the fingerprint of every complex."""
