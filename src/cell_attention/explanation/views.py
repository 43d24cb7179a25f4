"""The pictures for users: a complex, an explanation, the steps of its pooling."""

from html import escape
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cell_attention.data.lifting import lift
from cell_attention.explanation.drawing import Drawing, drawing_of
from cell_attention.explanation.picture import HEIGHT, Paint, Picture, panel, text, whole
from cell_attention.explanation.scale import SIZES, STEPS, colour, scale, size_colour
from cell_attention.explanation.subjects import separated
from cell_attention.topology.complex import CellComplex

if TYPE_CHECKING:
    from cell_attention.explanation.explanation import Explanation

NARROW, WIDE = 3.0, 15.0
"""Pixels under an edge that carries nothing, and under the one that carries most."""
FOOT = 46
"""Pixels for the legend."""
STEP = 260
"""Pixels of one picture of a strip."""


def draw(graph: Any, max_polygon: int | None = None) -> Picture:
    """Draw one graph with its polygons, filled by their size: the paper's first figure.

    graph: a CellComplex of one graph, or anything that `lift` takes.
    """
    given, molecules = separated(graph)
    complexes = given if isinstance(given, CellComplex) else lift(given, max_polygon)
    drawing = drawing_of(complexes, molecules[0] if molecules else None)
    bare = (None,) * len(drawing.edges)
    sizes = [len(polygon) for polygon in drawing.polygons]
    paint = Paint(bare, (0.0,) * len(bare), tuple(size_colour(size) for size in sizes))
    inside = panel(drawing, paint, height=HEIGHT - FOOT)
    return whole(inside + _sizes(sizes), f"graph with {len(sizes)} polygons")


def explained(explanation: "Explanation", *, numbers: bool = False) -> Picture:
    """Draw the graph with the shares of its cells."""
    drawing = drawing_of(explanation.complexes, explanation.molecule)
    inside = panel(drawing, painted(explanation), height=HEIGHT - FOOT, numbers=numbers)
    said = f"{explanation.name}, {explanation.prediction:.3g}"
    return whole(inside + _legend(explanation), f"what the prediction rests on: {said}")


def painted(explanation: "Explanation") -> Paint:
    """Colour edges and polygons on one scale, whose end is the cell that carries most."""
    edges, polygons = (relative(values, largest(explanation)) for values in _carried(explanation))
    return Paint(
        tuple(colour(value) for value in edges),
        tuple(NARROW + (WIDE - NARROW) * abs(value) for value in edges),
        tuple(colour(value) for value in polygons),
    )


def relative(values: Tensor, most: float) -> list[float]:
    """Divide values by the largest, to −1…1; all are zero if the largest is zero."""
    found: list[float] = (values / most if most > 0 else torch.zeros_like(values)).tolist()
    return found


def largest(explanation: "Explanation") -> float:
    """Return the largest absolute share of an edge or polygon."""
    every = torch.cat(_carried(explanation)).abs()
    return float(every.max()) if every.numel() else 0.0


def strip(explanation: "Explanation") -> Picture:
    """Draw the pooling step by step (the paper's pooling figure): the edges left after every layer,
    coloured by their score, and the polygons that are still whole.
    """
    drawing = drawing_of(explanation.complexes, explanation.molecule)
    edges = range(len(drawing.edges))
    every = frozenset(edges)
    steps = [("input", every, dict.fromkeys(edges, 0.0))]
    for number, layer in enumerate(explanation.layers, start=1):
        score = torch.zeros_like(layer.edges) if layer.score is None else layer.score
        scores = relative(score, float(score.abs().max()) if score.numel() else 0.0)
        left = frozenset(layer.survivors.tolist())
        by_edge = dict(zip(layer.edges.tolist(), scores, strict=True))
        said = f"{len(left)} of {len(edges)} edges" if layer.score is not None else "no pooling"
        steps.append((f"after layer {number}: {said}", left, by_edge))
    parts, width = [], STEP * len(steps)
    for place, (title, left, scores_of) in enumerate(steps):
        paint = Paint(
            tuple(colour(scores_of.get(edge, 0.0)) for edge in edges),
            tuple(NARROW + 6.0 * abs(scores_of.get(edge, 0.0)) for edge in edges),
            _whole_polygons(drawing, left),
            every - left,
        )
        inside = panel(drawing, paint, width=STEP, height=STEP - 40, plain=True)
        parts.append(f"<g transform='translate({STEP * place} 24)'>{inside}</g>")
        parts.append(text(STEP * (place + 0.5), 18, title, anchor="middle"))
    parts.append(_bar(width / 2 - 60, STEP, 120, low="low", high="high pooling score of its layer"))
    return whole("".join(parts), "pooling, step by step", width=width, height=STEP + 24)


