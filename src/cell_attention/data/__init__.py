"""Data sets, molecules and tables to `CellComplex`."""

from typing import TYPE_CHECKING

from cell_attention._lazy import lazy_names

if TYPE_CHECKING:
    from cell_attention.data.lifting import lift as lift
    from cell_attention.data.sources import load_dataset as load_dataset

__getattr__, __all__ = lazy_names(__name__, {"lift": ".lifting", "load_dataset": ".sources"})
