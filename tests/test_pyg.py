import pickle
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
import torch
from torch.nn.functional import one_hot
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops, Compose
from torch_geometric.utils import degree

from cell_attention import (
    CellAttentionNetwork,
    CellAttentionWarning,
    CellComplex,
    CellData,
    CellularLifting,
    NetworkConfig,
    lift,
    load_dataset,
    to_pyg,
)
from cell_attention.errors import InputError

Same = Callable[[CellComplex, CellComplex], None]


def molecules() -> list[Data]:
    listed = []
    for number, graph in enumerate((nx.petersen_graph(), nx.path_graph(1), nx.complete_graph(5))):
        index = torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).T
        index = torch.cat([index, index.flip(0)], 1)
        weights = (index[0] * index[1]).float().unsqueeze(1)
        x = torch.arange(len(graph), dtype=torch.float32).unsqueeze(1) + 100 * number
        listed.append(Data(x=x, edge_index=index, edge_attr=weights, y=torch.tensor([number])))
    return listed


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_batches_lifted_graphs_into_the_lift_of_the_batch(
    workers: int, assert_equal: Same
) -> None:
    lifted = [CellularLifting()(data) for data in molecules()] * 3
    loader = DataLoader(lifted, batch_size=9, num_workers=workers)
    batch = next(iter(loader))
    assert isinstance(batch, CellData)
    assert batch.num_graphs == 9
    assert_equal(batch.complexes, lift(molecules() * 3))


def test_the_transform_runs_inside_the_workers_of_a_loader(assert_equal: Same) -> None:
    class Set(torch.utils.data.Dataset[Data]):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Data:
            return Compose([CellularLifting()])(molecules()[index])

    batches = list(DataLoader(Set(), batch_size=2, num_workers=2))
    assert_equal(batches[0].complexes, lift(molecules()[:2]))
    assert_equal(batches[1].complexes, lift(molecules()[2:]))


def test_one_lifted_graph_holds_its_complex_and_its_other_attributes(assert_equal: Same) -> None:
    data = molecules()[0]
    data.name = "Petersen"
    before = data.clone()
    lifted = CellularLifting(max_polygon=5)(data)
    assert lifted.name == "Petersen"
    assert_equal(lifted.complexes, lift(data, max_polygon=5))
    assert_equal(lift(lifted, max_polygon=5), lift(data, max_polygon=5))
    assert data.keys() == before.keys()
    assert torch.equal(data.edge_index, before.edge_index)


def test_complexes_go_to_pyg_and_back(assert_equal: Same) -> None:
    complexes = lift(molecules())
    listed = to_pyg(complexes)
    assert [data.num_nodes for data in listed] == [10, 1, 5]
    assert_equal(Batch.from_data_list(listed).complexes, complexes)
    assert_equal(lift(listed), complexes)
    assert_equal(listed[2].complexes, complexes[2])


def test_a_graph_without_features_still_batches(assert_equal: Same) -> None:
    data = [Data(edge_index=d.edge_index, num_nodes=d.num_nodes) for d in molecules()]
    batch = Batch.from_data_list([CellularLifting()(one) for one in data])
    assert_equal(batch.complexes, lift(data))


def test_moving_a_batch_moves_its_complex() -> None:
    batch = Batch.from_data_list([CellularLifting()(data) for data in molecules()])
    assert batch.to("meta").edge_nodes.device.type == "meta"


def test_attributes_of_edges_stay_beside_the_edges_they_belong_to() -> None:
    data = molecules()[0]
    order = torch.randperm(data.edge_index.size(1), generator=torch.Generator().manual_seed(0))
    data.edge_index, data.edge_attr = data.edge_index[:, order], data.edge_attr[order]
    data.edge_weight = (data.edge_index[0] * 100 + data.edge_index[1]).float()
    lifted = CellularLifting()(data)
    assert torch.equal(
        lifted.edge_weight, (lifted.edge_index[0] * 100 + lifted.edge_index[1]).float()
    )
    assert torch.equal(lifted.edge_index, data.edge_index)


def test_a_graph_that_changed_after_lifting_is_refused_and_not_read_wrong() -> None:
    lifted = CellularLifting()(molecules()[0])
    for changed in (
        lifted.subgraph(torch.arange(5)),
        AddSelfLoops()(lifted.clone()).subgraph(torch.arange(9)),
        RemoveOneEdge()(lifted.clone()),
    ):
        with pytest.raises(InputError, match="changed after it was lifted"):
            _ = changed.complexes


class RemoveOneEdge:
    def __call__(self, data: Data) -> Data:
        keep = ~(data.edge_index == torch.tensor([[0], [1]])).all(0)
        keep &= ~(data.edge_index == torch.tensor([[1], [0]])).all(0)
        data.edge_index = data.edge_index[:, keep]
        return data


def test_lifting_again_forgets_the_first_lifting(assert_equal: Same) -> None:
    first = CellularLifting(max_polygon=6)(molecules()[0])
    first.polygon_features = torch.ones(first.complexes.num_polygons, 1)
    again = CellularLifting(max_polygon=5)(first)
    assert_equal(again.complexes, lift(molecules()[0], max_polygon=5))


