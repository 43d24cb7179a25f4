import networkx as nx
import numpy as np
import pytest
from scipy.sparse import issparse

import families
from cell_attention import CellComplex, lift, load_dataset, to_toponetx
from cell_attention.errors import InputError, SelectionError
from cell_attention.topology.interop import polygon_tuples

GRAPHS = [graph for graph in families.graphs(60, seed=2) if graph.number_of_edges()]


def flips(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """(columns,) ±1 that turn each of their columns into ours, which must be possible."""
    signs = np.array(
        [1.0 if np.array_equal(a, b) else -1.0 for a, b in zip(ours.T, theirs.T, strict=True)]
    )
    assert np.array_equal(ours, theirs * signs)
    return signs


@pytest.mark.parametrize("number", range(len(GRAPHS)))
def test_incidence_and_laplacians_equal_those_of_toponetx(number: int) -> None:
    one = lift(GRAPHS[number])
    theirs = to_toponetx(one)
    nodes, edges, b1 = theirs.incidence_matrix(1, signed=True, index=True)
    rows = [list(nodes).index(node) for node in range(one.num_nodes)] if one.num_nodes else []
    keys = [tuple(sorted(edge)) for edge in edges]
    columns = [keys.index(tuple(edge)) for edge in one.edge_nodes.T.tolist()]
    edge_flip = flips(one.incidence(1).toarray(), b1.toarray()[rows][:, columns])

    down = theirs.down_laplacian_matrix(1, signed=True).toarray()[columns][:, columns]
    turn = np.outer(edge_flip, edge_flip)
    assert np.array_equal(one.laplacian(1, "lower").toarray(), down * turn)
    graph = theirs.hodge_laplacian_matrix(0, signed=True).toarray()[rows][:, rows]
    assert np.array_equal(one.laplacian(0).toarray(), graph)
    if one.num_polygons == 0:
        assert one.laplacian(1, "upper").nnz == 0
        return
    _, cells, b2 = theirs.incidence_matrix(2, signed=True, index=True)
    names = [families.canonical(list(cell)) for cell in cells]
    places = [names.index(polygon) for polygon in polygon_tuples(one)]
    b2 = b2.toarray()[columns][:, places] * edge_flip[:, None]
    polygon_flip = flips(one.incidence(2).toarray(), b2)
    up = theirs.up_laplacian_matrix(1, signed=True).toarray()[columns][:, columns] * turn
    assert np.array_equal(one.laplacian(1, "upper").toarray(), up)
    assert np.array_equal(one.laplacian(1).toarray(), down * turn + up)
    top = theirs.hodge_laplacian_matrix(2, signed=True).toarray()[places][:, places]
    assert np.array_equal(one.laplacian(2).toarray(), top * np.outer(polygon_flip, polygon_flip))


@pytest.mark.parametrize("number", range(0, len(GRAPHS), 3))
def test_adjacencies_of_every_rank_follow_from_the_unsigned_incidence(number: int) -> None:
    one = lift(GRAPHS[number])
    b1, b2 = one.incidence(1, signed=False).toarray(), one.incidence(2, signed=False).toarray()

    def shared(product: np.ndarray) -> np.ndarray:
        return ((product > 0) & ~np.eye(len(product), dtype=bool)).astype(float)

    assert np.array_equal(one.adjacency(0, "upper").toarray(), shared(b1 @ b1.T))
    assert np.array_equal(one.adjacency(1, "lower").toarray(), shared(b1.T @ b1))
    assert np.array_equal(one.adjacency(1, "upper").toarray(), shared(b2 @ b2.T))
    assert np.array_equal(one.adjacency(2, "lower").toarray(), shared(b2.T @ b2))
    assert one.adjacency(0, "lower").nnz == one.adjacency(2, "upper").nnz == 0
    assert one.adjacency(0, "lower").shape == (one.num_nodes, one.num_nodes)
    for edge in range(one.num_edges):
        assert set(one.boundary(1, edge).tolist()) == set(b1[:, edge].nonzero()[0].tolist())
        assert one.coboundary(1, edge).tolist() == b2[edge].nonzero()[0].tolist()
    for node in range(one.num_nodes):
        assert one.coboundary(0, node).tolist() == b1[node].nonzero()[0].tolist()
        assert one.boundary(0, node).size == 0
    for polygon in range(one.num_polygons):
        assert set(one.boundary(2, polygon).tolist()) == set(b2[:, polygon].nonzero()[0].tolist())
        assert one.coboundary(2, polygon).size == 0


def test_matrices_are_scipy_csr_of_float64_with_sorted_rows() -> None:
    one = lift(nx.petersen_graph())
    for matrix in (one.incidence(1), one.incidence(2), one.laplacian(1), one.adjacency(1, "upper")):
        assert issparse(matrix)
        assert matrix.format == "csr"
        assert matrix.dtype == np.float64
        assert matrix.has_sorted_indices


def test_the_boundary_of_a_boundary_is_zero_on_every_molecule_of_mutag() -> None:
    complexes = load_dataset("MUTAG")
    product = complexes.incidence(1) @ complexes.incidence(2)
    assert product.count_nonzero() == 0
    assert complexes.incidence(2).nnz == int(complexes.polygon_sizes.sum())


def betti_from_ranks(one: CellComplex) -> tuple[int, int, int]:
    b1, b2 = (one.incidence(rank).toarray() for rank in (1, 2))
    r1, r2 = (int(np.linalg.matrix_rank(b)) if b.size else 0 for b in (b1, b2))
    return one.num_nodes - r1, one.num_edges - r1 - r2, one.num_polygons - r2


def test_betti_numbers_equal_ranks_of_the_matrices() -> None:
    graphs = families.graphs(170, seed=3)
    complexes = lift(graphs)
    each = complexes.betti(each=True)
    for number in range(len(graphs)):
        assert tuple(each[number].tolist()) == betti_from_ranks(complexes[number]), number
    assert complexes.betti() == tuple(each.sum(axis=0).tolist())
    assert each[:, 0].tolist() == [nx.number_connected_components(graph) for graph in graphs]


def grid_surface(twist: bool, size: int = 5) -> CellComplex:
    """A torus, or with a twist a Klein bottle, out of squares."""

    def node(i: int, j: int) -> int:
        if i >= size:
            i, j = i - size, (-j if twist else j)
        return i * size + j % size

    squares = [
        (node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1))
        for i in range(size)
        for j in range(size)
    ]
    edges = {
        (min(u, v), max(u, v))
        for square in squares
        for u, v in zip(square, square[1:] + square[:1], strict=True)
    }
    return CellComplex.from_cells(sorted(edges), squares)


