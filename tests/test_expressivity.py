"""What the network tells apart and what it cannot (the limit of weights that sum to one)."""

from dataclasses import replace
from pathlib import Path

import networkx as nx
import torch

from cell_attention import CellAttentionNetwork, CellComplex, NetworkConfig, lift

FAMILIES = (
    "sr16622", "sr251256", "sr261034", "sr281264", "sr291467", "sr351668", "sr351899", "sr361446",
    "sr401224",
)  # fmt: skip


def constant(graphs: list[nx.Graph]) -> CellComplex:
    complexes = lift(graphs, max_polygon=4)
    return replace(complexes, node_features=torch.ones(complexes.num_nodes, 1, dtype=torch.float64))


def test_no_pair_of_a_strongly_regular_family_is_told_apart(data_dir: Path) -> None:
    torch.manual_seed(0)
    config = NetworkConfig(max_polygon=4, pooling="none", norm="none")
    network = CellAttentionNetwork(config, 1, 0, 4).double().eval()
    for name in FAMILIES:
        graphs = nx.read_graph6(data_dir / "SR_graphs" / f"{name}.g6")
        assert len(graphs) >= 2
        chunks = [graphs[first : first + 32] for first in range(0, len(graphs), 32)]
        with torch.no_grad():
            outputs = torch.cat([network(constant(chunk)) for chunk in chunks])
        spread = (outputs - outputs[0]).abs().max() / outputs.abs().max()
        assert float(spread) < 1e-6, name


def test_graphs_of_different_degree_are_told_apart_by_the_same_network() -> None:
    torch.manual_seed(0)
    network = CellAttentionNetwork(NetworkConfig(pooling="none", norm="none"), 1, 0, 4).double()
    with torch.no_grad():
        outputs = network.eval()(constant([nx.complete_graph(6), nx.octahedral_graph()]))
    assert float((outputs[0] - outputs[1]).abs().max() / outputs.abs().max()) > 1e-6