def test_data_sets_of_torch_and_attributes_that_are_not_tensors_are_taken(
    assert_equal: Same,
) -> None:
    listed = molecules()
    assert_equal(lift(torch.utils.data.Subset(listed, [0, 2])), lift([listed[0], listed[2]]))  # type: ignore[arg-type]
    plain = Data(x=[[1.0], [2.0]], edge_index=[[0, 1], [1, 0]], y=3, num_nodes=2)
    complexes = lift(plain)
    assert complexes.targets is not None
    assert complexes.targets.tolist() == [3]
    with pytest.raises(InputError, match="y must be numbers, got str"):
        lift(Data(edge_index=listed[0].edge_index, num_nodes=10, y="yes"))
    with pytest.raises(InputError, match="cannot read a graph from HeteroData"):
        lift(HeteroData())
    by_hand = Data(edge_index=listed[2].edge_index, num_nodes=5, batch=torch.zeros(5).long())
    by_hand.ptr = torch.tensor([0, 5])
    assert lift(by_hand).num_complexes == 1


def test_the_transform_has_a_stable_repr_survives_pickling_and_checks_its_arguments() -> None:
    transform = CellularLifting(max_polygon=8)
    assert repr(transform) == "CellularLifting(max_polygon=8, edge_merge=None)"
    assert repr(pickle.loads(pickle.dumps(transform))) == repr(transform)  # noqa: S301
    with pytest.raises(InputError, match="max_polygon"):
        CellularLifting(max_polygon=2)
    with pytest.raises(InputError, match="edge_merge must be"):
        CellularLifting(edge_merge="sum")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="takes one PyG Data"):
        transform(Batch.from_data_list(molecules()))
    with pytest.raises(InputError, match="takes one PyG Data"):
        transform(nx.path_graph(2))


def test_pygs_own_reader_of_a_set_lifts_to_ours(
    data_dir: Path, tmp_path: Path, assert_equal: Same
) -> None:
    raw = tmp_path / "MUTAG" / "raw"
    raw.mkdir(parents=True)
    for file in (data_dir / "TUDataset" / "MUTAG" / "raw").iterdir():
        (raw / file.name).write_bytes(file.read_bytes())
    dataset = TUDataset(root=str(tmp_path), name="MUTAG", transform=CellularLifting())
    ours = load_dataset("MUTAG")
    assert_equal(lift(dataset), ours)
    assert_equal(next(iter(DataLoader(dataset, batch_size=188))).complexes, ours)


def featureless(count: int) -> list[Data]:
    """Rings, each with a tail, as PyG graphs without x."""
    listed = []
    for size in range(3, 3 + count):
        graph = nx.lollipop_graph(size, 2) if size == 4 else nx.cycle_graph(size)
        ends = torch.tensor(list(graph.edges)).T
        listed.append(Data(edge_index=torch.cat([ends, ends.flip(0)], 1), num_nodes=len(graph)))
    return listed


def test_pyg_graphs_without_features_get_their_degrees() -> None:
    listed = featureless(3)
    complexes = lift(listed)
    degrees = torch.cat([degree(data.edge_index[0], data.num_nodes) for data in listed]).long()
    assert torch.equal(complexes.node_features, one_hot(degrees, 5).float())
    assert torch.equal(lift(Batch.from_data_list(listed)).node_features, complexes.node_features)
    few = lift(listed, degrees=3).node_features
    assert torch.equal(few, one_hot(degrees.clamp(max=2), 3).float())
    assert lift(nx.cycle_graph(4)).node_features.shape == (4, 0)
    assert lift(nx.cycle_graph(4), degrees=3).node_features.argmax(1).tolist() == [2] * 4
    spokes = torch.stack([torch.zeros(99).long(), torch.arange(1, 100)])
    star = Data(edge_index=spokes, num_nodes=100)
    with pytest.warns(CellAttentionWarning, match="one-way"):
        assert lift(star).node_features.shape == (100, 64)


def test_a_network_gives_every_batch_as_many_columns_of_degrees_as_it_reads() -> None:
    listed = featureless(4)
    network = CellAttentionNetwork(NetworkConfig(hidden=(4,), heads=(2,)), 5, 0, 2).eval()
    whole = network(lift(listed))
    assert torch.allclose(network(listed[:1]), whole[:1], atol=1e-6)  # whose degrees are all 2
    assert torch.allclose(network(Batch.from_data_list(listed[:2])), whole[:2], atol=1e-6)
    carried = Batch.from_data_list([CellularLifting()(data) for data in listed])
    assert torch.allclose(network(carried), whole, atol=1e-6)
    assert torch.equal(carried.complexes.node_features, lift(listed).node_features)


@pytest.mark.parametrize("design", ["ranks", "paper"])
def test_a_network_merges_the_features_of_an_edge_as_it_is_told(design: str) -> None:
    data = featureless(1)[0]
    data.edge_attr = torch.arange(6.0)[:, None]
    small = {"hidden": (4,), "heads": (2,)}
    config = NetworkConfig(**small) if design == "ranks" else NetworkConfig.edges(**small)
    network = CellAttentionNetwork(config, 3, 1, 2).eval()
    with pytest.raises(InputError, match="edge_merge"):
        network(data)
    for merge in ("mean", "first"):
        lifted = lift(data, edge_merge=merge, degrees=3)  # type: ignore[arg-type]
        assert torch.equal(network(data, edge_merge=merge), network(lifted))
        assert torch.equal(network.trace(data, merge).logits, network.trace(lifted).logits)
    with pytest.raises(InputError, match="edge_merge is for graphs that are not lifted yet"):
        network(lifted, edge_merge="mean")
