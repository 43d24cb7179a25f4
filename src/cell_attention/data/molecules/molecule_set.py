"""Files of molecules as data sets: graphs with targets, and notes on rows that are left out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rdkit import Chem
from torch import Tensor

from cell_attention.data.dataset import GraphSet, Molecules, Progress
from cell_attention.data.file_format import Columns, FileFormat, OnError
from cell_attention.data.molecules.descriptors import chosen_descriptors
from cell_attention.data.molecules.features import Featuriser, featurise
from cell_attention.data.molecules.files import MoleculeFile, Row
from cell_attention.data.molecules.molecule import traits_of
from cell_attention.data.molecules.molecule_column import name_column
from cell_attention.data.molecules.target_columns import (
    chosen_targets,
    plain_number,
    require_decimal,
)
from cell_attention.data.splits.folds import Fold
from cell_attention.data.targets import Targets, read_targets
from cell_attention.errors import DataError, MoleculeError, counted, printable


def read_molecules(
    path: Path,
    on_error: OnError = "fail",
    *,
    progress: Progress | None = None,
    columns: Columns = Columns(),  # noqa: B008 - frozen, so sharing one is safe
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen, so sharing one is safe
) -> GraphSet:
    """Read the molecules of a file with their targets.

    All rows are read first, so that every row that cannot be read is reported at once.
    """
    file = MoleculeFile(path, columns, file_format)
    candidates = file.targets()
    names, own = chosen_descriptors(columns.descriptors or ())
    featuriser = Featuriser(descriptors=names, columns=own)
    described: list[list[float]] = []
    good: list[Row] = []
    smiles: list[str] = []
    rings: list[int] = []
    bad: dict[int, str] = {}

    def molecules() -> Iterator[Any]:
        for done, row in enumerate(file.rows, 1):
            try:
                molecule = file.reader.molecule(row)
            except MoleculeError as error:
                bad[row.line] = str(error)
            else:
                good.append(row)
                smiles.append(Chem.MolToSmiles(molecule))
                rings.extend(traits_of(molecule)["rings"])
                described.append(file.reader.numbers(row, own))
                yield molecule
            if progress is not None and done % 100 == 0:
                progress(done, file.expected(done))

    made = featurise(molecules(), featuriser, described)
    unread = _unread_descriptors(path, own, described)
    places, decimal = candidates, file_format.decimal
    assumed: tuple[str, ...] = ()
    rows = [tuple(plain_number(cell, decimal) for cell in row.cells) for row in good]
    if columns.targets is None:
        places, assumed = chosen_targets(
            path, file.header, rows, candidates=candidates, task=columns.task
        )
    names = tuple(file.header[place] for place in places)
    cells = [[row[place] for place in places] for row in rows]
    if decimal == ".":
        for number, name in enumerate(names):
            require_decimal(path, name, [row[number] for row in cells])
    targets = read_targets(str(path), names, cells, task=columns.task)
    bad |= {good[i].line: f"{fault} ({smiles[i]})" for i, fault in targets.faults.items()}
    notes = assumed + unread + left_out(path, file.reader.place, bad, on_error=on_error)
    if targets.blank:
        blank = counted(
            len(targets.blank), "molecule without a target is", "molecules without a target are"
        )
        notes += (f"{blank} left out",)
    if not targets.kept:
        raise DataError(f"{path}: there is no molecule in it" + (" with a target" * bool(names)))
    if progress is not None:
        progress(len(good), len(good))
    parts = () if file.split is None else tuple(row.cells[file.split] for row in good)
    found = Molecules(
        tuple(row.line for row in good), tuple(smiles), made.elements, made.bonds, tuple(rings),
        parts, file.molecules, _names(file, good),
    )  # fmt: skip
    record = featuriser.record
    whole = GraphSet(
        printable(path.name),
        made.graphs,
        targets.class_names,
        notes,
        record,
        names,
        found,
        targets.kind,
    )
    chosen = subset(whole, targets.kept)
    graphs = replace(chosen.graphs, targets=targets.values, target_bounds=targets.bounds)
    said = (
        file.remark, _task_note(targets, names), _bounds_note(targets), *_one_sided(targets, names),
        _duplicates(chosen, graphs.exact_targets),
    )  # fmt: skip
    return replace(chosen, graphs=graphs, remarks=tuple(filter(None, said)))


def _names(file: MoleculeFile, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the cells of the column of names; empty if there is none."""
    place = name_column(file.header, file.molecules)
    return () if place is None else tuple(row.cells[place].strip() for row in rows)


def _unread_descriptors(
    path: Path, names: Sequence[str], cells: list[list[float]]
) -> tuple[str, ...]:
    """Return notes on cells of descriptors that are no numbers; refuse columns without any."""
    notes = []
    for number, name in enumerate(names):
        count = sum(row[number] != row[number] for row in cells)
        if count == len(cells):
            raise DataError(f"{path}: the descriptors in column {name!r} must be numbers")
        if count:
            rule = "are blank or no numbers and count as unknown"
            notes.append(f"column {name!r}: {count:,} of {len(cells):,} descriptors {rule}")
    return tuple(notes)


