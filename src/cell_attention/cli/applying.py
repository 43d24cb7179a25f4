"""What `predict` and `fingerprint` have in common: a model, a source, rows that go in and out."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from cell_attention.cli import show
from cell_attention.cli.lift import DataDir, check_writable
from cell_attention.data.dataset import Columns, is_molecule_file
from cell_attention.errors import DataError, InputError

if TYPE_CHECKING:
    from cell_attention.learn.checkpoint import Model
    from cell_attention.topology.complex import CellComplex


@dataclass(frozen=True)
class Batch:
    """Rows of a source on their way through a model."""

    cells: list[tuple[str, ...]]
    """As the source writes them."""
    complexes: "CellComplex"
    place: tuple[int | None, ...]
    """Complex of every row; None where a row is no molecule."""
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Applying:
    """A verb that applies a model to a SOURCE."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL_DIR")]
    """The folder of a trained model."""
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A .csv, .smi or .sdf of molecules (also gzipped), or a set in TU format as the model was
    trained on."""
    smiles_column: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Column of a .csv with SMILES or InChI; the first by default."""
    on_error: Literal["report", "skip", "fail"] = "report"
    """Rows that cannot be read keep their place with a reason, are left out, or are refused."""
    json: bool = False
    """Print one JSON object."""
    data_dir: DataDir = None
    """Where to look for TU names first; then $CELL_ATTENTION_DATA, then the cache."""
    node_attributes: bool = False
    """Add a TU set's node attributes to its node labels."""

    def loaded(self, out: Path | None) -> "Model":
        """The model, after a look at where the output goes; one torch thread from here on."""
        import torch

        from cell_attention.learn.checkpoint import load_model

        if out is not None:
            check_writable(out, self.source)
        torch.set_num_threads(1)
        return load_model(self.model)

    def opened(self, model: "Model") -> "tuple[tuple[str, ...], Iterator[Batch]]":
        """The header of the source, and its rows, ready for the model."""
        if is_molecule_file(self.source):
            return self._molecules(model)
        return self._graphs(model)

    def _molecules(self, model: "Model") -> "tuple[tuple[str, ...], Iterator[Batch]]":
        from cell_attention.data.featurise import featuriser_of
        from cell_attention.data.molecule_files import MoleculeFile
        from cell_attention.learn.streaming import chunks

        featuriser_of(model.featuriser)  # refuses a model that cannot read molecules
        file = MoleculeFile(Path(self.source), Columns(self.smiles_column))

        def batches() -> Iterator[Batch]:
            done = 0
            with show.progress(f"Reading {self.source}") as progress:
                for chunk in chunks(model, file):
                    for row, reason in zip(chunk.rows, chunk.reasons, strict=True):
                        if reason and self.on_error == "fail":
                            raise DataError(f"{file.path}, {file.place} {row.line}: {reason}")
                    done += len(chunk.rows)
                    progress(min(done, file.total), file.total)
                    cells = [_fitted(row.cells, len(file.header)) for row in chunk.rows]
                    yield Batch(cells, chunk.complexes, chunk.place, chunk.reasons, chunk.warnings)

        return file.header, batches()

    def _graphs(self, model: "Model") -> "tuple[tuple[str, ...], Iterator[Batch]]":
        from cell_attention.data.sources import read_source
        from cell_attention.learn.prediction import require_same_features
        from cell_attention.topology.lifting import attach_polygons

        if self.smiles_column is not None:
            raise InputError(f"{self.source} is no file of molecules: it has no smiles_column")
        found = read_source(self.source, self.data_dir, node_attributes=self.node_attributes)
        require_same_features(model, found.featuriser, found.name)
        complexes = attach_polygons(found.graphs, model.network.config.max_polygon)
        count, targets = len(complexes), complexes.targets
        header: tuple[str, ...] = ("graph",)
        cells: list[tuple[str, ...]] = [(str(number),) for number in range(count)]
        if targets is not None and found.class_names:
            header = ("graph", *_unnamed(model))
            cells = [
                (str(number), found.class_names[target])
                for number, target in enumerate(targets.tolist())
            ]
        silent = ("",) * count
        return header, iter([Batch(cells, complexes, tuple(range(count)), silent, silent)])


def _unnamed(model: "Model") -> tuple[str, ...]:
    """The name under which the truth of a set without column names stands."""
    return model.target_names or ("truth",)


def _fitted(cells: tuple[str, ...], width: int) -> tuple[str, ...]:
    """As many cells as the header has: what is missing is blank, what is too much is joined."""
    if len(cells) <= width:
        return (*cells, *("",) * (width - len(cells)))
    return (*cells[: width - 1], " ".join(cells[width - 1 :]))


def require_free(header: tuple[str, ...], made: tuple[str, ...], source: str) -> None:
    """Refuse a source that has a column of a name that is to be written."""
    taken = [name for name in made if name in header]
    if taken:
        raise InputError(f"{source} has a column {taken[0]!r} already; rename it")


@contextmanager
def table_writer(out: Path | None) -> "Iterator[Any]":
    """A writer of comma-separated rows: to a file that is whole or not there, or to the output."""
    from cell_attention._files import replacing

    if out is None:
        yield csv.writer(sys.stdout, lineterminator="\n")
        return
    with (
        replacing(out) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="") as file,
    ):
        yield csv.writer(file, lineterminator="\n")
