"""Cell complexes: chordless cycles, `CellComplex`, lifting, algebra, interop."""

from typing import TYPE_CHECKING

from cell_attention._lazy import lazy_names

if TYPE_CHECKING:
    from cell_attention.topology.colours import node_colours as node_colours
    from cell_attention.topology.complex import CellComplex as CellComplex
    from cell_attention.topology.lifting import lift as lift
    from cell_attention.topology.limits import Limits as Limits

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "CellComplex": ".complex",
        "Limits": ".limits",
        "lift": ".lifting",
        "node_colours": ".colours",
    },
)
