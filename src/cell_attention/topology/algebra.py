"""Incidence matrices, Laplacians and adjacencies of a complex as scipy matrices (paper §2.1)."""

import operator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cell_attention.errors import InputError, SelectionError
from cell_attention.topology.compiled import as_array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cell_attention.topology.complex import CellComplex

    Matrix = csr_array[Any, Any]
Integers = NDArray[np.int64]


def incidence(complexes: "CellComplex", rank: Literal[1, 2], signed: bool = True) -> "Matrix":
    """Return B₁ (N, E) or B₂ (E, P), with B₁B₂ = 0; if not `signed`, their absolute values."""
    num_nodes, num_edges = complexes.num_nodes, complexes.num_edges
    if rank == 1:
        rows = as_array(complexes.edge_nodes).ravel()
        columns = np.tile(np.arange(num_edges), 2)
        values = np.repeat([-1.0, 1.0], num_edges)
        shape = (num_nodes, num_edges)
    elif rank == 2:
        rows, columns = as_array(complexes.polygon_edges)
        values = as_array(complexes.polygon_signs).astype(np.float64)
        shape = (num_edges, complexes.num_polygons)
    else:
        raise SelectionError(f"rank of an incidence matrix must be 1 or 2, got {rank}")
    return _matrix(values if signed else abs(values), rows, columns, shape=shape)


def laplacian(
    complexes: "CellComplex",
    rank: Literal[0, 1, 2],
    part: Literal["lower", "upper", "both"] = "both",
) -> "Matrix":
    """Hodge Laplacian BₖᵀBₖ (lower) + Bₖ₊₁Bₖ₊₁ᵀ (upper); a part that does not exist is zero."""
    if part not in ("lower", "upper", "both"):
        raise InputError(f"part must be 'lower', 'upper' or 'both', got {part!r}")
    total = _nothing(_num_cells(complexes, rank))
    if rank != 0 and part != "upper":
        below = incidence(complexes, rank)
        total = total + below.T @ below
    if rank != 2 and part != "lower":
        above = incidence(complexes, 1 if rank == 0 else 2)
        total = total + above @ above.T
    total.eliminate_zeros()
    total.sort_indices()
    return total


def adjacency(complexes: "CellComplex", rank: int, side: Literal["lower", "upper"]) -> "Matrix":
    """0/1 matrix of cells of a rank that share one of rank − 1 (lower) or rank + 1 (upper)."""
    if side not in ("lower", "upper"):
        raise InputError(f"side must be 'lower' or 'upper', got {side!r}")
    size = _num_cells(complexes, rank)
    if rank == 1:
        pairs = as_array(complexes.lower_pairs if side == "lower" else complexes.upper_pairs)
        return _matrix(np.ones(pairs.shape[1]), pairs[0], pairs[1], shape=(size, size))
    if (rank, side) == (0, "upper"):
        tail, head = as_array(complexes.edge_nodes)
        both = np.concatenate([tail, head]), np.concatenate([head, tail])
        return _matrix(np.ones(both[0].size), *both, shape=(size, size))
    if (rank, side) == (2, "lower"):
        sides = incidence(complexes, 2, signed=False)
        shared = (sides.T @ sides).tocoo()
        apart = shared.row != shared.col
        return _matrix(
            np.ones(apart.sum()), shared.row[apart], shared.col[apart], shape=(size, size)
        )
    return _nothing(size)


def _nothing(size: int) -> "Matrix":
    from scipy.sparse import csr_array  # slow to import, and needed here only

    return csr_array((size, size), dtype=np.float64)


def _matrix(values: Any, rows: Any, columns: Any, *, shape: tuple[int, int]) -> "Matrix":
    from scipy.sparse import csr_array

    matrix = csr_array((values, (rows, columns)), shape=shape, dtype=np.float64)
    matrix.sort_indices()
    return matrix


def boundary(complexes: "CellComplex", rank: int, cell: int) -> Integers:
    """Return the boundary of a cell: the nodes of an edge, the edges of a polygon."""
    cell = _cell(complexes, rank, cell)
    if rank == 1:
        return as_array(complexes.edge_nodes[:, cell]).copy()
    if rank == 2:
        sides, polygon = as_array(complexes.polygon_edges)
        begin, end = np.searchsorted(polygon, [cell, cell + 1])
        return np.array(sides[begin:end])
    return np.empty(0, np.int64)


def coboundary(complexes: "CellComplex", rank: int, cell: int) -> Integers:
    """Return the cells of rank + 1 that have the cell on their boundary, increasing."""
    cell = _cell(complexes, rank, cell)
    if rank == 2:
        return np.empty(0, np.int64)
    rows = complexes._incidences[rank]
    found: Integers = rows.indices[rows.indptr[cell] : rows.indptr[cell + 1]].astype(np.int64)
    return found


def _num_cells(complexes: "CellComplex", rank: int) -> int:
    if not isinstance(rank, int | np.integer) or rank not in (0, 1, 2):
        raise SelectionError(f"rank must be 0, 1 or 2, got {rank}")
    return (complexes.num_nodes, complexes.num_edges, complexes.num_polygons)[rank]


def _cell(complexes: "CellComplex", rank: int, cell: int) -> int:
    size = _num_cells(complexes, rank)
    kind = ("node", "edge", "polygon")[rank]
    try:
        cell = operator.index(cell)
    except TypeError:
        raise InputError(f"{kind} must be an integer, got {cell!r}") from None
    if not -size <= cell < size:
        raise SelectionError(f"{kind} {cell} does not exist: there are {size}")
    return cell % size
