from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import families
from cell_attention import CellComplex, lift
from cell_attention.errors import InputError, SelectionError
from cell_attention.topology.interop import polygon_tuples

Same = Callable[[CellComplex, CellComplex], None]


def with_signals(complexes: CellComplex) -> CellComplex:
    """Distinct features on all three ranks, and targets."""

    def numbers(count: int, width: int) -> torch.Tensor:
        return torch.arange(count * width, dtype=torch.float32).reshape(count, width)

    return replace(
        complexes,
        node_features=numbers(complexes.num_nodes, 2),
        edge_features=numbers(complexes.num_edges, 3),
        polygon_features=numbers(complexes.num_polygons, 1),
        targets=torch.arange(complexes.num_complexes),
    )


GRAPHS = families.graphs(200, seed=1)
COMPLEXES = with_signals(lift(GRAPHS))


def test_edges_and_polygons_are_in_the_canonical_order() -> None:
    small, large = COMPLEXES.edge_nodes
    assert bool((small < large).all())
    keys = list(zip(COMPLEXES.edge_complex.tolist(), small.tolist(), large.tolist(), strict=True))
    assert keys == sorted(set(keys))
    polygons = polygon_tuples(COMPLEXES)
    assert polygons == [families.canonical(list(polygon)) for polygon in polygons]
    order = [
        (number, len(polygon), polygon)
        for number, polygon in zip(COMPLEXES.polygon_complex.tolist(), polygons, strict=True)
    ]
    assert order == sorted(set(order))


@given(st.lists(st.integers(-200, 199), max_size=12))
@settings(deadline=None, max_examples=60)
def test_a_selection_equals_lifting_those_graphs_alone(chosen: list[int]) -> None:
    selected = lift(GRAPHS)[chosen]
    alone = lift([GRAPHS[number] for number in chosen])
    assert selected.num_complexes == len(chosen)
    for name, value in alone.tensors().items():
        assert torch.equal(getattr(selected, name), value), name
    assert torch.equal(selected.lower_pairs, alone.lower_pairs)
    assert torch.equal(selected.upper_pairs, alone.upper_pairs)


def test_every_way_to_name_the_same_complexes_selects_the_same(assert_equal: Same) -> None:
    expected = COMPLEXES[[3, 4, 5]]
    mask = np.zeros(200, bool)
    mask[3:6] = True
    for chosen in (
        slice(3, 6), torch.tensor([3, 4, 5]), np.array([3, 4, 5]), mask, torch.from_numpy(mask),
        (3, 4, 5), range(3, 6), [-197, -196, -195], torch.tensor([3, 4, 5], dtype=torch.int32),
    ):  # fmt: skip
        assert_equal(COMPLEXES[chosen], expected)
    assert_equal(COMPLEXES[5:2:-1], COMPLEXES[[5, 4, 3]])
    assert_equal(COMPLEXES[-1], COMPLEXES[[199]])
    assert len(COMPLEXES[[]]) == 0
    assert len(COMPLEXES[np.int64(3)]) == 1
    assert_equal(next(iter(COMPLEXES)), COMPLEXES[0])


def test_signals_and_targets_follow_a_selection_with_repeats() -> None:
    picked = COMPLEXES[[7, 2, 7]]
    assert picked.targets is not None
    assert picked.targets.tolist() == [7, 2, 7]
    for number, one in enumerate((7, 2, 7)):
        for name in ("node", "edge", "polygon"):
            rows = getattr(picked, f"{name}_features")[getattr(picked, f"{name}_complex") == number]
            assert torch.equal(rows, getattr(COMPLEXES[one], f"{name}_features"))


@pytest.mark.parametrize("wrong", [200, -201, [0, 200]])
def test_a_complex_that_does_not_exist_is_named(wrong: int | list[int]) -> None:
    with pytest.raises(SelectionError, match=r"complex (200|-201) does not exist: there are 200"):
        COMPLEXES[wrong]


