"""Predictions as a table: its columns, its cells, and the metrics of known targets."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from cell_attention.data.file_format import Decimal
from cell_attention.data.molecules.files import Row
from cell_attention.errors import InputError
from cell_attention.inference.chunks import Chunk
from cell_attention.inference.computed import Computed, Counts
from cell_attention.inference.familiarity import warnings_with_values
from cell_attention.inference.model_folder import Model
from cell_attention.inference.neighbours import Near, Neighbours, TrainingMolecule
from cell_attention.inference.prediction import Predictions, predict_complexes
from cell_attention.inference.rows import OpenedRows

if TYPE_CHECKING:
    from cell_attention.inference.known_targets import KnownTargets


NEAREST = ("nearest_similarity", "nearest_training", "nearest_target")
"""The columns of the nearest training molecule: how similar it is, which it is, and its targets."""

_text = "{:.6g}".format
"""Writes a number into a cell."""


def shown_classes(model: Model, positive: str | None = None) -> tuple[int, ...]:
    """Return the classes whose probability is shown: all, or of two classes one.

    positive: the name of that one; by default the second.
    """
    labels = model.class_names if model.task == "classes" else ()
    if positive is None:
        return (1,) if len(labels) == 2 else tuple(range(len(labels)))
    if len(labels) != 2:
        what = f"{len(labels)} classes" if labels else model.task
        raise InputError(f"positive chooses one of two classes, but the model predicts {what}")
    if positive not in labels:
        raise InputError(f"positive must be {labels[0]!r} or {labels[1]!r}, got {positive!r}")
    return (labels.index(positive),)


def prediction_header(model: Model, positive: str | None = None) -> tuple[str, ...]:
    """Return the names of the prediction columns; positive: as in `shown_classes`.

    A probability has the name of its class, unless this is 1 of the classes 0 and 1.
    """
    several, shown = len(model.members) > 1, shown_classes(model, positive)
    labels = model.class_names if model.task == "classes" else ()
    found: list[str] = []
    for column, name in enumerate(model.target_columns):
        stem = f"{name}_" if name else ""
        found.append(f"{stem}prediction")
        if model.margins and model.margins[column] is not None:
            found += [f"{stem}low", f"{stem}high"]
        if model.task == "labels" or (labels == ("0", "1") and shown == (1,)):
            found.append(f"{stem}probability")
        else:
            found += [f"{stem}probability_{labels[number]}" for number in shown]
        if several:
            found.append(f"{stem}spread")
    if model.neighbours is not None:
        found += NEAREST if model.neighbours.names is not None else NEAREST[:1]
    return tuple(found)


def made_columns(model: Model, positive: str | None = None) -> dict[str, bool]:
    """Return the prediction columns, and whether they hold numbers or words."""
    return {
        name: name not in NEAREST[1:]
        and (model.task != "classes" or not name.endswith("prediction"))
        for name in prediction_header(model, positive)
    }


def prediction_cells(
    model: Model,
    predictions: Predictions,
    *,
    positive: str | None = None,
    nearest: Sequence[Near] = (),
) -> list[tuple[str, ...]]:
    """Return the cells of every graph, in the columns of `prediction_header`.

    nearest: the training molecules nearest to the graphs, if they are known.
    For classes, the spread is that of the probability of the predicted class.
    """
    decided, values = predictions.decided(model), predictions.values
    spread, shown = predictions.spread, list(shown_classes(model, positive))
    rows = []
    for graph in range(values.size(0)):
        row: list[str] = []
        if model.task == "classes":
            chosen = int(decided[graph])
            row.append(model.class_names[chosen])
            row += [_text(value) for value in values[graph, shown].tolist()]
            row += [] if spread is None else [_text(float(spread[graph, chosen]))]
        else:
            for column in range(values.size(1)):
                value = float(values[graph, column])
                if model.task == "labels":
                    row.append(str(int(decided[graph, column])))
                row.append(_text(value))
                margin = model.margins[column] if model.margins else None
                if margin is not None:
                    row += [_text(value - margin), _text(value + margin)]
                row += [] if spread is None else [_text(float(spread[graph, column]))]
        if model.neighbours is not None:
            near = nearest[graph] if nearest else None
            row += _nearest_cells(model, model.neighbours, near)
        rows.append(tuple(row))
    return rows


def _nearest_cells(model: Model, neighbours: Neighbours, near: Near | None) -> list[str]:
    """Return the cells of the columns NEAREST that the model has."""
    count = 1 if neighbours.names is None else len(NEAREST)
    if near is None:
        return [""] * count
    known = neighbours.named(near)
    similarity = f"{near.similarity:.3f}"
    return [similarity] if known is None else [similarity, known.text, stated_targets(model, known)]


def stated_targets(model: Model, known: TrainingMolecule) -> str:
    """Return the known targets of a training molecule, of several columns with their names."""
    names = model.target_columns
    if len(names) == 1:
        return known.targets[0] if known.targets else ""
    pairs = zip(names, known.targets, strict=False)
    return "; ".join(f"{name} {target}" for name, target in pairs if target)


@dataclass
class PredictionTable:
    """The rows of a source with their predictions, warnings and errors."""

    header: tuple[str, ...]
    """The columns of the source, then the prediction columns, then warning and error."""
    rows: list[tuple[str, ...]] = field(default_factory=list)
    """The cells of every row; empty if they were written to a file instead."""
    seen: Counts = field(default_factory=Counts)
    metrics: dict[str, Any] = field(default_factory=dict)
    """Metrics of the predictions, if the source has all target columns."""
    values: Tensor = field(default_factory=lambda: torch.empty(0, 0))
    """(rows, ·) probabilities or values; NaN where there is no prediction."""
    made: dict[str, bool] = field(default_factory=dict)
    """The prediction columns, and whether they hold numbers or words."""

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows, of those with a prediction and of those with a warning."""
        return {name: getattr(self.seen, name) for name in ("rows", "predicted", "warned")}

    @property
    def unread(self) -> int:
        """Number of rows that could not be read, also if they are left out."""
        return self.seen.unread

    @classmethod
    def of(cls, model: Model, columns: tuple[str, ...], positive: str | None = None) -> Self:
        """Return the empty table of a source with these columns."""
        made = made_columns(model, positive)
        header = (*made, "warning", "error")
        require_free(columns, header)
        return cls((*columns, *header), made=made)

    def record(self, cells: Sequence[str]) -> dict[str, str | float | None]:
        """Return a row for JSON: predictions as numbers, null where there is none, and the cells of
        the source as they are; a name that is repeated there gets a number.
        """
        found: dict[str, str | float | None] = {}
        for name, cell in zip(self.header, cells, strict=True):
            number, key = 1, name
            while key in found:
                number += 1
                key = f"{name}_{number}"
            if name in self.made:
                found[key] = _number(cell) if self.made[name] else cell or None
            else:
                found[key] = cell
        return found


