"""Artificial graphs whose class is decided by one known ring, which differs by its atoms.

Every graph is a chain with rings of five and six nodes on it. A ring that holds both a nitrogen and
an oxygen is the planted one; all others hold one of them at most, and the chain holds both. So
neither the count of an element nor the size of a ring decides the class.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from cell_attention.topology.complex import CellComplex
from cell_attention.topology.graphs import RawGraphs, join
from cell_attention.topology.polygons import attach_polygons

ELEMENTS = ("C", "N", "O")
"""Elements of the node features."""
RINGS = (4, 6)
"""Smallest and largest number of rings; every second graph has a planted one."""


@dataclass(frozen=True)
class Planted:
    """Graphs, half of them with a planted ring."""

    complexes: CellComplex
    """The lifted graphs; the target is whether there is a planted ring."""
    polygons: tuple[int | None, ...]
    """The planted polygon of every graph, counted within the graph."""


def planted_rings(count: int, seed: int = 0) -> Planted:
    """Generate graphs; the same seed gives the same graphs."""
    draw = random.Random(seed)
    made = [_graph(draw, planted=number % 2 == 1) for number in range(count)]
    sizes = torch.tensor([len(graph.elements) for graph in made])
    first = (sizes.cumsum(0) - sizes).tolist()
    kinds = torch.tensor([kind for graph in made for kind in graph.elements])
    edges = [
        (start + u, start + v)
        for start, graph in zip(first, made, strict=True)
        for u, v in graph.edges
    ]
    raw = RawGraphs(
        num_nodes=len(kinds),
        edge_index=torch.tensor(edges).T.contiguous(),
        node_features=torch.eye(len(ELEMENTS))[kinds],
        node_complex=torch.arange(count).repeat_interleave(sizes),
        num_graphs=count,
        lists_once=True,
    )
    targets = torch.tensor([int(graph.planted is not None) for graph in made])
    complexes = replace(attach_polygons(join([raw]).complexes, 6), targets=targets)
    places = (
        None if graph.planted is None else _place(complexes[number : number + 1], graph.planted)
        for number, graph in enumerate(made)
    )
    return Planted(complexes, tuple(places))


@dataclass(frozen=True)
class _Graph:
    elements: list[int]
    edges: list[tuple[int, int]]
    planted: frozenset[int] | None


def _graph(draw: random.Random, planted: bool) -> _Graph:
    chain = draw.randint(4, 8)
    elements = [draw.choice((0, 0, 0, 1, 2)) for _ in range(chain)]
    edges = [(node, node + 1) for node in range(chain - 1)]
    rings = list(_rings(draw, planted))
    draw.shuffle(rings)
    found = None
    for ring in rings:
        first, size = len(elements), len(ring)
        if len(set(ring)) == len(ELEMENTS):
            found = frozenset(range(first, first + size))
        elements += ring
        edges += [(first + node, first + (node + 1) % size) for node in range(size)]
        edges.append((draw.randrange(chain), first + draw.randrange(size)))
    return _Graph(elements, edges, found)


def _rings(draw: random.Random, planted: bool) -> Iterator[list[int]]:
    """Yield the elements round every ring."""
    for number in range(draw.randint(*RINGS)):
        ring = [0] * draw.choice((5, 6))
        decoy = draw.choice(([], [1], [2], [1, 1], [2, 2]))
        others = [1, 2] if planted and number == 0 else decoy
        for node, kind in zip(draw.sample(range(len(ring)), len(others)), others, strict=True):
            ring[node] = kind
        yield ring


def _place(graph: CellComplex, nodes: frozenset[int]) -> int:
    """Find the polygon with these nodes."""
    edge, polygon = graph.polygon_edges
    every = [
        frozenset(graph.edge_nodes[:, edge[polygon == number]].flatten().tolist())
        for number in range(graph.num_polygons)
    ]
    return every.index(nodes)
