"""Graphs of many shapes, small enough for slow oracles."""

from collections.abc import Callable

import networkx as nx
import numpy as np


def _fused_rings(random: np.random.Generator) -> nx.Graph:
    graph = nx.cycle_graph(int(random.integers(3, 8)))
    for _ in range(int(random.integers(1, 4))):
        edges = list(graph.edges)
        u, v = edges[int(random.integers(len(edges)))]
        path = [u, *range(len(graph), len(graph) + int(random.integers(1, 6))), v]
        nx.add_path(graph, path)
    return graph


def _bridged_rings(random: np.random.Generator) -> nx.Graph:
    """Two nodes joined by three or four paths, as in norbornane and other cages."""
    graph = nx.Graph()
    graph.add_nodes_from([0, 1])
    for _ in range(int(random.integers(3, 5))):
        nx.add_path(graph, [0, *range(len(graph), len(graph) + int(random.integers(1, 4))), 1])
    return graph


def _joined_by_a_bridge(random: np.random.Generator) -> nx.Graph:
    left, right = (nx.cycle_graph(int(random.integers(3, 9))) for _ in range(2))
    graph = nx.disjoint_union(left, right)
    nx.add_path(graph, [0, *range(len(graph), len(graph) + int(random.integers(0, 3))), len(left)])
    return graph


def _random(nodes: tuple[int, int], density: tuple[float, float]) -> Callable[..., nx.Graph]:
    def make(random: np.random.Generator) -> nx.Graph:
        return nx.gnp_random_graph(
            int(random.integers(*nodes)), random.uniform(*density), seed=int(random.integers(2**31))
        )

    return make


FAMILIES: dict[str, Callable[[np.random.Generator], nx.Graph]] = {
    "tree": lambda r: nx.random_labeled_tree(int(r.integers(1, 25)), seed=int(r.integers(2**31))),
    "sparse": _random((2, 25), (0.02, 0.2)),
    "dense": _random((3, 11), (0.4, 1.0)),
    "disconnected": lambda r: nx.disjoint_union_all(
        [_random((1, 9), (0.1, 0.7))(r) for _ in range(3)]
    ),
    "fused rings": _fused_rings,
    "bridged rings": _bridged_rings,
    "rings on a bridge": _joined_by_a_bridge,
    "complete": lambda r: nx.complete_graph(int(r.integers(1, 10))),
    "bipartite": lambda r: nx.complete_bipartite_graph(*(int(n) for n in r.integers(1, 6, 2))),
    "grid": lambda r: nx.convert_node_labels_to_integers(
        nx.grid_2d_graph(*(int(n) for n in r.integers(1, 6, 2)))
    ),
    "king's grid": lambda r: nx.convert_node_labels_to_integers(
        nx.strong_product(*(nx.path_graph(int(n)) for n in r.integers(2, 5, 2)))
    ),
    "Petersen": lambda r: nx.petersen_graph(),
    "cubane": lambda r: nx.cubical_graph(),
    "prism": lambda r: nx.circular_ladder_graph(int(r.integers(3, 9))),
    "wheel": lambda r: nx.wheel_graph(int(r.integers(4, 10))),
    "star": lambda r: nx.star_graph(int(r.integers(0, 12))),
    "ring": lambda r: nx.cycle_graph(int(r.integers(3, 12))),
}


def graphs(count: int, seed: int = 0) -> list[nx.Graph]:
    """`count` graphs, every family in turn, nodes relabelled at random."""
    random = np.random.default_rng(seed)
    makers = list(FAMILIES.values())
    listed = []
    for number in range(count):
        graph = makers[number % len(makers)](random)
        shuffled = nx.relabel_nodes(graph, dict(enumerate(random.permutation(len(graph)).tolist())))
        ordered = nx.Graph()
        ordered.add_nodes_from(range(len(graph)))
        ordered.add_edges_from(shuffled.edges)
        listed.append(ordered)
    return listed


def canonical(cycle: list[int]) -> tuple[int, ...]:
    """A cycle from its smallest node towards that node's smaller neighbour."""
    least = cycle.index(min(cycle))
    turned = cycle[least:] + cycle[:least]
    return tuple(turned) if turned[1] < turned[-1] else (turned[0], *turned[:0:-1])


def cycles_by_networkx(graph: nx.Graph, longest: int) -> list[tuple[int, ...]]:
    """The chordless cycles of 3…`longest` nodes, by size and then node sequence."""
    found = (c for c in nx.chordless_cycles(graph, length_bound=longest) if len(c) > 2)
    return sorted(map(canonical, found), key=lambda cycle: (len(cycle), cycle))