def test_a_selection_by_the_wrong_kind_of_thing_is_refused() -> None:
    with pytest.raises(InputError, match="mask must have 200 entries, got 3"):
        COMPLEXES[torch.tensor([True, False, True])]
    with pytest.raises(InputError, match="must be integers or a mask"):
        COMPLEXES[torch.tensor([1.0])]
    with pytest.raises(InputError, match="uint8 could be a mask or indices"):
        COMPLEXES[torch.ones(200, dtype=torch.uint8)]
    with pytest.raises(InputError, match=r"device must name a device, got torch.float64"):
        COMPLEXES.to(torch.float64)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one dimension"):
        COMPLEXES[torch.tensor([[1]])]
    for wrong in ("MUTAG", None, [[1], [2, 3]]):
        with pytest.raises(InputError, match="must be integers or a mask"):
            COMPLEXES[wrong]  # type: ignore[index]


@given(st.integers(0, 199), st.floats(0, 1), st.integers(0, 2**31))
@settings(deadline=None, max_examples=150)
def test_restricting_keeps_what_a_complex_built_from_the_remaining_cells_has(
    number: int, share: float, seed: int
) -> None:
    one = COMPLEXES[number]
    kept = np.flatnonzero(np.random.default_rng(seed).random(one.num_edges) < share)
    left = one.restrict(kept)
    edges = {tuple(edge) for edge in one.edge_nodes[:, kept].T.tolist()}
    whole = [
        row
        for row, polygon in enumerate(polygon_tuples(one))
        if all(
            (min(u, v), max(u, v)) in edges
            for u, v in zip(polygon, polygon[1:] + polygon[:1], strict=True)
        )
    ]
    expected = CellComplex.from_cells(
        one.edge_nodes[:, kept].T,
        [polygon_tuples(one)[row] for row in whole],
        node_features=one.node_features,
        edge_features=one.edge_features[kept] if one.edge_features is not None else None,
        polygon_features=one.polygon_features[whole] if one.polygon_features is not None else None,
        targets=one.targets,
    )
    for name, value in expected.tensors().items():
        assert torch.equal(getattr(left, name), value), name
    assert abs(left.incidence(1) @ left.incidence(2)).sum() == 0
    assert left.num_nodes == one.num_nodes
    # No upper pair without an intact polygon, from the matrix rather than from the kernel.
    sides = left.incidence(2, signed=False).toarray()
    supported = (sides @ sides.T > 0) & ~np.eye(left.num_edges, dtype=bool)
    assert {tuple(pair) for pair in left.upper_pairs.T.tolist()} == set(
        zip(*map(np.ndarray.tolist, supported.nonzero()), strict=True)
    )


def test_two_polygons_on_a_pair_keep_it_alive_when_one_of_them_goes() -> None:
    # Two squares share the path 0-1-2; its two edges are one upper pair with two supports.
    book = CellComplex.from_cells(
        [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 0)], [(0, 1, 2, 3), (0, 1, 2, 4)]
    )
    names = [tuple(edge) for edge in book.edge_nodes.T.tolist()]
    pair = [names.index((0, 1)), names.index((1, 2))]
    assert book.upper_pairs.T.tolist().count(pair) == 1
    left = book.restrict([row for row, edge in enumerate(names) if edge != (2, 4)])
    assert left.num_polygons == 1
    assert left.upper_pairs.size(1) == 4 * 3
    none = left.restrict(range(1, 5))
    assert none.num_polygons == 0
    assert none.upper_pairs.size(1) == 0


def test_restricting_by_a_mask_or_by_indices_is_the_same_and_bad_ones_are_refused(
    assert_equal: Same,
) -> None:
    mask = torch.arange(COMPLEXES.num_edges) % 3 > 0
    assert_equal(COMPLEXES.restrict(mask), COMPLEXES.restrict(mask.nonzero().squeeze(1)))
    assert_equal(COMPLEXES.restrict(torch.ones_like(mask)), COMPLEXES)
    with pytest.raises(InputError, match="increase strictly"):
        COMPLEXES.restrict([3, 2])
    with pytest.raises(InputError, match="increase strictly"):
        COMPLEXES.restrict([2, 2])
    with pytest.raises(SelectionError, match="kept_edges must lie in"):
        COMPLEXES.restrict([COMPLEXES.num_edges])


