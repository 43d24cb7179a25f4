"""A bag of nodes: the baseline that sees no structure."""

from torch import Tensor, nn

from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.functional import segment_sum
from cell_attention.topology.complex import CellComplex


class Bag(nn.Module):
    """Σ_i x_i through an MLP, a baseline without any structure (Errica et al. 2020)."""

    def __init__(
        self, config: NetworkConfig, node_features: int, edge_features: int, outputs: int
    ) -> None:
        super().__init__()
        self.head = nn.Sequential(
            nn.Linear(node_features, config.head_hidden),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.head_hidden, outputs),
        )

    def forward(self, complexes: CellComplex) -> Tensor:
        """(num_complexes, outputs)."""
        total = segment_sum(
            complexes.node_features, complexes.node_complex, complexes.num_complexes
        )
        logits: Tensor = self.head(total)
        return logits
