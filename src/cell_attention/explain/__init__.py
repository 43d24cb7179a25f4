"""What a prediction rests on: attention, pooling and readout traced back to edges and polygons."""

from typing import TYPE_CHECKING

from cell_attention._lazy import lazy_names

if TYPE_CHECKING:
    from cell_attention.explain.explanation import Explanation as Explanation
    from cell_attention.explain.explanation import explain as explain

__getattr__, __all__ = lazy_names(
    __name__, {"Explanation": ".explanation", "explain": ".explanation"}
)
