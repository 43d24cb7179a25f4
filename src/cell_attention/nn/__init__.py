"""Start or lift → (cell attention → edge pooling → readout) × L → head."""

from typing import TYPE_CHECKING, Any

from cell_attention._lazy import load_lazily

if TYPE_CHECKING:
    from cell_attention.nn.attend import attend as attend
    from cell_attention.nn.attention import CellAttention as CellAttention
    from cell_attention.nn.config import NetworkConfig as NetworkConfig
    from cell_attention.nn.edge_network import EdgeNetwork as EdgeNetwork
    from cell_attention.nn.hearing import hear as hear
    from cell_attention.nn.lift import AttentionalLift as AttentionalLift
    from cell_attention.nn.neighbour_attention import NeighbourAttention as NeighbourAttention
    from cell_attention.nn.network import CellAttentionNetwork as CellAttentionNetwork
    from cell_attention.nn.parts import register_attention as register_attention
    from cell_attention.nn.parts import register_pooling as register_pooling
    from cell_attention.nn.parts import register_readout as register_readout
    from cell_attention.nn.pooling import EdgePooling as EdgePooling
    from cell_attention.nn.rank_attention import RankAttention as RankAttention
    from cell_attention.nn.rank_network import RankNetwork as RankNetwork
    from cell_attention.nn.surrounding_counts import SurroundingCounts as SurroundingCounts

_HOMES = {
    "AttentionalLift": ".lift",
    "CellAttention": ".attention",
    "CellAttentionNetwork": ".network",
    "EdgeNetwork": ".edge_network",
    "EdgePooling": ".pooling",
    "NeighbourAttention": ".neighbour_attention",
    "NetworkConfig": ".config",
    "RankAttention": ".rank_attention",
    "RankNetwork": ".rank_network",
    "SurroundingCounts": ".surrounding_counts",
    "attend": ".attend",
    "hear": ".hearing",
    "register_attention": ".parts",
    "register_pooling": ".parts",
    "register_readout": ".parts",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return load_lazily(__name__, _HOMES, name)