def test_skeletons_have_no_cells_above_their_rank() -> None:
    points, graph = COMPLEXES.skeleton(0), COMPLEXES.skeleton(1)
    assert (points.num_nodes, points.num_edges, points.num_polygons) == (COMPLEXES.num_nodes, 0, 0)
    assert (graph.num_edges, graph.num_polygons) == (COMPLEXES.num_edges, 0)
    assert COMPLEXES.skeleton(2) is COMPLEXES
    with pytest.raises(SelectionError, match="rank must be 0, 1 or 2, got 3"):
        COMPLEXES.skeleton(3)


def test_nothing_can_be_assigned_and_misshapen_features_are_refused() -> None:
    with pytest.raises(FrozenInstanceError):
        COMPLEXES.node_features = torch.zeros(1)  # type: ignore[misc]
    one = lift(nx.cycle_graph(5))
    with pytest.raises(InputError, match=r"edge_features must be \(5, F\), got \(4, 1\)"):
        replace(one, edge_features=torch.zeros(4, 1))


def test_indices_out_of_range_are_an_error_and_not_a_crash() -> None:
    one = lift(nx.complete_graph(4))
    wild = replace(one, edge_nodes=one.edge_nodes + 10**9)
    for use in (lambda c: c.lower_pairs, lambda c: c.betti(), lambda c: lift(c)):
        with pytest.raises(InputError, match="edge_nodes must lie in 0…3"):
            use(wild)
    sides = one.polygon_edges.clone()
    sides[0, 0] = -5
    for use in (lambda c: c.upper_pairs, lambda c: c.betti()):
        with pytest.raises(InputError, match="polygon_edges must lie in 0…5"):
            use(replace(one, polygon_edges=sides))


def test_what_a_complex_hands_out_cannot_be_used_to_change_it() -> None:
    one = lift(nx.complete_graph(4))
    for handed in (one.boundary(1, 0), one.boundary(2, 0), one.coboundary(0, 0)):
        handed[:] = 99
    assert one.betti() == lift(nx.complete_graph(4)).betti()
    assert one.boundary(2, 0).max() < 6
    with pytest.raises(InputError, match=r"edge must be an integer, got 1.5"):
        one.boundary(1, 1.5)  # type: ignore[arg-type]
    with pytest.raises(SelectionError, match=r"rank must be 0, 1 or 2, got 1.0"):
        one.adjacency(1.0, "lower")  # type: ignore[arg-type]


def test_selections_by_unusual_arrays_are_taken(assert_equal: Same) -> None:
    backwards = np.arange(5)[::-1]
    frozen = np.array([4, 3, 2, 1, 0])
    frozen.flags.writeable = False
    assert_equal(COMPLEXES[backwards], COMPLEXES[[4, 3, 2, 1, 0]])
    assert_equal(COMPLEXES[frozen], COMPLEXES[[4, 3, 2, 1, 0]])


def test_moving_to_another_device_takes_everything_along() -> None:
    one = with_signals(lift(nx.complete_graph(5)))
    pairs = one.lower_pairs
    moved = one.to("meta")
    assert moved.device.type == "meta"
    assert all(value.device.type == "meta" for value in moved.tensors().values())
    assert moved.lower_pairs.shape == pairs.shape
    assert moved.lower_pairs.device.type == "meta"


@given(st.integers(0, 199), st.integers(0, 2**31))
@settings(deadline=None, max_examples=100)
def test_relabelling_nodes_gives_an_isomorphic_complex(number: int, seed: int) -> None:
    graph = GRAPHS[number]
    names = np.random.default_rng(seed).permutation(len(graph)).tolist()
    renamed = nx.Graph()
    renamed.add_nodes_from(range(len(graph)))
    renamed.add_edges_from((names[u], names[v]) for u, v in graph.edges)
    before, after = lift(graph, max_polygon=8), lift(renamed, max_polygon=8)

    def cells(complexes: CellComplex, rename: list[int]) -> tuple[set[object], ...]:
        edges = [frozenset(rename[v] for v in e) for e in complexes.edge_nodes.T.tolist()]
        polygons = {frozenset(rename[v] for v in p) for p in polygon_tuples(complexes)}
        pairs = (complexes.lower_pairs.T.tolist(), complexes.upper_pairs.T.tolist())
        return set(edges), polygons, *({(edges[e], edges[k]) for e, k in side} for side in pairs)

    assert cells(before, names) == cells(after, list(range(len(graph))))
    assert before.num_polygons == after.num_polygons
    assert before.betti() == after.betti()


