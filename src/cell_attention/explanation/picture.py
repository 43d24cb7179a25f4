"""Pictures as SVG text: coloured edges and filled polygons, and the graph on top of them.

Molecules are drawn by RDKit, other graphs as lines and dots.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import rdBase
from rdkit.Chem.Draw import rdMolDraw2D

from cell_attention._files import write_whole
from cell_attention.errors import InputError
from cell_attention.explanation.drawing import Drawing, Integers
from cell_attention.explanation.layout import Points

WIDTH, HEIGHT = 520, 400
MARGIN = 26.0
LONGEST_BOND, LONGEST_EDGE = 46.0, 90.0
"""Pixels of an edge in small molecules and graphs; larger ones shrink to fit."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
FONT = "font-family='system-ui, sans-serif'"


@dataclass(frozen=True)
class Picture:
    """An SVG picture; notebooks show it."""

    svg: str
    """Its text."""

    def save(self, path: str | Path) -> None:
        """Write the picture to a file that ends in .svg."""
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise InputError(f"path must end in .svg, got {path}")
        if not path.resolve().parent.is_dir():
            raise InputError(f"{path}: the folder {path.resolve().parent} does not exist")
        write_whole(path, self.svg)

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True)
class Paint:
    """How the cells of a graph look."""

    edges: tuple[str | None, ...]
    """Colour under every edge, or None."""
    widths: tuple[float, ...]
    """Width of that colour, in pixels at full size."""
    polygons: tuple[str | None, ...]
    gone: frozenset[int] = frozenset()
    """Edges that are drawn as removed."""


def panel(
    drawing: Drawing, paint: Paint, *, width: int = WIDTH, height: int = HEIGHT,
    plain: bool = False, numbers: bool = False,
) -> str:  # fmt: skip
    """Draw one graph as the content of an SVG of this size; `plain` draws a molecule as lines.

    numbers: whether nodes have their numbers beside them.
    """
    if plain or drawing.molecule is None or paint.gone:
        longest = LONGEST_EDGE if drawing.molecule is None else LONGEST_BOND
        points = _fitted(drawing.points, width=width, height=height, longest=longest)
        named = _numbers(points) if numbers else ()
        return "".join([*_under(drawing, paint, points), *_lines(drawing, paint, points), *named])
    points, body = _molecule(drawing, width, height, numbers=numbers)
    return "".join([*_under(drawing, paint, points), body])


def whole(inside: str, title: str, *, width: int = WIDTH, height: int = HEIGHT) -> Picture:
    """Complete a picture, with a title for screen readers."""
    return Picture(
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}' role='img' aria-label='{_escaped(title)}'>"
        f"<title>{_escaped(title)}</title>"
        f"<rect width='{width}' height='{height}' fill='#ffffff' rx='6'/>{inside}</svg>\n"
    )


def text(x: float, y: float, said: str, *, size: int = 12, anchor: str = "start") -> str:
    """Return a line of text."""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' fill='#222222' "
        f"text-anchor='{anchor}'>{_escaped(said)}</text>"
    )


def _escaped(said: str) -> str:
    """Escape a text for XML, which does not allow control characters."""
    return escape(printable(said), quote=True)


def printable(said: str) -> str:
    """Replace every character that cannot be shown."""
    return _CONTROL.sub("\ufffd", said)


def _under(drawing: Drawing, paint: Paint, points: Points) -> Iterator[str]:
    """Draw polygons, the large ones first, then edges; what carries most is painted last."""
    order = sorted(range(len(drawing.polygons)), key=lambda p: -len(drawing.polygons[p]))
    for number in order:
        fill = paint.polygons[number]
        if fill is not None:
            corners = " ".join(
                f"{x:.1f},{y:.1f}" for x, y in points[list(drawing.polygons[number])]
            )
            yield f"<polygon points='{corners}' fill='{fill}' fill-opacity='0.75'/>"
    for number in sorted(range(len(drawing.edges)), key=lambda e: paint.widths[e]):
        stroke = paint.edges[number]
        if stroke is not None and number not in paint.gone:
            yield _line(points, drawing.edges[number], stroke=stroke, width=paint.widths[number])


