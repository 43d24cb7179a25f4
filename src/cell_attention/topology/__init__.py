"""Cell complexes: chordless cycles, `CellComplex`, lifting, algebra, interop."""

from typing import TYPE_CHECKING, Any

from cell_attention._lazy import load_lazily

if TYPE_CHECKING:
    from cell_attention.topology.colours import node_colours as node_colours
    from cell_attention.topology.complex import CellComplex as CellComplex
    from cell_attention.topology.lifting import lift as lift
    from cell_attention.topology.limits import Limits as Limits

_HOMES = {
    "CellComplex": ".complex",
    "Limits": ".limits",
    "lift": ".lifting",
    "node_colours": ".colours",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return load_lazily(__name__, _HOMES, name)
