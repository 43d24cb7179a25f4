"""Explanations as JSON and as CSV, for programs."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from torch import Tensor

from cell_attention.explanation.drawing import cycles
from cell_attention.explanation.faithfulness import MEASURES, STEPS, Compared

if TYPE_CHECKING:
    from cell_attention.explanation.explanation import Explanation
    from cell_attention.explanation.layers import Layer

COLUMNS = ("row", "graph", "cell", "number", "nodes", "importance", "survives", "scores")
"""`survives`: number of layers that keep an edge; `scores`: its pooling score in each layer."""


def record(explanation: "Explanation") -> dict[str, Any]:
    """Return everything in an explanation; cells in the order of its complex."""
    graph = explanation.complexes
    return {
        "output": explanation.output,
        "explained": explanation.name,
        "predictions": explanation.predictions.tolist(),
        "margin": explanation.margin,
        "nodes": explanation.nodes.tolist(),
        "edge_nodes": graph.edge_nodes.T.tolist(),
        "edges": explanation.edges.tolist(),
        "polygon_nodes": cycles(graph),
        "polygons": explanation.polygons.tolist(),
        "descriptors": explanation.descriptors,
        "described": explanation.described,
        "layers": [_layer(layer) for layer in explanation.layers],
        "faithfulness": faithfulness_of(explanation.faithfulness),
    }


def _layer(layer: "Layer") -> dict[str, Any]:
    return {
        "edges": layer.edges.tolist(),
        "lower_pairs": layer.lower_pairs.T.tolist(),
        "lower": layer.lower.tolist(),
        "upper_pairs": layer.upper_pairs.T.tolist(),
        "upper": layer.upper.tolist(),
        "score": None if layer.score is None else layer.score.tolist(),
        "survivors": layer.survivors.tolist(),
    }


def faithfulness_of(found: Compared | None) -> dict[str, Any] | None:
    """Return the measures and the curves of one graph."""
    if found is None:
        return None
    every = {field.name: getattr(found, field.name) for field in fields(found)}
    numbers = {
        measure: {name: float(getattr(one, measure)) for name, one in every.items()}
        for measure in MEASURES
    }
    curves = {
        kind: {name: getattr(one, kind)[0].tolist() for name, one in every.items()}
        for kind in ("deletion", "insertion")
    }
    return {**numbers, "shares": list(STEPS), **curves}


def table(explanations: "Sequence[Explanation]", named: Sequence[tuple[int, str]] = ()) -> str:
    """Return CSV text: one line per edge, polygon, node and descriptor of every graph.

    named: row and name of every graph; by default its position and no name.
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, one in enumerate(explanations):
        place, name = named[number] if named else (number, "")
        writer.writerows((place, name, *row) for row in _rows(one))
    return written.getvalue()


def _rows(one: "Explanation") -> Iterator[tuple[str, ...]]:
    survived = [set(layer.survivors.tolist()) for layer in one.layers]
    scores = [
        dict(zip(layer.edges.tolist(), _texts(layer.score), strict=True))
        for layer in one.layers
        if layer.score is not None
    ]
    ends = one.complexes.edge_nodes.T.tolist()
    for edge, (nodes, carried) in enumerate(zip(ends, _texts(one.edges), strict=True)):
        left = str(sum(edge in layer for layer in survived))
        seen = " ".join(layer[edge] for layer in scores if edge in layer)
        yield "edge", str(edge), _joined(nodes), carried, left, seen
    around = cycles(one.complexes)
    for polygon, (nodes, carried) in enumerate(zip(around, _texts(one.polygons), strict=True)):
        yield "polygon", str(polygon), _joined(nodes), carried, "", ""
    for node, carried in enumerate(_texts(one.nodes)):
        yield "node", str(node), str(node), carried, "", ""
    for name, lost in one.descriptors.items():
        yield "descriptor", name, "", f"{lost:.6g}", "", ""


def plain(thing: Any, digits: int = 17) -> Any:
    """Convert for JSON: round numbers to so many digits, and replace NaN and infinity by null."""
    if isinstance(thing, dict):
        return {key: plain(value, digits) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [plain(value, digits) for value in thing]
    if not isinstance(thing, float):
        return thing
    return float(f"{thing:.{digits}g}") if math.isfinite(thing) else None


def _texts(values: Tensor) -> list[str]:
    return [f"{value:.6g}" for value in values.tolist()]


def _joined(nodes: Sequence[int]) -> str:
    return "-".join(map(str, nodes))
