import resource
import time

import networkx as nx
import numpy as np
import pytest

import families
from cell_attention import Limits, lift
from cell_attention.errors import InputError, LimitError
from cell_attention.topology.interop import polygon_tuples


def test_cycles_of_2000_graphs_equal_those_of_networkx_for_every_length_bound() -> None:
    graphs = families.graphs(2000)
    expected = [families.cycles_by_networkx(graph, 8) for graph in graphs]
    first_node = np.cumsum([0, *map(len, graphs)])
    for longest in range(3, 9):
        complexes = lift(graphs, max_polygon=longest)
        found: list[list[tuple[int, ...]]] = [[] for _ in graphs]
        for polygon, number in zip(
            polygon_tuples(complexes), complexes.polygon_complex.tolist(), strict=True
        ):
            found[number].append(tuple(node - int(first_node[number]) for node in polygon))
        for number, cycles in enumerate(expected):
            assert found[number] == [c for c in cycles if len(c) <= longest], (number, longest)
    assert sum(map(len, expected)) > 15_000


def test_a_ring_longer_than_the_bound_gets_no_polygon() -> None:
    assert lift(nx.cycle_graph(7), max_polygon=6).num_polygons == 0
    assert lift(nx.cycle_graph(7), max_polygon=7).num_polygons == 1


@pytest.mark.parametrize("wrong", [2, 0, -1, 6.0, "6", True])
def test_a_bound_below_three_is_refused(wrong: object) -> None:
    rule = "be a whole number" if type(wrong) is not int else "be an integer of at least 3"
    with pytest.raises(InputError, match=f"max_polygon must {rule}"):
        lift(nx.cycle_graph(5), max_polygon=wrong)  # type: ignore[arg-type]


def test_many_cycles_from_one_start_outgrow_the_first_buffer() -> None:
    # K₁ ∨ C₄₀₀: every rim edge makes a triangle with the hub, and all of them start at node 0.
    complexes = lift(nx.wheel_graph(401), max_polygon=3)
    assert complexes.num_polygons == 400
    assert lift(nx.complete_graph(60), max_polygon=8).num_polygons == 60 * 59 * 58 // 6


def hostile() -> dict[str, nx.Graph]:
    star = nx.relabel_nodes(nx.star_graph(100_000), {0: 100_001})
    legs = nx.Graph()  # a hub with long loops: no short cycle, but a sea of paths through the hub
    for leg in range(3_000):
        nx.add_cycle(legs, ["hub", *((leg, step) for step in range(12))])
    return {
        "K60": nx.complete_graph(60),
        "star": star,
        "king's grid": nx.strong_product(nx.path_graph(100), nx.path_graph(100)),
        "bipartite": nx.complete_bipartite_graph(300, 300),
        "spider": legs,
        "random regular": nx.random_regular_graph(24, 2_000, seed=0),
    }


@pytest.mark.parametrize("name", hostile())
def test_a_hostile_graph_ends_in_an_answer_or_a_clear_error_with_bounded_memory(name: str) -> None:
    graph = hostile()[name]
    lift(nx.cycle_graph(5))  # compile outside the measured part
    peak_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    if name in ("K60", "king's grid"):
        assert lift(graph, max_polygon=8).num_edges == graph.number_of_edges()
    else:
        with pytest.raises(LimitError, match=r"graph 0.*Limits\."):
            lift(graph, max_polygon=8, limits=Limits(steps=300_000_000))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_before
    assert grown < 2**20  # kibibytes
    assert time.monotonic() - began < 120  # an endless loop, not a slow machine


def test_the_limit_error_names_the_graph_that_breaks_it() -> None:
    graphs = [nx.cycle_graph(4), nx.complete_graph(10), nx.cycle_graph(4)]
    with pytest.raises(LimitError, match="graph 1 has more than 100 chordless cycles"):
        lift(graphs, limits=Limits(polygons=100))
    with pytest.raises(LimitError, match="graph 1 has 720 lower pairs"):
        lift(graphs, limits=Limits(pairs=600))
    with pytest.raises(LimitError, match=r"graph 1: the search .* did not end within 50 steps"):
        lift(graphs, limits=Limits(steps=50))
    octahedra = [nx.cycle_graph(8), nx.cycle_graph(20)]
    with pytest.raises(LimitError, match="graph 1 has more than 100 upper pairs"):
        lift(octahedra, max_polygon=20, limits=Limits(pairs=100))


def test_limits_count_per_graph_and_not_over_the_union() -> None:
    graphs = [nx.complete_graph(6)] * 50
    assert lift(graphs, limits=Limits(polygons=20, pairs=120)).num_polygons == 50 * 20


def test_a_tree_of_a_million_paths_costs_no_steps() -> None:
    # All of it is peeled off before the search: a star has n²/2 paths of length two.
    star = nx.relabel_nodes(nx.star_graph(3_000), {0: 3_001})
    assert lift(star, limits=Limits(steps=1)).num_polygons == 0


def test_a_bound_beyond_all_graphs_costs_no_memory_and_finds_the_longest_ring() -> None:
    assert lift([nx.cycle_graph(30), nx.path_graph(2)], max_polygon=10**12).num_polygons == 1
    assert lift(nx.path_graph(2), max_polygon=10**12).num_polygons == 0
    assert lift([], max_polygon=10**12).num_polygons == 0


def test_long_polygons_are_stopped_by_their_pairs_before_they_fill_the_memory() -> None:
    # A ring of diamonds on long paths: 2²² cycles of more than a thousand nodes each.
    graph, last = nx.Graph(), 0
    for _ in range(22):
        here = len(graph) + 1
        nx.add_path(graph, [last, here, here + 1, here + 3])
        nx.add_path(graph, [here, here + 2, here + 3])
        nx.add_path(graph, range(here + 3, here + 64))
        last = here + 63
    graph.add_edge(last, 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LimitError, match=r"graph 0 has more than 20,000,000 upper pairs"):
        lift(graph, max_polygon=3_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**19


def test_whole_numbers_of_numpy_count_as_numbers() -> None:
    one = lift(nx.cycle_graph(5), max_polygon=np.int64(5), limits=Limits(pairs=np.int64(100)))  # type: ignore[arg-type]
    assert one.num_polygons == 1
    assert one.laplacian(np.int64(1)).shape == (5, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"pairs": -1}, {"polygons": 2**63}, {"steps": 1.5}])
def test_limits_that_are_not_counts_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(LimitError, match=r"Limits\.(pairs|polygons|steps) must be an integer"):
        Limits(**wrong)