def _whole_polygons(drawing: Drawing, left: frozenset[int]) -> tuple[str | None, ...]:
    """Fill the polygons all of whose edges are left."""
    places = {frozenset(ends): number for number, ends in enumerate(drawing.edges.tolist())}
    found = []
    for nodes in drawing.polygons:
        steps = zip(nodes, (*nodes[1:], nodes[0]), strict=True)
        intact = all(places[frozenset(step)] in left for step in steps)
        found.append(size_colour(len(nodes)) if intact else None)
    return tuple(found)


def html(explanation: "Explanation") -> str:
    """Return the picture, its numbers and how faithful they are, for notebooks."""
    atoms = [] if explanation.molecule is None else explanation.molecule.GetAtoms()
    elements = [atom.GetSymbol() for atom in atoms] or [""] * explanation.complexes.num_nodes
    rows = []
    for edge in explanation.top_edges(5).tolist():
        u, v = explanation.complexes.edge_nodes[:, edge].tolist()
        rows.append((f"{elements[u]}{u}–{elements[v]}{v}", float(explanation.edges[edge])))
    for polygon in explanation.polygons.argsort(descending=True, stable=True)[:3].tolist():
        size = int(explanation.complexes.polygon_sizes[polygon])
        rows.append((f"polygon {polygon} of {size} edges", float(explanation.polygons[polygon])))
    listed = "".join(
        f"<tr><td>{escape(name)}</td><td style='text-align:right'>{value:+.3f}</td></tr>"
        for name, value in rows
    )
    return (
        f"<div><p><b>{escape(explanation.name)}</b>: {explanation.prediction:.3f}; margin "
        f"{explanation.margin:+.3f}</p>{explanation.picture().svg}"
        f"<table><tr><th>carries most</th><th>share</th></tr>{listed}</table>"
        f"<p>{escape(trust(explanation))}</p></div>"
    )


def trust(explanation: "Explanation") -> str:
    """Say how faithful an explanation is."""
    found = explanation.faithfulness
    if found is None:
        return "Faithfulness was not measured. Attention is a weight, not a cause."
    fall, chance = float(found.ours.fidelity_plus), float(found.chance.fidelity_plus)
    return (
        f"Without the best fifth of the edges the prediction falls by {fall:.3f}; without a random "
        f"fifth by {chance:.3f}. Attention is a weight, not a cause."
    )


def _legend(explanation: "Explanation") -> str:
    left, top, width = 150.0, HEIGHT - 34.0, 220.0
    return "".join(
        [
            _bar(left, top, width, low="speaks against", high="speaks for it"),
            text(
                left + width / 2,
                top + 26,
                f"what they carry of the margin of {explanation.name}, ±{largest(explanation):.2g}",
                size=11,
                anchor="middle",
            ),
        ]
    )


def _bar(left: float, top: float, width: float, *, low: str, high: str) -> str:
    """Draw the scale, with words at its ends."""
    step = width / STEPS
    shades = (
        f"<rect x='{left + number * step:.2f}' y='{top:.1f}' width='{step + 0.4:.2f}' height='9' "
        f"fill='{shade}'/>"
        for number, shade in enumerate(scale())
    )
    words = text(left - 8, top + 9, low, anchor="end"), text(left + width + 8, top + 9, high)
    return "".join([*shades, *words])


def _carried(explanation: "Explanation") -> tuple[Tensor, Tensor]:
    return explanation.edges, explanation.polygons


def _sizes(sizes: list[int]) -> str:
    """Draw a legend of the sizes that occur, four in a row."""
    found, most = [], len(SIZES) + 2
    sizes = [min(size, most) for size in sizes]  # the last colour is for all larger ones
    for place, size in enumerate(sorted(set(sizes))):
        more = " or more" if size == most else ""
        left, top = 20 + 124 * (place % 4), HEIGHT - 40 + 20 * (place // 4)
        found.append(
            f"<rect x='{left}' y='{top}' width='13' height='13' fill='{size_colour(size)}' "
            "fill-opacity='0.75'/>"
        )
        found.append(
            text(left + 19, top + 11, f"{sizes.count(size)} of {size}{more} edges", size=11)
        )
    return "".join(found)
