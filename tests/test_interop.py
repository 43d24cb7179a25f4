from collections.abc import Callable
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import toponetx
import torch

import families
from cell_attention import (
    CellComplex,
    from_incidence,
    from_networkx,
    from_toponetx,
    lift,
    load_dataset,
    to_networkx,
    to_toponetx,
)
from cell_attention.errors import InputError

Same = Callable[[CellComplex, CellComplex], None]


def signals(one: CellComplex) -> CellComplex:
    random = torch.Generator().manual_seed(0)
    return replace(
        one,
        node_features=torch.rand(one.num_nodes, 2, generator=random),
        edge_features=torch.rand(one.num_edges, 3, generator=random),
        polygon_features=torch.rand(one.num_polygons, 1, generator=random),
    )


COMPLEXES = [
    signals(lift(g)) for g in families.graphs(60, seed=5) if lift(g).num_polygons and len(g) > 2
]


@pytest.mark.parametrize("number", range(len(COMPLEXES)))
def test_complexes_survive_the_way_to_another_library_and_back(
    number: int, assert_equal: Same
) -> None:
    one = COMPLEXES[number]
    assert_equal(from_networkx(to_networkx(one)), one)
    assert_equal(from_toponetx(to_toponetx(one)), one)
    bare = replace(
        one, node_features=torch.empty(one.num_nodes, 0), edge_features=None, polygon_features=None
    )
    for signed in (True, False):
        matrices = one.incidence(1, signed=signed), one.incidence(2, signed=signed)
        assert_equal(from_incidence(*matrices), bare)
        random = np.random.default_rng(number)  # columns in any order, features with them
        edges, polygons = random.permutation(one.num_edges), random.permutation(one.num_polygons)
        assert one.edge_features is not None
        assert one.polygon_features is not None
        shuffled = from_incidence(
            matrices[0][:, edges],
            matrices[1][edges][:, polygons],
            node_features=one.node_features,
            edge_features=one.edge_features[edges],
            polygon_features=one.polygon_features[polygons],
        )
        assert_equal(shuffled, one)
    assert_equal(lift(one.adjacency(0, "upper")), bare)


def test_a_molecule_with_labels_survives_networkx(assert_equal: Same) -> None:
    one = load_dataset("MUTAG")[7]
    assert_equal(from_networkx(to_networkx(one)), one)
    assert_equal(lift(to_networkx(one)), one)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 3)])
def test_targets_of_any_shape_survive_networkx(shape: tuple[int, ...], assert_equal: Same) -> None:
    one = replace(lift(nx.cycle_graph(4)), targets=torch.rand(shape))
    assert_equal(from_networkx(to_networkx(one)), one)


def test_toponetx_cells_with_any_names_and_chords_come_in_as_they_are() -> None:
    cells = toponetx.CellComplex()
    cells.add_cell(["d", "c", "b", "a"], rank=2)
    cells.add_edge("a", "c")
    cells.add_node("lonely")
    one = from_toponetx(cells)
    assert (one.num_nodes, one.num_edges, one.num_polygons) == (5, 5, 1)
    assert one.polygon_sizes.tolist() == [4]
    assert one.betti() == (2, 1, 0)


def test_only_one_complex_goes_into_one_graph() -> None:
    with pytest.raises(
        InputError, match=r"expected one complex, got 2; select one with complexes\[i\]"
    ):
        to_networkx(lift([nx.path_graph(2)] * 2))


def test_matrices_that_are_not_incidence_matrices_are_refused() -> None:
    one = lift(nx.complete_graph(4))
    b1, b2 = one.incidence(1), one.incidence(2)
    with pytest.raises(InputError, match="column 0 of B1 must have 2 entries, got 1"):
        from_incidence(scipy.sparse.csr_array(np.eye(3)))
    with pytest.raises(InputError, match="B1 B2 must be zero"):
        from_incidence(b1, abs(b2))
    with pytest.raises(InputError, match="a row per column of B1"):
        from_incidence(b1, b2[:3])
    for wrong, message in (
        ("B", "B1 must be a matrix, got str"),
        (np.array([[5.0], [1.0]]), "the entries of B1 must be 0, 1 or -1"),
        (np.array([[np.nan], [1.0]]), "the entries of B1 must be 0, 1 or -1"),
    ):
        with pytest.raises(InputError, match=message):
            from_incidence(wrong)
    open_path = scipy.sparse.csr_array(np.array([[1.0], [1.0], [1.0], [0], [0], [0]]))
    with pytest.raises(InputError, match="column 0 of B2 is not a closed walk"):
        from_incidence(abs(b1), open_path)


def test_a_matrix_that_is_read_is_not_changed() -> None:
    given = scipy.sparse.csc_array(lift(nx.cycle_graph(3)).incidence(1))
    given.data[:1] = 0.0
    before = given.copy()
    with pytest.raises(InputError, match="must have 2 entries, got 1"):
        from_incidence(given)
    assert np.array_equal(given.data, before.data)
    assert np.array_equal(given.indptr, before.indptr)


def test_cells_of_other_libraries_that_do_not_fit_are_refused() -> None:
    graph = nx.cycle_graph(3)
    graph.graph["polygons"] = [(0, 1, "stranger")]
    with pytest.raises(InputError, match="a polygon names 'stranger'"):
        from_networkx(graph)
    with pytest.raises(InputError, match="must be a TopoNetX CellComplex, got SimplicialComplex"):
        from_toponetx(toponetx.SimplicialComplex([[0, 1, 2]]))
    ragged = nx.path_graph(2)
    ragged.nodes[0]["x"], ragged.nodes[1]["x"] = [1.0], [1.0, 2.0]
    with pytest.raises(InputError, match="node attribute 'x' must be equally many numbers"):
        lift(ragged)
    with pytest.raises(InputError, match="must be square"):
        lift(scipy.sparse.coo_array(np.ones(3)))


def test_a_node_without_the_attribute_that_others_have_is_named() -> None:
    graph = nx.path_graph(3)
    graph.nodes[0]["x"] = [1.0]
    with pytest.raises(InputError, match="node 1 has no attribute 'x', but others have"):
        lift(graph)
