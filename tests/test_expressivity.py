"""What the network tells apart and what it cannot (the limit of weights that sum to one)."""

import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
import torch
from torch import Tensor

from cell_attention import CellAttentionNetwork, CellComplex, NetworkConfig, lift
from cell_attention.models.registry import build_network, defaults, sizes_of

DOCUMENT = Path(__file__).parents[1] / "docs" / "network.md"


def documented() -> dict[str, tuple[int, int, int]]:
    """Graphs, pairs and pairs told apart of every family in the documentation's table."""
    rows = re.findall(r"^\| (sr\d+) \| (\d+) \| (\d+) \| (\d+) \|$", DOCUMENT.read_text(), re.M)
    return {name: (int(graphs), int(pairs), int(apart)) for name, graphs, pairs, apart in rows}


def constant(graphs: list[nx.Graph], max_polygon: int = 4) -> CellComplex:
    complexes = lift(graphs, max_polygon)
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
    config = NetworkConfig.edges(max_polygon=4, pooling=pooling, norm="none")  # type: ignore[arg-type]
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
    network = CellAttentionNetwork(
        NetworkConfig.edges(pooling="none", norm="none"), 1, 0, 4
    ).double()
    with torch.no_grad():
        outputs = network.eval()(constant([nx.complete_graph(6), nx.octahedral_graph()]))
    assert float((outputs[0] - outputs[1]).abs().max() / outputs.abs().max()) > 1e-6


# Rivals -----------------------------------------------------------------------------------------

RIVALS = Path(__file__).parents[1] / "docs" / "baselines.md"


def rival_outputs(name: str, graphs: list[nx.Graph], max_polygon: int) -> Tensor:
    """What an untrained rival says of graphs whose nodes are all alike."""
    torch.manual_seed(0)
    config = replace(defaults(name, "")[0], max_polygon=max_polygon)
    network = (
        build_network(name, config, sizes_of(name, constant(graphs[:1], max_polygon), 4))
        .double()
        .eval()
    )
    chunks = [graphs[first : first + 16] for first in range(0, len(graphs), 16)]
    with torch.no_grad():
        return torch.cat([network(constant(chunk, max_polygon)) for chunk in chunks])


def skeleton(smiles: str) -> nx.Graph:
    return nx.from_edgelist(lift(smiles).edge_nodes.T.tolist())


def test_decalin_and_bicyclopentyl_are_told_apart_by_cells_and_counts_but_not_by_gin() -> None:
    graphs = [skeleton("C1CCC2CCCCC2C1"), skeleton("C1CCC(C1)C1CCCC1")]
    for graph in graphs:
        nx.set_node_attributes(graph, "C", "element")
    hashes = [nx.weisfeiler_lehman_graph_hash(graph, node_attr="element") for graph in graphs]
    assert hashes[0] == hashes[1]
    for name, apart in (("gin", 0), ("gat", 0), ("sin", 0), ("gsn", 1), ("cin", 1)):
        largest = 3 if name == "sin" else 6
        assert told_apart(rival_outputs(name, graphs, largest)) == apart, name


def test_ppgn_is_as_strong_as_the_test_of_weisfeiler_and_leman_on_triples(data_dir: Path) -> None:
    """It tells regular graphs apart that refinement of nodes does not, but no strongly regular ones
    of the same parameters.
    """
    circulant = [nx.circulant_graph(41, [1, step]) for step in (2, 3)]
    rook = nx.read_graph6(data_dir / "SR_graphs" / "sr16622.g6")
    for name, apart in (("gin", 0), ("ign", 0), ("ppgn", 1)):
        assert told_apart(rival_outputs(name, circulant, 3)) == apart, name
        assert told_apart(rival_outputs(name, rook, 3)) == 0, name
    # What is next to an edge differs in both pairs.
    assert told_apart(rival_outputs("ngn", circulant, 3)) == 1
    assert told_apart(rival_outputs("ngn", rook, 3)) == 1


def rivals_documented() -> dict[str, list[int]]:
    """Family → pairs, and those that GIN, GSN (4, 5) and CIN (4, 5) tell apart."""
    rows = re.findall(r"^\| (sr\d+) \|((?: \d+ \|)+)$", RIVALS.read_text(), re.M)
    return {name: [int(cell) for cell in cells.split("|") if cell.strip()] for name, cells in rows}


@pytest.mark.parametrize("family", ["sr16622", "sr251256", "sr261034", "sr281264"])
def test_cells_tell_strongly_regular_graphs_apart_and_gin_none(data_dir: Path, family: str) -> None:
    graphs = nx.read_graph6(data_dir / "SR_graphs" / f"{family}.g6")
    found = [
        told_apart(rival_outputs(name, graphs, largest))
        for name, largest in (("gin", 3), ("gsn", 4), ("gsn", 5), ("cin", 4), ("cin", 5))
    ]
    pairs = len(graphs) * (len(graphs) - 1) // 2
    assert found[0] == 0
    assert found[-1] == pairs  # all of them with polygons of up to five edges
    assert rivals_documented()[family] == [pairs, *found]


def apart(outputs: Tensor) -> Tensor:
    """(graphs, graphs) mask of the pairs whose outputs differ by more than 1e-6 of the largest."""
    least = 1e-6 * outputs.abs().max()
    return torch.stack([(outputs - row).abs().amax(1) > least for row in outputs])


@pytest.mark.parametrize("largest", [4, 5])
@pytest.mark.parametrize("family", ["sr16622", "sr251256", "sr261034", "sr281264"])
def test_attention_on_every_rank_tells_apart_all_that_cin_does(
    data_dir: Path, family: str, largest: int
) -> None:
    graphs = nx.read_graph6(data_dir / "SR_graphs" / f"{family}.g6")
    theirs = apart(rival_outputs("cin", graphs, largest))
    torch.manual_seed(0)
    network = CellAttentionNetwork(NetworkConfig(max_polygon=largest), 1, 0, 4).double().eval()
    with torch.no_grad():
        ours = apart(network(constant(graphs, largest)))
    assert bool(theirs.any())
    assert not bool((theirs & ~ours).any())