def _number(cell: str) -> float | None:
    """Read a number that was written into a cell; null if it is not finite."""
    number = float(cell or "nan")
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class Predicting:
    """The prediction for every row; positive: as in `shown_classes`."""

    positive: str | None = None

    def __call__(self, model: Model, chunk: Chunk) -> Computed:
        """Predict the rows of a chunk."""
        found = predict_complexes(model, chunk.complexes)
        cells = prediction_cells(model, found, positive=self.positive, nearest=chunk.nearest)
        warnings = warnings_with_values(
            model, chunk.warnings, place=chunk.place, values=found.values
        )
        made = made_columns(model, self.positive)
        return Computed(
            made, cells, found.values.numpy(), chunk.place, chunk.reasons, list(warnings)
        )


def predict_rows(
    model: Model,
    opened: OpenedRows,
    table: PredictionTable,
    *,
    skip_bad: bool,
    positive: str | None = None,
) -> Iterator[tuple[str, ...]]:
    """Yield the cells of every row, predicted chunk by chunk; see `table_rows`."""
    task = Predicting(positive)
    computed = ((chunk.rows, task(model, chunk)) for chunk in opened.chunks)
    return table_rows(model, opened, table, computed=computed, skip_bad=skip_bad)


def table_rows(
    model: Model,
    opened: OpenedRows,
    table: PredictionTable,
    *,
    computed: Iterable[tuple[Sequence[Row], Computed]],
    skip_bad: bool,
) -> Iterator[tuple[str, ...]]:
    """Yield the cells of every row; fill in the counts, values and metrics of `table` on the
    way.
    """
    columns, names = opened.header, model.truth_names
    places = [columns.index(name) for name in names if name in columns]
    known = _known_targets(model, opened.decimal) if len(places) == len(names) else None
    values = [torch.empty(0, model.outputs, dtype=torch.float64)]
    for rows, found in computed:
        kept = []
        for cells, place in table.seen.lines(rows, found, len(columns), skip_bad=skip_bad):
            kept.append(-1 if place is None else place)
            if place is not None and known is not None:
                value = torch.from_numpy(found.values[place])
                known.add(value, [cells[column] for column in places])
            yield cells
        missing = torch.full((1, model.outputs), math.nan, dtype=torch.float64)
        values.append(torch.cat([torch.from_numpy(found.values), missing])[kept])
    table.values = torch.cat(values)
    table.metrics = known.metrics() if known is not None else {}


def _known_targets(model: Model, decimal: Decimal) -> "KnownTargets":
    from cell_attention.inference.known_targets import KnownTargets  # for scored sources only

    return KnownTargets(model, decimal)


def require_free(header: tuple[str, ...], made: tuple[str, ...]) -> None:
    """Refuse a source that already has one of the columns to write."""
    taken = [name for name in made if name in header]
    if taken:
        raise InputError(f"the source already has a column {taken[0]!r}; rename it")