def test_betti_numbers_of_surfaces_are_those_of_the_textbook() -> None:
    tetrahedron = lift(nx.complete_graph(4))
    assert tetrahedron.betti() == (1, 0, 1)
    assert grid_surface(twist=False).betti() == (1, 2, 1)
    assert grid_surface(twist=True).betti() == (1, 1, 0)
    # The projective plane on six nodes: its homology is torsion, invisible to the rationals.
    faces = [
        (0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5), (0, 5, 1),
        (1, 2, 4), (2, 3, 5), (3, 4, 1), (4, 5, 2), (5, 1, 3),
    ]  # fmt: skip
    plane = CellComplex.from_cells(list(nx.complete_graph(6).edges), faces)
    assert plane.betti() == (1, 0, 0)
    assert plane.betti() == betti_from_ranks(plane)


def test_a_rank_cell_or_option_that_does_not_exist_is_named() -> None:
    one = lift(nx.cycle_graph(5))
    with pytest.raises(SelectionError, match="rank of an incidence matrix must be 1 or 2, got 0"):
        one.incidence(0)  # type: ignore[arg-type]
    with pytest.raises(SelectionError, match="rank must be 0, 1 or 2, got 3"):
        one.laplacian(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="part must be"):
        one.laplacian(1, "down")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="side must be"):
        one.adjacency(1, "both")  # type: ignore[arg-type]
    with pytest.raises(SelectionError, match="polygon 1 does not exist: there are 1"):
        one.boundary(2, 1)
