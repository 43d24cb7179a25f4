"""Folders in the format of the TU collection: text tables with a line per node, edge or graph."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.data.dataset import GraphSet, Progress
from cell_attention.data.tu.codes import codes_of
from cell_attention.data.tu.tables import Folder, Tables
from cell_attention.errors import DataError, counted, printable
from cell_attention.topology.degrees import MOST_DEGREES, with_degrees
from cell_attention.topology.edges import EdgeError
from cell_attention.topology.graphs import RawGraphs, join

MOST_LABELS = 4096
"""A column with more distinct labels than this holds identifiers, not categories."""


def read_tu(
    folder: Folder, name: str, *, node_attributes: bool = False, progress: Progress | None = None
) -> GraphSet:
    """Read the graphs of `folder`, whose files are NAME_A.txt, NAME_graph_indicator.txt and so on.

    Node and edge labels become one-hot columns, in the order of their numbers; edge attributes
    follow them, and so do node attributes if `node_attributes` is set or there are no node labels.
    A graph whose number is left out in NAME_graph_indicator.txt has no nodes, as in PyG. Targets
    are the classes of NAME_graph_labels.txt, else the values of NAME_graph_attributes.txt. Edges
    may be listed once, in both directions, or repeatedly.
    """
    tables = Tables(folder, name, progress)
    member = tables.integers("graph_indicator", columns=1)[:, 0]
    targets, class_names = _targets(tables)
    stated = None if targets is None else targets.size(0)
    _check_indicator(tables, member, stated)
    ends = tables.integers("A", columns=2)
    _check_ends(tables, ends, member)
    labelled = tables.exists("node_labels")
    attributes = node_attributes or (not labelled and tables.exists("node_attributes"))
    wanted = ["node_labels", "node_attributes"] if attributes else ["node_labels"]
    if node_attributes and not tables.exists("node_attributes"):
        raise DataError(f"{tables.path('node_attributes')} is missing, but node_attributes is set")
    columns: dict[str, Any] = {"kind": "tu"}
    raw = RawGraphs(
        num_nodes=member.size,
        edge_index=torch.from_numpy(np.ascontiguousarray(ends.T - 1)),
        node_features=_features(
            tables, wanted, rows=member.size, reason="the number of nodes is", columns=columns
        ),
        edge_features=_features(
            tables,
            ["edge_labels", "edge_attributes"],
            rows=ends.shape[0],
            reason="the number of listed edges is",
            columns=columns,
        ),
        targets=targets,
        node_complex=torch.from_numpy(member - 1),
        num_graphs=int(member[-1]),
    )
    try:
        joined = join([raw])
    except EdgeError as error:
        u, v = ends[error.entry]
        text = f"edge ({u}, {v}) was listed before with another label or attribute"
        raise tables.fault("A", error.entry, text) from None
    graphs, notes = joined.complexes, list(joined.repairs)
    if raw.node_features is None:
        graphs = with_degrees(graphs)
        columns["node_degrees"] = graphs.node_features.size(1)
        notes.append(
            f"no node labels: node features are one-hot degrees, {MOST_DEGREES - 1} and more as one"
        )
    empty = joined.complexes.num_complexes - np.unique(member).size
    if empty:
        notes.append(f"{counted(empty, 'graph has', 'graphs have')} no nodes")
    if targets is None:
        notes.append("neither graph labels nor graph attributes: there are no targets")
    columns |= codes_of(name, columns)
    remarks: tuple[str, ...] = ()
    if tables.exists("node_attributes") and not attributes:
        remarks = ("node attributes are left out; node_attributes=True appends them to the labels",)
    return GraphSet(printable(name), graphs, class_names, tuple(notes), columns, remarks=remarks)


def _targets(tables: Tables) -> tuple[Tensor | None, tuple[str, ...]]:
    """Return (graphs,) class numbers and class names, or (graphs, T) values, or nothing."""
    if tables.exists("graph_labels"):
        labels = tables.integers("graph_labels", columns=1)[:, 0]
        names, classes = np.unique(labels, return_inverse=True)
        return torch.from_numpy(classes.astype(np.int64)), tuple(str(name) for name in names)
    if tables.exists("graph_attributes"):
        return torch.from_numpy(tables.floats("graph_attributes")).float(), ()
    return None, ()


def _check_indicator(tables: Tables, member: NDArray[np.int64], stated: int | None) -> None:
    """Check that graphs are numbered 1, 2, … in order, and are as many as the targets; numbers may
    be left out if targets say how many graphs there are.
    """
    if not member.size:
        raise DataError(f"{tables.path('graph_indicator')} has no lines: there are no nodes")
    step = np.diff(member, prepend=0)
    wrong = step < 0
    wrong[0] |= member[0] < 1
    if stated is None or stated < member[-1]:
        wrong |= step > 1
    if wrong.any():
        row = int(wrong.argmax())
        before = f"graph {member[row - 1]} or {member[row - 1] + 1}" if row else "graph 1"
        raise tables.fault("graph_indicator", row, f"{before} is expected, got {member[row]}")
    if stated is not None and stated != member[-1]:
        name = "graph_labels" if tables.exists("graph_labels") else "graph_attributes"
        tables.check_rows(name, stated, expected=int(member[-1]), reason="the number of graphs is")


def _check_ends(tables: Tables, ends: NDArray[np.int64], member: NDArray[np.int64]) -> None:
    """Check that both ends of an edge are nodes of one graph."""
    outside = ((ends < 1) | (ends > member.size)).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        u, v = ends[row]
        raise tables.fault("A", row, f"edge ({u}, {v}) names a node outside 1…{member.size}")
    apart = member[ends[:, 0] - 1] != member[ends[:, 1] - 1]
    if apart.any():
        row = int(apart.argmax())
        (u, v), (a, b) = ends[row], member[ends[row] - 1]
        raise tables.fault("A", row, f"edge ({u}, {v}) joins graph {a} to graph {b}")


def _features(
    tables: Tables, names: list[str], *, rows: int, reason: str, columns: dict[str, Any]
) -> Tensor | None:
    """(rows, F) columns of all tables that exist, concatenated; None if none exists.

    columns: receives the labels of every one-hot table, and the width of every other.
    """
    parts = []
    for name in names:
        if tables.exists(name):
            if name.endswith("labels"):
                part, columns[name] = _one_hot(tables, name)
            else:
                part = torch.from_numpy(tables.floats(name)).float()
                columns[name] = part.size(1)
            tables.check_rows(name, part.size(0), expected=rows, reason=reason)
            parts.append(part)
    return torch.cat(parts, dim=1) if parts else None


def _one_hot(tables: Tables, name: str) -> tuple[Tensor, list[list[int]]]:
    """(rows, Σ distinct) a column per label that occurs, for each column of the table in turn; and
    these labels.
    """
    columns, labels = [], []
    for column in tables.integers(name).T:
        values, code = np.unique(column, return_inverse=True)
        if values.size > MOST_LABELS:
            raise DataError(
                f"{tables.path(name)} has {values.size:,} distinct labels, more than "
                f"{MOST_LABELS:,}: identifiers are not features"
            )
        # Not torch's one_hot, which refuses a table without rows.
        columns.append(torch.from_numpy(code.reshape(-1, 1) == np.arange(values.size)))
        labels.append(values.tolist())
    return torch.cat(columns, dim=1).float(), labels
