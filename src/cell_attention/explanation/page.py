"""Explanations as one HTML file that needs nothing else: no server, no network, no other file.

Coordinates and weights are stored once per graph and drawn by the page's own script (`assets/`).
"""

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from torch import Tensor

from cell_attention.explanation.document import POLICY, SCRIPTS, asset, document
from cell_attention.explanation.drawing import drawing_of
from cell_attention.explanation.explanation import Explanation
from cell_attention.explanation.faithfulness import Compared
from cell_attention.explanation.layers import Layer
from cell_attention.explanation.records import faithfulness_of, plain
from cell_attention.explanation.scaffold_cores import Core
from cell_attention.explanation.scale import scale
from cell_attention.explanation.totals import (
    GroupTotal,
    ScaffoldTotal,
    cores,
    group_totals,
    groups_in,
    totals_of,
)
from cell_attention.inference.model_folder import Model

DESCRIPTORS = 10
"""Largest number of descriptors that are listed beside a graph."""
MOST_UNREAD = 1000
"""Rows that are listed at most although they are no graphs."""
DIGITS = 4
"""Digits of every number that is not a whole number."""


@dataclass(frozen=True)
class Known:
    """What the source and the model say about a graph."""

    row: int
    """Row of the graph in the source."""
    name: str
    text: str
    """The molecule as written in the source; empty if the graph is not a molecule."""
    output: int
    """The class, label or value that is explained."""
    prediction: str
    """The prediction as `predict` writes it."""
    said: str
    """The prediction as a sentence."""
    confidence: float | None
    """Probability of what is predicted; values have none."""
    truth: str
    right: bool | None
    """Whether the prediction is correct; None if the truth is unknown or a number."""
    warning: str


@dataclass(frozen=True)
class Unread:
    """A row of the source that is no graph."""

    row: int
    text: str
    """What it says in the place of the molecule."""
    reason: str


@dataclass(frozen=True)
class Nearest:
    """A training molecule near to an explained one."""

    smiles: str
    name: str
    similarity: float
    target: str


@dataclass(frozen=True)
class ReportEntry:
    """A graph of the report, and what its prediction rests on."""

    known: Known
    explanation: Explanation
    nearest: tuple[Nearest, ...] = ()
    """The training molecules most similar to it, the nearest first."""

    def record(self) -> dict[str, Any]:
        """Return everything for programs."""
        core = next(iter(cores([self.explanation])))
        return {
            **asdict(self.known),
            **self.explanation.to_dict(),
            "groups": groups_in(self.explanation),
            "scaffold": None if core is None else core.smiles,
            "nearest": [asdict(one) for one in self.nearest],
        }


def page(
    title: str,
    about: str,
    entries: Sequence[ReportEntry],
    *,
    model: Model,
    unread: Sequence[Unread] = (),
) -> str:
    """Return the whole HTML file; about: a sentence under the title."""
    explanations = [entry.explanation for entry in entries]
    found = cores(explanations)
    shared = totals_of(explanations, found)
    many = {row.scaffold for row in shared if len(row.members) > 1}
    data = page_record(model, explanations)
    data |= totals_record(group_totals(explanations), shared)
    data["graphs"] = [
        graph_record(entry, core if core is not None and core.smiles in many else None)
        for entry, core in zip(entries, found, strict=True)
    ]
    data |= {"unread": [asdict(one) for one in unread[:MOST_UNREAD]], "left_out": len(unread)}
    script = "\n".join(asset(name) for name in SCRIPTS)
    return document(
        title=title, about=about, policy=POLICY, head=f"<style>{asset('report.css')}</style>",
        data=plain(data, DIGITS), scripts=f"<script>{script}</script>",
    )  # fmt: skip


def page_record(model: Model, explanations: Sequence[Explanation]) -> dict[str, Any]:
    """Return what the script of the page must know about the model; it has no graphs yet."""
    return {
        "max_polygon": model.config.max_polygon,
        "values": model.task == "values",
        "heads": model.config.heads if any(one.layers for one in explanations) else (),
        "scale": {theme: scale(theme) for theme in ("light", "dark")},
        "summary": summary(explanations),
        "graphs": [],
    }


def totals_record(
    groups: Sequence[GroupTotal], scaffolds: Sequence[ScaffoldTotal]
) -> dict[str, list[dict[str, Any]]]:
    """Return what functional groups and scaffolds carry, for JSON."""
    return {
        "groups": [{**asdict(row), "mean": row.mean} for row in groups],
        "scaffolds": [{**asdict(row), "mean": row.mean} for row in scaffolds],
    }


def summary(explanations: Sequence[Explanation]) -> dict[str, dict[str, float]] | None:
    """Average the faithfulness over all graphs, if it was measured."""
    found = [one.faithfulness for one in explanations if one.faithfulness is not None]
    return Compared.joined(found).means() if found else None


def graph_record(entry: ReportEntry, core: Core | None = None) -> dict[str, Any]:
    """Return what the script of the page draws for one graph.

    core: the scaffold that it shares with other molecules, on which it is drawn.
    """
    one = entry.explanation
    drawing = drawing_of(one.complexes, one.molecule, core)
    elements = None
    if drawing.molecule is not None:
        elements = [atom.GetSymbol() for atom in drawing.molecule.GetAtoms()]
    return {
        **asdict(entry.known),
        "points": np.rint(100 * drawing.points).astype(int).ravel().tolist(),
        "elements": elements,
        "labels": drawing.labels,
        "edges": drawing.edges.ravel().tolist(),
        "orders": drawing.orders,
        "wedges": drawing.wedges,
        "polygons": drawing.polygons,
        "explained": one.name,
        "margin": one.margin,
        "edge": one.edges.tolist(),
        "polygon": one.polygons.tolist(),
        "node": one.nodes.tolist(),
        "descriptors": _largest(one.descriptors),
        "described": one.described,
        "layers": [_layer(layer) for layer in one.layers],
        "nearest": [asdict(near) for near in entry.nearest],
        "trust": faithfulness_of(one.faithfulness),
    }


def _largest(descriptors: dict[str, float]) -> list[tuple[str, float]]:
    """Return the descriptors that carry most, in either direction, the largest first."""
    return sorted(descriptors.items(), key=lambda item: -abs(item[1]))[:DESCRIPTORS]


def _layer(layer: Layer) -> dict[str, Any]:
    """Encode weights as bytes in the order of the pairs, which follows from the cells."""
    every = layer.survivors.numel() == layer.edges.numel()
    return {
        "lower": _bytes(layer.lower),
        "upper": _bytes(layer.upper),
        "score": None if layer.score is None else layer.score.tolist(),
        "kept": None if every else layer.survivors.tolist(),
    }


def _bytes(weights: Tensor) -> str:
    """Encode 0…1 as 0…255 in base64."""
    values = (255 * weights.detach().double().clamp(0, 1)).round().cpu().numpy()
    return base64.b64encode(values.astype(np.uint8).tobytes()).decode("ascii")
