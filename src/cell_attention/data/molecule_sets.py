"""Files of molecules as data sets: graphs with targets, and an account of what was left out."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rdkit import Chem

from cell_attention.data.dataset import Columns, GraphSet, Molecules, OnError, Progress
from cell_attention.data.featurise import Featuriser, featurise
from cell_attention.data.molecule_files import MoleculeFile, Row
from cell_attention.data.molecules import MoleculeError
from cell_attention.data.targets import Targets, read_targets
from cell_attention.errors import DataError


def read_molecules(
    path: Path,
    on_error: OnError = "fail",
    progress: Progress | None = None,
    columns: Columns = Columns(),  # noqa: B008 - frozen, so sharing one is safe
) -> GraphSet:
    """The molecules of a file with their targets.

    Rows that cannot be read are named, all of them before anything else is done.
    """
    file = MoleculeFile(path, columns)
    good: list[Row] = []
    smiles: list[str] = []
    rings: list[int] = []
    bad: dict[int, str] = {}

    def molecules() -> Iterator[Any]:
        for done, row in enumerate(file.rows(), 1):
            try:
                molecule = file.molecule(row)
            except MoleculeError as error:
                bad[row.line] = str(error)
            else:
                good.append(row)
                smiles.append(Chem.MolToSmiles(molecule))
                rings.append(largest_ring(molecule))
                yield molecule
            if progress is not None and done % 100 == 0:
                progress(done, file.total)

    made = featurise(molecules())
    names = tuple(file.header[place] for place in file.targets)
    cells = [[row.cells[place] for place in file.targets] for row in good]
    targets = read_targets(str(path), names, cells, columns.task)
    bad |= {good[i].line: fault for i, fault in targets.faults.items()}
    notes = _left_out(file, bad, on_error)
    kept = torch.tensor(targets.kept, dtype=torch.int64)
    if not kept.numel():
        raise DataError(f"{path}: there is no molecule in it" + (" with a target" * bool(names)))
    if progress is not None:
        progress(len(good), len(good))
    graphs = replace(made.graphs[kept], targets=targets.values)
    node_kept = torch.isin(made.graphs.node_complex, kept)
    edge_kept = torch.isin(made.graphs.edge_complex, kept)
    found = Molecules(
        tuple(good[i].line for i in targets.kept),
        tuple(smiles[i] for i in targets.kept),
        made.elements[node_kept],
        made.bonds[edge_kept],
        tuple(rings[i] for i in targets.kept),
        () if file.split is None else tuple(good[i].cells[file.split] for i in targets.kept),
    )
    if targets.blank:
        notes += (f"{len(targets.blank):,} molecules without a target are left out",)
    said = (_task_note(targets, names), repeats(found.smiles, targets.values))
    return GraphSet(
        path.name, graphs, targets.class_names, notes, Featuriser().record, names, found,
        tuple(filter(None, said)),
    )  # fmt: skip


def largest_ring(molecule: Any) -> int:
    """Atoms of the largest ring in RDKit's ring set."""
    return max(map(len, molecule.GetRingInfo().AtomRings()), default=0)


def _left_out(file: MoleculeFile, bad: dict[int, str], on_error: OnError) -> tuple[str, ...]:
    """What is said of rows that cannot be read; an error where they are not to be left out."""
    if not bad:
        return ()
    lines = sorted(bad)
    if on_error == "fail":
        more = f" (and {len(bad) - 1:,} more rows)" if len(bad) > 1 else ""
        raise DataError(
            f"{file.path}, {file.place} {lines[0]}: {bad[lines[0]]}{more}; --on-error report lists "
            "such rows and leaves them out, skip leaves them out (on_error in Python)"
        )
    count = f"{len(bad):,} rows left out, the first on {file.place} {lines[0]}"
    if on_error == "skip":
        return (count,)
    return (count, *(f"{file.place} {line}: {bad[line]}" for line in lines))


def _task_note(targets: Targets, names: tuple[str, ...]) -> str:
    """What the targets were taken for."""
    if not names:
        return ""
    if targets.class_names and targets.values is not None:
        counts = targets.values.bincount(minlength=len(targets.class_names)).tolist()
        pairs = list(zip(targets.class_names, counts, strict=True))
        shown = ", ".join(f"{name}: {count:,}" for name, count in pairs[:6])
        more = ", …" if len(pairs) > 6 else ""
        return f"classes of {names[0]!r} ({shown}{more}); --task regression would take values"
    listed = ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")
    values = targets.values
    if values is not None and bool(((values == 0) | (values == 1) | values.isnan()).all()):
        return f"labels, each 0 or 1: {listed}"
    return f"values of {listed}" + (
        "; --task classification would take classes" * (len(names) == 1)
    )


def repeats(smiles: tuple[str, ...], targets: Any) -> str:
    """A sentence on molecules that stand in several rows, and on those that contradict
    themselves; empty where there are none.
    """
    counts = Counter(smiles)
    repeated = {text for text, count in counts.items() if count > 1}
    if not repeated:
        return ""
    rows = sum(counts[text] for text in repeated)
    said = f"{len(repeated):,} molecules stand in several rows, {rows:,} in all"
    if targets is None:
        return said
    told: dict[str, set[str]] = {}
    for one, target in zip(smiles, targets.tolist(), strict=True):
        if one in repeated:
            told.setdefault(one, set()).add(str(target))
    contrary = sum(len(values) > 1 for values in told.values())
    return f"{said}; {contrary:,} of them with different targets"


def repeats_across(smiles: tuple[str, ...], held: Any, rest: Any) -> int:
    """How many of the held-out rows are molecules that stand in the rest too."""
    known = {smiles[i] for i in rest}
    return sum(smiles[i] in known for i in held)
