"""What a prediction rests on: attention, pooling and readout traced back to edges and polygons."""

from typing import TYPE_CHECKING, Any

from cell_attention._lazy import load_lazily

if TYPE_CHECKING:
    from cell_attention.explanation.explanation import Explanation as Explanation
    from cell_attention.explanation.explanation import explain as explain
    from cell_attention.explanation.picture import Picture as Picture
    from cell_attention.explanation.views import draw as draw

_HOMES = {
    "Explanation": ".explanation",
    "Picture": ".picture",
    "draw": ".views",
    "explain": ".explanation",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return load_lazily(__name__, _HOMES, name)
