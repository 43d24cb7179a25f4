"""Data sets, molecules and tables to `CellComplex`."""

from typing import TYPE_CHECKING, Any

from cell_attention._lazy import load_lazily

if TYPE_CHECKING:
    from cell_attention.data.lifting import lift as lift
    from cell_attention.data.sources import load_dataset as load_dataset

_HOMES = {"lift": ".lifting", "load_dataset": ".sources"}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return load_lazily(__name__, _HOMES, name)
