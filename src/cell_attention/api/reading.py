"""How the graphs of an experiment are read and lifted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cell_attention.data.dataset import GraphSet
from cell_attention.data.file_format import (
    USUAL_DESCRIPTORS,
    Columns,
    FileFormat,
    OnError,
    is_molecule_file,
)
from cell_attention.data.sources import lift_set, read_source
from cell_attention.data.splits.options import SplitOptions
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig
from cell_attention.progress import Progress
from cell_attention.topology.complex import CellComplex

Data = str | Path | GraphSet | CellComplex
"""A SOURCE of the command line, a GraphSet read from one, or complexes with targets."""


@dataclass(frozen=True)
class Reading:
    """How a SOURCE is read; the arguments of `load_dataset`."""

    on_error: OnError = "fail"
    data_dir: str | Path | None = None
    node_attributes: bool = False
    columns: Columns = Columns()  # noqa: RUF009 - frozen, so sharing one is safe
    file_format: FileFormat = FileFormat()  # noqa: RUF009 - frozen, so sharing one is safe

    def for_network(
        self, data: Data, model: str, network: NetworkConfig,
        *, usual: Sequence[str] = USUAL_DESCRIPTORS,
    ) -> "Reading":  # fmt: skip
        """Choose the usual descriptors of molecules for a network that reads them, and none for
        others; refuse those that a model would ignore.
        """
        reads = model == "can" and network.design == "ranks"
        stated = self.columns.descriptors
        if stated is None:
            if not reads or isinstance(data, GraphSet | CellComplex) or not is_molecule_file(data):
                return self
            return replace(self, columns=replace(self.columns, descriptors=usual))
        if not reads and not set(stated) <= {"none"}:
            what = "design 'paper'" if model == "can" else f"model {model!r}"
            raise InputError(f"{what} does not use descriptors, got {', '.join(stated)}")
        return self

    def read(self, data: Data, split: SplitOptions, progress: Progress) -> GraphSet:
        """Read a SOURCE; a set that was read before is returned as it is."""
        if isinstance(data, GraphSet | CellComplex):
            if replace(self, on_error="fail") != Reading():
                names = "data_dir, node_attributes, columns and file_format"
                raise InputError(f"{names} are for a SOURCE, and not for graphs that were read")
            return data if isinstance(data, GraphSet) else GraphSet("graphs", data)
        columns = replace(self.columns, split=split.column or self.columns.split)
        with progress.bar(f"Reading {data}") as report:
            return read_source(
                data, self.data_dir, node_attributes=self.node_attributes,
                on_error=self.on_error, columns=columns, file_format=self.file_format,
                progress=report,
            )  # fmt: skip


def read_set(
    data: Data, max_polygon: int, *, reading: Reading, split: SplitOptions, progress: Progress
) -> GraphSet:
    """Read and lift the graphs; complexes are used as they are."""
    graph_set = reading.read(data, split, progress)
    if isinstance(data, CellComplex):
        return replace(graph_set, max_polygon=max_polygon)
    if graph_set.max_polygon is None:
        graph_set = lift_set(graph_set, max_polygon, on_error=reading.on_error)
    for text in graph_set.notes:
        progress.note(text)
    for text in graph_set.remarks:
        progress.remark(text)
    return graph_set
