"""What `predict` and `fingerprint` have in common: a model, a source, rows that go in and out."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from cell_attention.cli import console as show
from cell_attention.cli.lift import DataDir, check_writable
from cell_attention.data.dataset import Columns, is_molecule_file
from cell_attention.errors import DataError, InputError

if TYPE_CHECKING:
    from cell_attention.data.molecules.files import MoleculeFile
    from cell_attention.inference.model_folder import Model
    from cell_attention.inference.molecule_stream import Chunk


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

        from cell_attention.inference.model_folder import FILES, load_model

        if out is not None:
            check_writable(out, self.source)
            if out.name in FILES and out.resolve().parent == self.model.resolve():
                raise InputError(f"--out {out} would replace a file of the model; name another one")
        torch.set_num_threads(1)
        return load_model(self.model)

    def opened(self, model: "Model") -> "tuple[tuple[str, ...], Iterator[Chunk]]":
        """The header of the source, and its rows, ready for the model."""
        if is_molecule_file(self.source):
            return self._molecules(model)
        return self._graphs(model)

    def _molecules(self, model: "Model") -> "tuple[tuple[str, ...], Iterator[Chunk]]":
        from cell_attention.data.molecules.files import MoleculeFile
        from cell_attention.inference.molecule_stream import chunks, molecule_features

        molecule_features(model)  # refuses a model that cannot read molecules
        if model.network.config.lift == "paper":
            show.note("the model's lift is not symmetric: it predicts by the order of atoms too")
        columns = Columns(self.smiles_column)
        file = MoleculeFile(Path(self.source), columns)
        if self.on_error == "fail":
            self._require_readable(MoleculeFile(file.path, columns))

        def watched() -> "Iterator[Chunk]":
            done = read = 0
            with show.progress(f"Reading {self.source}") as progress:
                for chunk in chunks(model, file):
                    done, read = done + len(chunk.rows), read + len(chunk.complexes)
                    progress(min(done, file.total), file.total)
                    yield chunk
            if done and not read:
                raise DataError(
                    f"{file.path}: none of {done:,} rows is a molecule; is --smiles-column right?"
                )

        return file.header, watched()

    def _require_readable(self, file: "MoleculeFile") -> None:
        """Refuse the first row that is no molecule, before anything is written."""
        from cell_attention.data.molecules.molecule import MoleculeError

        for row in file.rows():
            try:
                file.molecule(row)
            except MoleculeError as error:
                raise DataError(f"{file.path}, {file.place} {row.line}: {error}") from None

    def _graphs(self, model: "Model") -> "tuple[tuple[str, ...], Iterator[Chunk]]":
        from cell_attention.data.molecules.files import Row
        from cell_attention.data.sources import read_source
        from cell_attention.inference.molecule_stream import Chunk
        from cell_attention.inference.prediction import require_same_features
        from cell_attention.inference.prediction_table import truth_names
        from cell_attention.topology.lifting import attach_polygons

        if self.smiles_column is not None:
            raise InputError(f"{self.source} is no file of molecules: it has no smiles_column")
        found = read_source(self.source, self.data_dir, node_attributes=self.node_attributes)
        require_same_features(model, found.featuriser, found.name)
        complexes = attach_polygons(found.graphs, model.network.config.max_polygon)
        count, targets = len(complexes), complexes.targets
        header: tuple[str, ...] = ("graph",)
        rows = [Row(number, "", (str(number),)) for number in range(count)]
        if targets is not None and found.class_names:
            header = ("graph", *truth_names(model))
            rows = [
                Row(number, "", (str(number), found.class_names[target]))
                for number, target in enumerate(targets.tolist())
            ]
        silent = ("",) * count
        return header, iter([Chunk(tuple(rows), complexes, tuple(range(count)), silent, silent)])


def padded(cells: tuple[str, ...], width: int) -> tuple[str, ...]:
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
