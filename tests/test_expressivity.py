"""What the network tells apart and what it cannot (the limit of weights that sum to one)."""

import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
import torch
from torch import Tensor

from cell_attention import CellAttentionNetwork, CellComplex, NetworkConfig, lift

DOCUMENT = Path(__file__).parents[1] / "docs" / "network.md"


def documented() -> dict[str, tuple[int, int, int]]:
    """Graphs, pairs and pairs told apart of every family in the documentation's table."""
    rows = re.findall(r"^\| (sr\d+) \| (\d+) \| (\d+) \| (\d+) \|$", DOCUMENT.read_text(), re.M)
    return {name: (int(graphs), int(pairs), int(apart)) for name, graphs, pairs, apart in rows}


def constant(graphs: list[nx.Graph]) -> CellComplex:
    complexes = lift(graphs, max_polygon=4)
    return replace(complexes, node_features=torch.ones(complexes.num_nodes, 1, dtype=torch.float64))


def told_apart(outputs: Tensor) -> int:
    """Pairs of rows that differ by more than 1e-6 of the largest value."""
    least = 1e-6 * outputs.abs().max()
    return sum(
        int(((outputs[i + 1 :] - row).abs().amax(1) > least).sum())
        for i, row in enumerate(outputs[:-1])
    )


@pytest.mark.parametrize("pooling", ["none", "hierarchical"])
def test_no_pair_of_a_strongly_regular_family_is_told_apart(data_dir: Path, pooling: str) -> None:
    torch.manual_seed(0)
    config = NetworkConfig(max_polygon=4, pooling=pooling, norm="none")  # type: ignore[arg-type]
    network = CellAttentionNetwork(config, 1, 0, 4).double().eval()
    found = {}
    for path in sorted((data_dir / "SR_graphs").glob("*.g6")):
        graphs = nx.read_graph6(path)
        if pooling == "hierarchical" and len(graphs) > 100:
            continue
        chunks = [graphs[first : first + 32] for first in range(0, len(graphs), 32)]
        with torch.no_grad():
            outputs = torch.cat([network(constant(chunk)) for chunk in chunks])
        pairs = len(graphs) * (len(graphs) - 1) // 2
        found[path.stem] = (len(graphs), pairs, told_apart(outputs))
    expected = documented()
    assert len(expected) == 9
    if pooling == "none":
        assert found == expected
    else:
        assert found
        assert found.items() <= expected.items()


def test_graphs_of_different_degree_are_told_apart_by_the_same_network() -> None:
    torch.manual_seed(0)
    network = CellAttentionNetwork(NetworkConfig(pooling="none", norm="none"), 1, 0, 4).double()
    with torch.no_grad():
        outputs = network.eval()(constant([nx.complete_graph(6), nx.octahedral_graph()]))
    assert float((outputs[0] - outputs[1]).abs().max() / outputs.abs().max()) > 1e-6
