"""The parts of lifting and of batching, one by one, on NCI1 or else on the bundled MUTAG."""

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from cell_attention import CellComplex, Limits, load_dataset
from cell_attention.data.sources import known_names
from cell_attention.topology import pairs
from cell_attention.topology.compiled import as_array
from cell_attention.topology.cycles import chordless_cycles
from cell_attention.topology.edges import canonical_edges


@pytest.fixture(scope="module")
def complexes() -> CellComplex:
    torch.set_num_threads(1)
    return load_dataset("NCI1" if "NCI1" in known_names() else "MUTAG")


def test_canonical_edges(benchmark: BenchmarkFixture, complexes: CellComplex) -> None:
    edge_nodes = as_array(torch.cat([complexes.edge_nodes, complexes.edge_nodes.flip(0)], 1))
    found = benchmark(canonical_edges, edge_nodes, as_array(complexes.node_complex))
    assert found.edge_nodes.shape[1] == complexes.num_edges


def test_cycle_search(benchmark: BenchmarkFixture, complexes: CellComplex) -> None:
    arrays = as_array(complexes.edge_nodes), as_array(complexes.node_complex)
    found = benchmark(chordless_cycles, *arrays, 6, limits=Limits())
    assert found.sizes.size == complexes.num_polygons


def test_lower_pairs(benchmark: BenchmarkFixture, complexes: CellComplex) -> None:
    benchmark(pairs.lower_pairs, as_array(complexes.edge_nodes), complexes.num_nodes)


def test_upper_pairs(benchmark: BenchmarkFixture, complexes: CellComplex) -> None:
    sides = as_array(complexes.polygon_edges)
    benchmark(pairs.upper_pairs, sides, complexes.num_edges, complexes.num_polygons)


def test_selecting_a_batch_of_128(benchmark: BenchmarkFixture, complexes: CellComplex) -> None:
    chosen = torch.randperm(len(complexes), generator=torch.Generator().manual_seed(0))[:128]
    assert len(benchmark(lambda: complexes[chosen])) == 128


def test_restricting_to_three_quarters(benchmark: BenchmarkFixture, complexes: CellComplex) -> None:
    batch = complexes[:128]
    kept = torch.arange(batch.num_edges)[torch.arange(batch.num_edges) % 4 > 0]
    assert benchmark(batch.restrict, kept).num_edges == kept.numel()