def _lines(drawing: Drawing, paint: Paint, points: Points) -> Iterator[str]:
    """Draw a graph as lines: edges, then nodes or their labels."""
    for number, ends in enumerate(drawing.edges):
        if number in paint.gone:
            yield _line(points, ends, stroke="#b8b8b8", width=1.0, more=" stroke-dasharray='2 3'")
        else:
            for shift in _SHIFTS.get(drawing.orders[number], (0.0,)):
                yield _line(
                    _beside(points, ends, shift), np.array([0, 1]), stroke="#333333", width=1.4
                )
    radius = 3.2 if len(points) < 60 else 2.0
    for (x, y), label in zip(points, drawing.labels, strict=True):
        if label is not None:
            half = 4.0 * len(label[1])
            yield f"<circle cx='{x:.1f}' cy='{y:.1f}' r='7' fill='#ffffff' fill-opacity='0.85'/>"
            yield text(x - half, y + 4, label[0], size=11, anchor="end") if label[0] else ""
            yield text(x, y + 4, label[1], size=11, anchor="middle")
            yield text(x + half, y + 4, label[2], size=11) if label[2] else ""
        elif drawing.molecule is None:
            yield f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius}' fill='#333333'/>"


_SHIFTS = {2.0: (-2.0, 2.0), 3.0: (-3.0, 0.0, 3.0)}
"""Sideways shift in pixels of every line of a double and a triple bond."""


def _beside(points: Points, ends: Integers, shift: float) -> Points:
    """Move the two ends of an edge to the side."""
    both: Points = points[ends]
    across = (both[1] - both[0])[::-1] * (-1.0, 1.0)
    moved: Points = both + shift * across / max(float(np.linalg.norm(across)), 1e-9)
    return moved


def _line(points: Points, ends: Integers, *, stroke: str, width: float, more: str = "") -> str:
    (x1, y1), (x2, y2) = points[ends]
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{stroke}' "
        f"stroke-width='{width:.1f}' stroke-linecap='round'{more}/>"
    )


def _fitted(points: Points, *, width: float, height: float, longest: float) -> Points:
    """Scale points to pixels and centre them."""
    if not len(points):
        return points
    low, extent = points.min(0), np.ptp(points, axis=0)
    room = np.array([width, height]) - 2 * MARGIN
    scale = float(min(longest, *(room / np.maximum(extent, 1e-9))))
    placed: Points = (points - low - extent / 2) * scale + np.array([width, height]) / 2
    return placed


def _numbers(points: Points) -> Iterator[str]:
    for node, (x, y) in enumerate(points):
        yield text(x + 5, y - 5, str(node), size=9)


def _molecule(drawing: Drawing, width: int, height: int, *, numbers: bool) -> tuple[Points, str]:
    """Return the positions of the atoms in RDKit's picture, and the picture without its frame."""
    drawer = rdMolDraw2D.MolDraw2DSVG(width, height)
    options: Any = drawer.drawOptions()
    options.clearBackground = False
    options.padding = MARGIN / min(width, height)
    options.fixedBondLength = LONGEST_BOND
    options.prepareMolsBeforeDrawing = False
    options.bondLineWidth = 1.6
    options.useBWAtomPalette()
    options.addAtomIndices = numbers
    with rdBase.BlockLogs():
        try:
            ready: Any = rdMolDraw2D.PrepareMolForDrawing(drawing.molecule, addChiralHs=False)
        except (ValueError, RuntimeError):  # RDKit cannot kekulise its rings
            ready = drawing.molecule
        drawer.DrawMolecule(ready)
    drawer.FinishDrawing()
    places = [drawer.GetDrawCoords(atom) for atom in range(ready.GetNumAtoms())]
    _, _, body = drawer.GetDrawingText().partition("<!-- END OF HEADER -->")
    inside = body.rpartition("</svg>")[0]
    return np.array([(place.x, place.y) for place in places]), inside.replace("\n", "")
