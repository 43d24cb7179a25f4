"""The pictures of docs/gallery.md, into docs/pictures/gallery/; `make gallery` runs it.

PROTEINS must be found (`CELL_ATTENTION_DATA`) or is downloaded. The street network and the karate
club are the pictures of docs/examples.md; what comes from results/ is drawn by `make tables`.
"""

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import cross_val_predict

from cell_attention import CANClassifier, NetworkConfig, draw, explain, load_dataset, train
from cell_attention.evaluation.figures import picture
from cell_attention.explanation import Explanation
from cell_attention.explanation.drawing import drawing_of
from cell_attention.explanation.picture import Paint, panel, text, whole
from cell_attention.explanation.scale import colour

DOCS = Path(__file__).parents[1] / "docs"
OUT = DOCS / "pictures" / "gallery"
TABLE = DOCS / "notebooks" / "mutagenicity.csv"
MOLECULES = {
    "naphthalene": "c1ccc2ccccc2c1",
    "caffeine": "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
    "morphine": "CN1CCC23c4c5ccc(O)c4OC2C(O)C=CC3C1C5",
    "testosterone": "CC12CCC3C(CCC4=CC(=O)CCC34C)C1CCC2O",
}
SUBJECT = "O=[N+]([O-])c1ccc2ccc3cccc4ccc1c2c34"
"""1-nitropyrene, of which attention and pooling are shown."""
STEP = 260
"""Pixels of one of several graphs side by side."""


def molecules() -> None:
    """Molecules with their polygons, filled by size."""
    for name, smiles in MOLECULES.items():
        draw(smiles).save(OUT / f"{name}.svg")


def protein() -> None:
    """The protein of PROTEINS with most polygons among those of 40 to 60 nodes."""
    graphs = load_dataset("PROTEINS")
    sizes = graphs.node_complex.bincount(minlength=len(graphs))
    polygons = graphs.polygon_complex.bincount(minlength=len(graphs))
    best = int((polygons * ((sizes >= 40) & (sizes <= 60))).argmax())
    draw(graphs[best : best + 1]).save(OUT / "protein.svg")


def layers() -> None:
    """Pooling and attention by layer, of a network of the paper's design that drops two edges of
    five in every layer.
    """
    network = NetworkConfig.edges(ratio=0.6)
    model = train("MUTAG", network=network, training={"epochs": 60})
    (one,) = explain(model, SUBJECT, measure=False)
    one.strip().save(OUT / "pooling.svg")
    parts: list[str] = []
    for row, side in enumerate(("lower", "upper")):
        for place, layer in enumerate(one.layers):
            weights = getattr(layer, side).mean(1).float()
            senders = getattr(layer, f"{side}_pairs")[1]
            heard = torch.zeros(one.complexes.num_edges).index_add(0, senders, weights)
            title = f"layer {place + 1}, by {side} neighbours"
            left, top = STEP * place, STEP * row + 24
            parts.append(text(left + STEP / 2, top - 6, title, anchor="middle"))
            parts.append(f"<g transform='translate({left} {top})'>{received(one, heard)}</g>")
    width, height = STEP * len(one.layers), 2 * STEP + 10
    found = whole("".join(parts), "attention received, by layer", width=width, height=height)
    found.save(OUT / "attention.svg")


def received(one: Explanation, heard: torch.Tensor) -> str:
    """Draw one graph with its edges coloured by the attention that they receive."""
    share = (heard / heard.max().clamp(min=1e-9)).tolist()
    paint = Paint(
        tuple(colour(value) for value in share),
        tuple(3.0 + 8.0 * value for value in share),
        (None,) * one.complexes.num_polygons,
    )
    drawing = drawing_of(one.complexes, one.molecule)
    return panel(drawing, paint, width=STEP, height=STEP - 30, plain=True)


def calibration() -> None:
    """Predicted probabilities of held-out molecules beside how many are mutagenic."""
    with TABLE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    smiles, truth = (np.array([row[name] for row in rows]) for name in ("smiles", "mutagenic"))
    predicted = cross_val_predict(CANClassifier(), smiles, truth, cv=5, method="predict_proba")
    sure, right = predicted[:, 1], truth == "yes"
    points = []
    for low, high in pairwise(np.linspace(0, 1, 6)):
        inside = (sure >= low) & ((sure < high) | (high == 1))
        if inside.any():
            points.append((sure[inside].mean(), right[inside].mean(), inside.sum()))
    said, true, counts = zip(*points, strict=True)
    with picture(OUT / "calibration.svg", "186 molecules of MUTAG, held out in five folds") as axes:
        axes.plot([0, 1], [0, 1], color="#9aa7b4", linestyle=":", label="as it should be")
        axes.plot(said, true, "o-", color="#1f4e79", label="every fifth of the range")
        for x, y, count in zip(said, true, counts, strict=True):
            axes.annotate(f"  {count} molecules", (x, y), fontsize=8, va="top")
        axes.set_xlabel("mean predicted probability that a molecule is mutagenic")
        axes.set_ylabel("share that is mutagenic")
        axes.legend(loc="upper left", fontsize=8, edgecolor="none")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for drawn in (molecules, protein, layers, calibration):
        drawn()
