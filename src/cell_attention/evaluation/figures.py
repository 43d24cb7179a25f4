"""SVG files that are small, searchable and reproducible byte by byte."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cell_attention._files import replacing


@contextmanager
def picture(path: Path, title: str) -> Iterator[Any]:
    """Yield axes to draw on, and save them afterwards; the same drawing gives the same bytes."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # Text that can be searched, and no random names.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cell-attention"}):
        figure = Figure(figsize=(7.0, 4.0), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        yield axes
        with replacing(path) as unfinished:
            figure.savefig(unfinished, format="svg", metadata={"Date": None, "Creator": None})
