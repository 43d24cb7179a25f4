"""The graphs of a report: read, predict, keep the most confident, explain."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from rdkit import Chem
from torch import Tensor

from cell_attention.data.molecules.molecule_column import name_column
from cell_attention.errors import InputError
from cell_attention.explanation.explanation import explanations
from cell_attention.explanation.page import Known, Nearest, ReportEntry
from cell_attention.explanation.picture import printable
from cell_attention.explanation.subjects import Subjects, molecules_behind
from cell_attention.inference.chunks import Chunk
from cell_attention.inference.familiarity import warnings_with_values
from cell_attention.inference.known_targets import target_in
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import predict_complexes
from cell_attention.inference.prediction_table import stated_targets

NEAREST = 3
"""Training molecules that are listed beside each explained one."""


@dataclass(frozen=True)
class Piece:
    """Some graphs, and what is known about them."""

    subjects: Subjects
    known: tuple[Known, ...]
    ranks: tuple[float, ...]
    """Confidence or predicted value; graphs with the highest are kept."""

    def only(self, rows: list[int]) -> "Piece":
        """Select some of the graphs."""
        complexes, molecules = self.subjects.complexes, self.subjects.molecules
        return Piece(
            Subjects(complexes[torch.tensor(rows)], tuple(molecules[row] for row in rows)),
            tuple(self.known[row] for row in rows),
            tuple(self.ranks[row] for row in rows),
        )


def target_of(model: Model, name: str | None) -> int:
    """Look up a label or value of the model by name; the first by default."""
    names = model.target_columns
    if name is None:
        return 0
    if name not in names:
        listed = ", ".join(one for one in names if one) or "one without a name"
        raise InputError(f"target {name!r} is not predicted by the model; it predicts {listed}")
    return names.index(name)


def class_of(model: Model, name: str | None) -> int | None:
    """Look up the class that colours are for or against: of two the second by default; None if
    there are none, or more and no name is given.
    """
    labels = model.class_names if model.task == "classes" else ()
    if name is None:
        return 1 if len(labels) == 2 else None
    if not labels:
        raise InputError(f"class {name!r}: the model predicts {model.task}; choose by target")
    if name not in labels:
        raise InputError(f"class must be one of {', '.join(labels)}, got {name!r}")
    return labels.index(name)


def collected(
    model: Model, columns: tuple[str, ...], chunks: Iterable[Chunk], *, target: int, top: int | None
) -> list[Piece]:
    """Collect the `top` most confident predictions of a source, in its order; all if it is None."""
    pieces: list[Piece] = []
    for chunk in chunks:
        if len(chunk.complexes):
            pieces.append(_piece(model, columns, chunk, target=target))
            pieces = pieces if top is None else _best(pieces, top)
    return pieces


def _best(pieces: list[Piece], top: int) -> list[Piece]:
    """Drop all graphs that are not among the best; among equals keep the first."""
    ranks = torch.tensor([rank for piece in pieces for rank in piece.ranks], dtype=torch.float64)
    if ranks.numel() <= top:
        return pieces
    chosen = set(ranks.argsort(descending=True, stable=True)[:top].tolist())
    found, first = [], 0
    for piece in pieces:
        rows = [row for row in range(len(piece.ranks)) if first + row in chosen]
        first += len(piece.ranks)
        if rows:
            found.append(piece.only(rows))
    return found


def _piece(model: Model, columns: tuple[str, ...], chunk: Chunk, *, target: int) -> Piece:
    predictions = predict_complexes(model, chunk.complexes)
    decided = predictions.decided(model)
    truth = model.truth_names[target]
    naming = name_column(columns)
    known, ranks = [], []
    warnings = warnings_with_values(
        model, chunk.warnings, place=chunk.place, values=predictions.values
    )
    for row, place, warning in zip(chunk.rows, chunk.place, warnings, strict=True):
        if place is None:
            continue
        output, confidence, answer, rank = _answer(
            model, predictions.values[place], decided[place], target=target
        )
        stated = dict(zip(columns, row.cells, strict=False)).get(truth, "").strip()
        called = row.cells[naming].strip() if naming is not None and naming < len(row.cells) else ""
        text = _written(row.text, chunk.molecules[place] if chunk.molecules else None)
        name = called or text or f"{columns[0]} {row.cells[0]}"
        said = _said(model, answer, confidence, target=target)
        number, right = target_in(model, stated), None
        if model.task == "values":
            stated = f"{number:.6g}" if math.isfinite(number) else stated
        elif not math.isnan(number):
            right = number == float(decided[place].flatten()[target])
        known.append(
            Known(
                row.line, printable(name), printable(text), output, answer, said, confidence,
                printable(stated), right, warning,
            )
        )  # fmt: skip
        ranks.append(rank)
    molecules = chunk.molecules or molecules_behind(model, chunk.complexes)
    return Piece(Subjects(chunk.complexes, molecules), tuple(known), tuple(ranks))


def _written(text: str, molecule: Any) -> str:
    """Return a molecule as written in its file; records of an .sdf as SMILES."""
    return Chem.MolToSmiles(molecule) if molecule is not None and "\n" in text else text


def _answer(
    model: Model, values: Tensor, decided: Tensor, *, target: int
) -> tuple[int, float | None, str, float]:
    """Return the explained output, the confidence, the prediction, and the value to rank by."""
    if model.task == "classes":
        output = int(decided)
        sure = float(values[output])
        return output, sure, model.class_names[output], sure
    value = float(values[target])
    if model.task == "labels":
        label = int(decided[target])
        sure = value if label else 1.0 - value
        return target, sure, str(label), sure
    return target, None, f"{value:.6g}", value


def _said(model: Model, answer: str, confidence: float | None, *, target: int) -> str:
    name = model.target_columns[target if model.task != "classes" else 0] or (
        "value" if model.task == "values" else "class"
    )
    sure = "" if confidence is None else f", probability {confidence:.3f}"
    if confidence is not None and confidence < 0.5 and model.thresholds:
        limit = model.thresholds[target if model.task == "labels" else 0]
        sure += f" (the model decides at {limit:.3f})"
    return f"{name} is predicted as {answer}{sure}"


def nearest_training(model: Model, molecule: Any) -> tuple[Nearest, ...]:
    """Look up the training molecules nearest to a molecule, if the model can name them."""
    if molecule is None or model.neighbours is None or model.neighbours.names is None:
        return ()
    found = []
    for near in model.neighbours.nearest_to(molecule, NEAREST):
        known = model.neighbours.names[near.row]
        target = stated_targets(model, known)
        found.append(Nearest(known.smiles, known.name, near.similarity, target))
    return tuple(found)


def entries(
    model: Model,
    pieces: Sequence[Piece],
    *,
    measure: bool,
    explained_class: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[ReportEntry]:
    """Explain the collected graphs.

    explained_class: the class that all of them are explained for, so that a colour means the same
    in every picture; by default the one that is predicted most often.
    """
    chosen = Counter(known.output for piece in pieces for known in piece.known)
    common = chosen.most_common(1)[0][0] if explained_class is None else explained_class
    total, done = sum(len(piece.known) for piece in pieces), 0
    for piece in pieces:
        found = explanations(model, piece.subjects, [common] * len(piece.known), measure=measure)
        for known, explanation in zip(piece.known, found, strict=True):
            near = nearest_training(model, explanation.molecule)
            yield ReportEntry(replace(known, output=common), explanation, near)
            done += 1
            progress(done, total)
