"""The picture of docs/network.md: which cells a node, an edge and a polygon hear, and through what.

Two rings that share an edge, drawn three times; the receiver is dark, the cells that it hears are
coloured by neighbourhood, and the cells through which it hears them are hatched.
"""

from pathlib import Path
from typing import Any

import matplotlib
import networkx as nx
import numpy as np
from matplotlib.patches import Polygon

from cell_attention import CellComplex, lift
from cell_attention.nn.rank_attention import NEIGHBOURHOODS

matplotlib.use("svg")

from matplotlib import pyplot

OUT = Path(__file__).parents[1] / "docs" / "pictures" / "who-hears-whom.svg"
DARK, LOWER, UPPER, PLAIN = "#12344d", "#d9822b", "#2a9d8f", "#c4c9cf"
PANELS = (
    ("a node hears nodes\nthrough edges", {"nodes": UPPER}),
    ("an edge hears edges\nthrough nodes and polygons", {"lower": LOWER, "upper": UPPER}),
    ("a polygon hears polygons\nthrough edges (by choice)", {"polygons": LOWER}),
)
"""Title, and the colour of every neighbourhood."""


def fused_rings() -> tuple[CellComplex, np.ndarray]:
    """A pentagon and a hexagon that share an edge, with a tail; and where the nodes are."""
    graph = nx.Graph([(0, 9)])
    graph.add_nodes_from(range(10))
    nx.add_cycle(graph, [0, 1, 2, 3, 4])
    nx.add_cycle(graph, [3, 2, 5, 6, 7, 8])
    ordered = nx.Graph()
    ordered.add_nodes_from(range(10))
    ordered.add_edges_from(graph.edges)
    places = {
        0: (-1.64, 0.0), 1: (-1.05, 0.81), 2: (-0.1, 0.5), 3: (-0.1, -0.5), 4: (-1.05, -0.81),
        5: (0.77, 1.0), 6: (1.63, 0.5), 7: (1.63, -0.5), 8: (0.77, -1.0), 9: (-2.4, 0.0),
    }  # fmt: skip
    return lift(ordered, 6), np.array([places[node] for node in range(10)])


def draw_panel(
    axes: Any, complexes: CellComplex, at: np.ndarray, colours: dict[str, str], receiver: int
) -> None:
    """Draw the complex with the cells that the receiver hears."""
    heard: dict[tuple[int, int], str] = {}
    through: set[tuple[int, int]] = set()
    rank = NEIGHBOURHOODS[next(iter(colours))][0]
    for name, colour in colours.items():
        rank, side = NEIGHBOURHOODS[name]
        shared_rank = rank + (1 if side == "upper" else -1)
        for one, sender, shared in complexes.neighbourhood(rank, side).triples.T.tolist():
            if one == receiver:
                heard.setdefault((rank, sender), colour)
                through.add((shared_rank, shared))
    edge_nodes = complexes.edge_nodes.T.tolist()
    for polygon in range(complexes.num_polygons):
        ring = complexes.polygon_edges[0][complexes.polygon_edges[1] == polygon].tolist()
        walk = nx.find_cycle(nx.Graph([edge_nodes[edge] for edge in ring]))
        corners = [at[a] for a, _ in walk]
        colour = DARK if (rank, receiver) == (2, polygon) else heard.get((2, polygon), "#f1f3f5")
        hatch = "///" if (2, polygon) in through else None
        axes.add_patch(
            Polygon(corners, facecolor=colour, edgecolor="#9aa2ab", hatch=hatch, linewidth=0)
        )
    for edge, (a, b) in enumerate(edge_nodes):
        colour = DARK if (rank, receiver) == (1, edge) else heard.get((1, edge), PLAIN)
        style = (0, (1.2, 0.8)) if (1, edge) in through else "solid"
        width = 5 if (1, edge) in heard or colour == DARK else 3
        axes.plot(*at[[a, b]].T, color=colour, linewidth=width, linestyle=style, zorder=2)
        if (1, edge) in through:
            axes.plot(*at[[a, b]].T, color=DARK, linewidth=1.2, linestyle=style, zorder=3)
    for node, (x, y) in enumerate(at):
        colour = DARK if (rank, receiver) == (0, node) else heard.get((0, node), "white")
        ring_colour = DARK if (0, node) in through or colour == DARK else "#9aa2ab"
        axes.scatter(
            x, y, s=130, color=colour, edgecolors=ring_colour,
            linewidths=2.4 if (0, node) in through else 1.2, zorder=4,
        )  # fmt: skip


def main() -> None:
    """Write the picture; the same bytes every time."""
    matplotlib.rcParams.update({"svg.hashsalt": "cell-attention", "font.size": 10})
    complexes, at = fused_rings()
    figure, panels = pyplot.subplots(1, 3, figsize=(11, 3.3))
    receivers = 2, complexes.edge_nodes.T.tolist().index([2, 3]), 0
    for axes, (title, colours), receiver in zip(panels, PANELS, receivers, strict=True):
        draw_panel(axes, complexes, at, colours, receiver)
        axes.margins(0.12)
        axes.set_title(title, fontsize=10.5)
        axes.set_aspect("equal")
        axes.axis("off")
    figure.text(
        0.5, 0.03,
        "dark: who hears; orange: heard through a cell of lower rank, green: of higher rank; "
        "dark rims, dots and hatching: the cells that are shared",
        ha="center", fontsize=9, color="#444444",
    )  # fmt: skip
    figure.savefig(OUT, metadata={"Date": None}, bbox_inches="tight")


if __name__ == "__main__":
    main()