def subset(graph_set: GraphSet, kept: Sequence[int]) -> GraphSet:
    """Select some of the molecules of a set by increasing numbers."""
    chosen, graphs, all_of = torch.tensor(kept), graph_set.graphs, graph_set.molecules
    if all_of is None:
        return replace(graph_set, graphs=graphs[chosen])
    molecules = Molecules(
        tuple(all_of.lines[i] for i in kept),
        tuple(all_of.smiles[i] for i in kept),
        all_of.elements[torch.isin(graphs.node_complex, chosen)],
        all_of.bonds[torch.isin(graphs.edge_complex, chosen)],
        tuple(all_of.rings[i] for i in kept),
        tuple(all_of.parts[i] for i in kept) if all_of.parts else (),
        all_of.column,
        tuple(all_of.names[i] for i in kept) if all_of.names else (),
    )
    return replace(graph_set, graphs=graphs[chosen], molecules=molecules)


def left_out(
    path: Path | str, place: str, bad: dict[int, str], *, on_error: OnError
) -> tuple[str, ...]:
    """Return notes on rows that cannot be read; raise DataError if on_error is "fail"."""
    if not bad:
        return ()
    lines = sorted(bad)
    if on_error == "fail":
        more = f" (and {counted(len(bad) - 1, 'more row', 'more rows')})" if len(bad) > 1 else ""
        raise DataError(
            f"{path}, {place} {lines[0]}: {bad[lines[0]]}{more}; on_error=report lists "
            "such rows and leaves them out, on_error=skip leaves them out"
        )
    count = f"{counted(len(bad), 'row', 'rows')} left out, the first on {place} {lines[0]}"
    if on_error == "skip":
        return (count,)
    return (count, *(f"{place} {line}: {bad[line]}" for line in lines))


def _task_note(targets: Targets, names: tuple[str, ...]) -> str:
    """Say how the targets are interpreted."""
    if not names:
        return ""
    if targets.class_names and targets.values is not None:
        counts = targets.values.bincount(minlength=len(targets.class_names)).tolist()
        pairs = list(zip(targets.class_names, counts, strict=True))
        shown = ", ".join(f"{name}: {count:,}" for name, count in pairs[:6])
        more = ", …" if len(pairs) > 6 else ""
        return f"classes of {names[0]!r} ({shown}{more}); task=regression would take values"
    listed = ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")
    if targets.kind == "labels":
        return f"labels, each 0 or 1: {listed}"
    other = "; task=classification would take classes" if len(names) == 1 else ""
    return f"values of {listed}{other}"


def _bounds_note(targets: Targets) -> str:
    """Say how many values are only bounds."""
    if targets.bounds is None:
        return ""
    count = int(targets.bounds.count_nonzero())
    what = counted(count, "value is a bound", "values are bounds")
    return f"{what} (>, <): a prediction beyond a bound costs nothing, and no metric counts it"


def _one_sided(targets: Targets, names: tuple[str, ...]) -> Iterator[str]:
    """Report labels that are the same in all rows where they are known."""
    if targets.kind == "labels" and targets.values is not None:
        for name, column in zip(names, targets.values.T, strict=True):
            if column[~column.isnan()].unique().numel() < 2:
                yield f"label {name!r} is the same in all rows: nothing can be learned from it"


def _duplicates(found: GraphSet, targets: Tensor | None) -> str:
    """Report duplicate molecules, and how many of them have different exact targets; empty if
    there are none.
    """
    smiles = found.molecules.smiles if found.molecules is not None else ()
    counts = Counter(smiles)
    repeated = {text for text, count in counts.items() if count > 1}
    if not repeated:
        return ""
    rows = sum(counts[text] for text in repeated)
    what = counted(len(repeated), "molecule is", "molecules are")
    said = f"{what} in several rows, {rows:,} rows in all"
    if targets is None:
        return said
    contrary = len(_contrary(smiles, repeated, targets))
    return f"{said}; {contrary:,} of them with different targets"


def _contrary(smiles: tuple[str, ...], repeated: set[str], values: Tensor) -> set[str]:
    """Find molecules with different known values of one target."""
    first: dict[tuple[str, int], float] = {}
    found = set()
    for text, row in zip(smiles, values.double().reshape(len(smiles), -1).tolist(), strict=True):
        for column, value in enumerate(row if text in repeated else ()):
            if value == value and first.setdefault((text, column), value) != value:
                found.add(text)
    return found


def duplicates_across_splits(molecules: Molecules, folds: Sequence[Fold]) -> Iterator[str]:
    """Report held-out molecules that are duplicates of training molecules."""
    smiles = molecules.smiles
    chosen = sum(_in_both(smiles, fold.validation, fold.train) for fold in folds)
    tested = sum(_in_both(smiles, fold.test, fold.rest) for fold in folds)
    for count, part, rest in (
        (chosen, "validation", "training molecules"),
        (tested, "test", "training or validation molecules"),
    ):
        if count:
            words = f"{part} molecule is a duplicate", f"{part} molecules are duplicates"
            yield f"{counted(count, *words)} of {rest}"


def _in_both(smiles: tuple[str, ...], held: Sequence[int], rest: Sequence[int]) -> int:
    """Count the held-out rows whose molecule is also in the rest."""
    known = {smiles[i] for i in rest}
    return sum(smiles[i] in known for i in held)
