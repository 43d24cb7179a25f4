"""What lifting makes of every kind of input, and the published counts."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Batch, Data

from cell_attention import CellAttentionWarning, CellComplex, lift, load_dataset
from cell_attention.errors import CellAttentionError, InputError
from cell_attention.topology.statistics import statistics

Same = Callable[[CellComplex, CellComplex], None]

COUNTS = {
    # graphs, classes, node labels, edge labels, edges, polygons of 3/4/5/6 edges, lower pairs,
    # upper pairs, edges without upper neighbour, isolated nodes, graphs without a polygon
    "MUTAG": (188, [63, 125], 7, 4, 3_721, [0, 0, 68, 470], 10_856, 15_460, 992, 0, 0),
    "PTC_MM": (336, [207, 129], 20, 4, 4_812, [15, 5, 66, 377], 13_108, 12_536, 2_388, 0, 95),
    "PTC_MR": (344, [192, 152], 18, 4, 5_054, [15, 6, 72, 408], 13_918, 13_488, 2_475, 0, None),
    "PROTEINS": (
        1_113, [663, 450], 3, 0, 81_044, [30_501, 15_671, 6_328, 9_709],
        499_732, 583_626, 5_275, 5, 1,
    ),
    "NCI1": (
        4_110, [2_053, 2_057], 37, 0, 132_753, [186, 145, 3_087, 10_948],
        383_116, 391_188, 57_057, 428, 109,
    ),
    "NCI109": (
        4_127, [2_048, 2_079], 38, 0, 132_604, [183, 144, 3_078, 11_159],
        383_814, 397_116, 56_085, 474, 119,
    ),
}  # fmt: skip
AVERAGES = {
    "MUTAG": (17.931, 19.793), "PTC_MM": (13.973, 14.321), "PROTEINS": (39.058, 72.816),
    "NCI1": (29.865, 32.300), "NCI109": (29.681, 32.131), "PTC_MR": (14.288, 14.692),
}  # fmt: skip
MULTIPLICITY = {
    "MUTAG": 15_460, "PTC_MM": 12_780, "PTC_MR": 13_842, "NCI1": 393_036, "NCI109": 399_156,
    "PROTEINS": 788_888,
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_lifting_reproduces_every_published_count(name: str, data_dir: Path) -> None:
    complexes = load_dataset(name, data_dir=data_dir)
    counted = statistics(complexes, 6)
    graphs, classes, node_labels, edge_labels, edges, sizes, lower, upper, alone, isolated, flat = (
        COUNTS[name]
    )
    assert complexes.targets is not None
    assert complexes.targets.bincount().tolist() == classes
    assert (counted.num_complexes, counted.node_features) == (graphs, node_labels)
    assert (counted.edge_features, counted.num_edges) == (edge_labels, edges)
    assert list(counted.polygon_sizes.values()) == sizes
    assert (counted.lower_pairs, counted.upper_pairs) == (lower, upper)
    assert counted.edges_without_upper_pair == alone
    assert counted.isolated_nodes == isolated
    assert flat is None or counted.complexes_without_polygon == flat
    assert counted.complexes_without_edge == 0
    means = counted.num_nodes / graphs, counted.num_edges / graphs
    assert [f"{mean:.3f}" for mean in means] == [f"{mean:.3f}" for mean in AVERAGES[name]]
    shared = complexes.incidence(2, signed=False)
    pairs_with_multiplicity = (shared @ shared.T).sum() - shared.sum()
    assert pairs_with_multiplicity == MULTIPLICITY[name]
    assert (complexes.incidence(1) @ complexes.incidence(2)).count_nonzero() == 0


def test_the_extremes_of_proteins_are_as_published(data_dir: Path) -> None:
    complexes = load_dataset("PROTEINS", data_dir=data_dir)
    assert int(complexes.edge_complex.bincount().max()) == 1_049
    assert int(complexes.polygon_edges[0].bincount().max()) == 50


def test_a_selection_of_a_real_set_equals_lifting_those_graphs_alone(
    data_dir: Path, assert_equal: Same
) -> None:
    complexes = load_dataset("PROTEINS", data_dir=data_dir)
    chosen = torch.randperm(1_113, generator=torch.Generator().manual_seed(0))[:64]
    assert_equal(complexes[chosen], lift([complexes.skeleton(1)[int(i)] for i in chosen]))


def both_ways(edges: list[tuple[int, int]]) -> torch.Tensor:
    return torch.tensor(edges + [(v, u) for u, v in edges]).T.contiguous()


TRIANGLE = both_ways([(0, 1), (1, 2), (0, 2)])


def test_every_kind_of_graph_gives_the_same_complex(assert_equal: Same) -> None:
    graph = nx.petersen_graph()
    expected = lift(graph, degrees=4)
    index = both_ways([(int(u), int(v)) for u, v in graph.edges])
    shuffled = index[:, torch.randperm(index.size(1), generator=torch.Generator().manual_seed(0))]
    data = Data(edge_index=shuffled, num_nodes=10)
    for same in (
        data, [data], (data,), iter([data]), Batch.from_data_list([data]), expected, [expected],
        nx.to_scipy_sparse_array(graph), scipy.sparse.csr_matrix(nx.to_scipy_sparse_array(graph)),
        Data(edge_index=shuffled.to(torch.int32), num_nodes=10),
    ):  # fmt: skip
        assert_equal(lift(same, degrees=4), expected)


def test_a_batch_and_a_list_give_the_same_union(assert_equal: Same) -> None:
    listed = [
        Data(
            x=torch.full((n, 2), float(n)),
            edge_index=both_ways(list(nx.cycle_graph(n).edges)),
            y=torch.tensor([n]),
        )
        for n in (3, 5, 4)
    ]
    listed.insert(
        1, Data(x=torch.zeros(2, 2), edge_index=torch.empty(2, 0).long(), y=torch.tensor([0]))
    )
    union = lift(listed)
    assert_equal(lift(Batch.from_data_list(listed)), union)
    assert union.targets is not None
    assert union.targets.tolist() == [3, 0, 5, 4]
    assert union.node_complex.bincount().tolist() == [3, 2, 5, 4]
    assert union.polygon_sizes.tolist() == [3, 5, 4]


def test_the_molecules_of_a_string_and_of_rdkit_are_the_same(assert_equal: Same) -> None:
    from rdkit import Chem

    smiles = ["c1ccccc1", "C1CC1CO", "[Na+].[Cl-]"]
    union = lift(smiles)
    assert_equal(lift([Chem.MolFromSmiles(one) for one in smiles]), union)
    assert_equal(lift(iter(smiles)), union)
    assert_equal(lift("c1ccccc1"), union[0])
    assert union.node_complex.bincount().tolist() == [6, 5, 2]
    assert union.polygon_sizes.tolist() == [6, 3]
    assert union.edge_features is not None
    assert union.edge_features[:6].argmax(1).tolist() == [3] * 6  # aromatic
    with pytest.raises(InputError, match="molecule 1: RDKit cannot read 'C1CC'"):
        lift(["CC", "C1CC"])


def test_self_loops_repeats_and_one_way_edges_are_repaired_and_reported(assert_equal: Same) -> None:
    index = torch.tensor([[0, 1, 1, 2, 2, 0, 0, 1, 1], [1, 0, 2, 1, 0, 0, 1, 1, 2]])
    with pytest.warns(CellAttentionWarning) as caught:
        repaired = lift([nx.path_graph(2), Data(edge_index=index, num_nodes=3)])
    assert_equal(repaired, lift([nx.path_graph(2), nx.cycle_graph(3)]))
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "2 self-loops dropped (first: graph 1: edge (0, 0))" in text
    assert "2 repeated edges merged (first: graph 1: edge (0, 1))" in text
    assert "one-way edges taken as undirected" in text
    assert caught[0].filename == __file__


def test_a_directed_networkx_graph_becomes_undirected_with_a_warning(assert_equal: Same) -> None:
    with pytest.warns(CellAttentionWarning, match="3 one-way edges taken as undirected"):
        assert_equal(lift(nx.DiGraph([(0, 1), (1, 2), (2, 0)])), lift(nx.cycle_graph(3)))
    with pytest.warns(CellAttentionWarning, match="1 repeated edges merged"):
        assert_equal(lift(nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 0)])), lift(nx.cycle_graph(3)))


def test_clean_input_is_lifted_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lift(Data(edge_index=TRIANGLE, num_nodes=3))
        lift(nx.cycle_graph(4))


def test_isolated_nodes_no_edges_and_no_nodes_are_complexes_too() -> None:
    empty = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=0)
    points = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=3)
    union = lift([empty, points, Data(edge_index=TRIANGLE, num_nodes=5), Data(num_nodes=1)])
    assert union.num_complexes == 4
    assert union.node_complex.bincount(minlength=4).tolist() == [0, 3, 5, 1]
    assert union.edge_complex.tolist() == [2, 2, 2]
    assert union.betti(each=True).tolist() == [[0, 0, 0], [3, 0, 0], [3, 0, 0], [1, 0, 0]]
    nothing = lift([])
    assert (len(nothing), nothing.num_nodes, nothing.lower_pairs.shape) == (0, 0, (2, 0))
    assert nothing.betti() == (0, 0, 0)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            Data(edge_index=TRIANGLE, num_nodes=2),
            r"graph 0: edge \(1, 2\) .* names a node outside 0…1",
        ),
        (Data(edge_index=TRIANGLE - 1, num_nodes=3), r"edge \(-1, 0\)"),
        (Data(edge_index=TRIANGLE.float(), num_nodes=3), r"torch.float32: edge \(0.0, 1.0\)"),
        (Data(edge_index=TRIANGLE.bool(), num_nodes=3), "must be integers, got torch.bool"),
        (Data(edge_index=TRIANGLE.T, num_nodes=3), r"edge_index must be \(2, M\), got \(6, 2\)"),
        (Data(edge_index=TRIANGLE, edge_attr=torch.ones(3, 2), num_nodes=3),
         r"edge features must be \(6, F\)"),
        ([nx.cycle_graph(3), 17], "graph 1: cannot read a graph from int"),
        (17, "cannot read a graph from int"),
        (torch.zeros(3, 3), "cannot read a graph from Tensor"),
        (scipy.sparse.csr_array((2, 3)), "must be square"),
        ([Data(x=torch.ones(3, 2), edge_index=TRIANGLE), Data(edge_index=TRIANGLE, num_nodes=3)],
         "graph 1 has no node features, but others have"),
        ([Data(x=torch.ones(3, n), edge_index=TRIANGLE) for n in (2, 1)],
         r"graph 1: node features must be as wide as the first graph's"),
    ],
)  # fmt: skip
def test_what_cannot_be_repaired_is_refused_with_graph_and_edge(
    graph: object, message: str
) -> None:
    with pytest.raises(CellAttentionError, match=message):
        lift(graph)


def test_a_node_outside_its_graph_is_not_taken_for_a_node_of_the_next() -> None:
    wrong = Data(edge_index=both_ways([(0, 1), (1, 3)]), num_nodes=3)
    with pytest.raises(InputError, match=r"graph 1: edge \(1, 3\) names a node outside 0…2"):
        lift([nx.path_graph(2), wrong, nx.path_graph(4)])
    batch = Batch.from_data_list([Data(edge_index=TRIANGLE, num_nodes=3)] * 2)
    batch.edge_index[1, 0] = 4
    with pytest.raises(InputError, match=r"edge \(0, 4\) at position 0 joins graph 0 to graph 1"):
        lift(batch)


def test_edge_features_of_the_two_directions_merge_to_one_row_per_edge() -> None:
    features = torch.tensor([[1.0], [2.0], [3.0], [1.0], [2.0], [3.0]])
    for given in (features, features.flatten()):
        merged = lift(Data(edge_index=TRIANGLE, edge_attr=given, num_nodes=3)).edge_features
        assert merged is not None
        assert merged.flatten().tolist() == [1.0, 3.0, 2.0]  # edges (0,1), (0,2), (1,2)


def test_directions_that_disagree_are_refused_unless_a_merge_is_chosen() -> None:
    features = torch.tensor([[1.0], [2.0], [3.0], [1.0], [6.0], [3.0]])
    data = Data(edge_index=TRIANGLE, edge_attr=features, num_nodes=3)
    with pytest.raises(
        InputError, match=r"graph 1: edge \(1, 2\) is listed with features that differ"
    ):
        lift([nx_with_feature(), data])
    for merge, expected in (("mean", [1.0, 3.0, 4.0]), ("first", [1.0, 3.0, 2.0])):
        merged = lift(data, edge_merge=merge).edge_features  # type: ignore[arg-type]
        assert merged is not None
        assert merged.flatten().tolist() == expected
    with pytest.raises(InputError, match="edge_merge must be"):
        lift(data, edge_merge="sum")  # type: ignore[arg-type]


def nx_with_feature() -> nx.Graph:
    graph = nx.path_graph(2)
    graph.edges[0, 1]["edge_attr"] = [0.5]
    return graph


def test_nan_in_both_directions_is_no_disagreement_and_gradients_pass_through() -> None:
    features = torch.tensor([[float("nan")], [2.0], [3.0], [float("nan")], [2.0], [3.0]])
    features.requires_grad_()
    x = torch.ones(3, 2, requires_grad=True)
    lifted = lift(Data(x=x, edge_index=TRIANGLE, edge_attr=features))
    assert lifted.edge_features is not None
    (lifted.edge_features[1:].sum() + lifted.node_features.sum()).backward()
    assert features.grad is not None
    assert x.grad is not None


def test_integer_edge_features_are_refused_with_a_hint() -> None:
    data = Data(edge_index=TRIANGLE, edge_attr=torch.tensor([0, 1, 2, 0, 1, 2]), num_nodes=3)
    with pytest.raises(InputError, match=r"must be floating point, got torch.int64; .*one_hot"):
        lift(data)


def test_labels_of_nodes_are_not_taken_for_targets() -> None:
    assert lift(Data(edge_index=TRIANGLE, num_nodes=3, y=torch.tensor([0, 1, 0]))).targets is None
    scalar = lift(Data(edge_index=TRIANGLE, num_nodes=3, y=torch.tensor(1.5))).targets
    assert scalar is not None
    assert scalar.tolist() == [1.5]
    values = lift(Data(edge_index=TRIANGLE, num_nodes=3, y=torch.ones(1, 4))).targets
    assert values is not None
    assert values.shape == (1, 4)


def test_the_pairs_agree_with_the_line_graph_of_networkx() -> None:
    graph = nx.gnp_random_graph(20, 0.3, seed=4)
    one = lift(graph)
    names = [tuple(edge) for edge in one.edge_nodes.T.tolist()]
    line = nx.line_graph(graph)
    expected = {
        (tuple(sorted(a)), tuple(sorted(b))) for u, v in line.edges for a, b in ((u, v), (v, u))
    }
    assert {(names[e], names[k]) for e, k in one.lower_pairs.T.tolist()} == expected
    for pairs in (one.lower_pairs, one.upper_pairs):
        listed = pairs.T.tolist()
        assert listed == sorted(listed)
        assert len({tuple(pair) for pair in listed}) == len(listed)
        assert not bool((pairs[0] == pairs[1]).any())


def test_index_arrays_of_numpy_scalars_do_not_leak_into_messages() -> None:
    with pytest.raises(InputError) as caught:
        lift(Data(edge_index=torch.tensor([[0], [np.int64(5)]]), num_nodes=2))
    assert "np." not in str(caught.value)


def test_a_batch_vector_that_does_not_fit_its_graphs_is_refused() -> None:
    for batch, message in (
        (torch.tensor([0, 1, 0]), "must be non-negative and non-decreasing"),
        (torch.tensor([-1, 0, 0]), "must be non-negative and non-decreasing"),
        (torch.tensor([0, 0]), r"batch must be \(3,\), got \(2,\)"),
        (torch.tensor([0, 0, 10**10]), "batch names 10,000,000,001 graphs, more than"),
        (torch.tensor([0.0, 0.0, 1.0]), "batch must be integers, got torch.float32"),
    ):
        with pytest.raises(InputError, match=message):
            lift(Data(edge_index=TRIANGLE, num_nodes=3, batch=batch))
    by_hand = lift(Data(edge_index=TRIANGLE, num_nodes=4, batch=torch.tensor([0, 0, 0, 2])))
    assert by_hand.num_complexes == 3


def test_a_graph_without_edges_needs_no_edge_features_beside_graphs_that_have_them() -> None:
    featured = Data(edge_index=TRIANGLE, edge_attr=torch.ones(6, 2), num_nodes=3)
    union = lift([Data(num_nodes=1), featured])
    assert union.edge_features is not None
    assert union.edge_features.shape == (3, 2)


def test_an_error_in_the_callers_own_generator_is_seen() -> None:
    def graphs() -> Iterator[nx.Graph]:
        yield nx.cycle_graph(3)
        raise TypeError("my own bug")

    with pytest.raises(TypeError, match="my own bug"):
        lift(graphs())


def test_repairs_are_counted_where_they_are_and_not_where_they_are_not() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lift([nx.cycle_graph(3), Data(edge_index=TRIANGLE, num_nodes=3)])
    with pytest.warns(CellAttentionWarning, match=r"^1 repeated edges merged"):
        lift(Data(edge_index=torch.tensor([[0, 0, 1], [1, 1, 0]]), num_nodes=2))


def test_targets_that_do_not_fit_are_left_out_with_a_warning() -> None:
    with pytest.warns(CellAttentionWarning, match=r"y of shape \(4,\) is left out"):
        assert lift(Data(edge_index=TRIANGLE, num_nodes=3, y=torch.ones(4))).targets is None
    one, none = Data(num_nodes=1, y=torch.ones(1)), Data(edge_index=TRIANGLE, num_nodes=3)
    with pytest.warns(CellAttentionWarning, match="targets left out: graph 1 has none"):
        assert lift([one, none]).targets is None


def test_molecules_and_other_graphs_may_be_mixed_in_one_list(assert_equal: Same) -> None:
    assert_equal(lift([lift("CC"), "CCO"]), lift(["CC", "CCO"]))