def test_polygons_with_chords_and_any_direction_come_in_through_from_cells() -> None:
    edges = [(3, 2), (0, 1), (2, 1), (0, 3), (0, 2)]
    features = torch.tensor([[32.0], [1.0], [21.0], [3.0], [2.0]])
    square = CellComplex.from_cells(
        edges, [(2, 1, 0, 3), (2, 0, 1)], edge_features=features,
        polygon_features=torch.tensor([[4.0], [3.0]]),
    )  # fmt: skip
    assert polygon_tuples(square) == [(0, 1, 2), (0, 1, 2, 3)]
    assert square.polygon_features is not None
    assert square.edge_features is not None
    assert square.polygon_features.flatten().tolist() == [3.0, 4.0]
    assert square.edge_features.flatten().tolist() == [1.0, 2.0, 3.0, 21.0, 32.0]
    assert abs(square.incidence(1) @ square.incidence(2)).sum() == 0


def test_from_cells_joins_several_complexes_and_keeps_empty_ones() -> None:
    union = CellComplex.from_cells(
        [(3, 4), (4, 5), (5, 3), (0, 1), (1, 2), (2, 0)], [(5, 4, 3), (1, 0, 2)],
        node_complex=torch.tensor([0, 0, 0, 2, 2, 2]), targets=torch.tensor([1, 0, 1, 0]),
    )  # fmt: skip
    assert union.num_complexes == 4
    assert union.polygon_complex.tolist() == [0, 2]
    assert union.betti(each=True).tolist() == [[1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("wrong", [-1, 2.5, 10**12])
def test_an_invalid_number_of_nodes_is_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="num_nodes must be an integer"):
        CellComplex.from_cells([], num_nodes=wrong)  # type: ignore[arg-type]


def test_one_complex_takes_one_row_of_targets() -> None:
    with pytest.raises(InputError, match=r"targets must be \(1, …\), got \(3,\)"):
        CellComplex.from_cells([(0, 1)], targets=torch.zeros(3))


@pytest.mark.parametrize(
    ("edges", "polygons", "message"),
    [
        ([(0, 1), (1, 0)], [], r"edge \(0, 1\) is given 2 times"),
        ([(1, 1)], [], r"edge \(1, 1\) joins a node to itself"),
        ([(0, 1, 2)], [], r"edges must be \(E, 2\)"),
        ([(0.0, 1.0)], [], "edges must be integers"),
        ([(0, -1)], [], "names a node outside"),
        ([(0, 1), (1, 2)], [(0, 1, 2)], r"polygon \(0, 1, 2\) is not closed"),
        ([(0, 1), (1, 2), (0, 2)], [(0, 1)], "has fewer than 3 nodes"),
        ([(0, 1), (1, 2), (0, 2)], [(0, 1, 2, 1)], "visits a node twice"),
        ([(0, 1), (1, 2), (0, 2)], [(0, 1, -2)], "names a node that does not exist"),
        ([(0, 1), (1, 2), (0, 2)], [(0, 1, 2), (2, 1, 0)], r"polygon \(0, 1, 2\) is given twice"),
        ([(0, 1), (1, 2, 3)], [], "sequences of different lengths"),
        (None, [], r"edges must be \(E, 2\), got NoneType"),
        ([(0, 1)], [3], "polygons must be sequences of nodes"),
        ([(0, 10**12)], [], "num_nodes must be an integer from 0 to 100,000,000"),
    ],
)
def test_cells_that_make_no_complex_are_refused(
    edges: list[tuple[int, ...]], polygons: list[tuple[int, ...]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        CellComplex.from_cells(edges, polygons)


def test_a_complex_describes_itself_in_one_line() -> None:
    assert repr(lift(nx.cycle_graph(5))) == (
        "CellComplex(1 complexes: 5 nodes (0,), 5 edges, 1 polygons)"
    )
