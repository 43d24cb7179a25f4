"""Complexes as wholes: their composition, their features, and the branch that reads both."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from torch_geometric.data import Data

from cell_attention import CellAttentionNetwork, CellComplex, NetworkConfig, lift, load_dataset
from cell_attention.arguments import record_of
from cell_attention.errors import InputError
from cell_attention.models.network_fitter import start_training
from cell_attention.nn.descriptor_branch import KNOTS, Ranks, composition
from cell_attention.training.tasks import task_of
from learning import QUICK

SMALL = NetworkConfig(hidden=(4, 4), heads=(2, 2), head_hidden=8)


@pytest.fixture(scope="module")
def described() -> CellComplex:
    """MUTAG with two features per molecule: a number with gaps, and the class with noise."""
    complexes = load_dataset("MUTAG")
    torch.manual_seed(0)
    noise = torch.randn(len(complexes))
    assert complexes.targets is not None
    features = torch.stack([noise * 1e6, complexes.targets + 0.1 * noise], 1)
    features[3, 0] = torch.nan
    return replace(complexes, complex_features=features)


def network_of(complexes: CellComplex, config: NetworkConfig = SMALL) -> CellAttentionNetwork:
    torch.manual_seed(0)
    network = CellAttentionNetwork(config, 7, 4, 2, complex_features=2)
    network.learn_ranges(complexes)
    return network.eval()


def test_ranks_are_those_of_scipy_up_to_the_distance_of_two_knots() -> None:
    torch.manual_seed(0)
    values = torch.randn(4000, 3) ** 3
    ranks = Ranks(3)
    ranks.learn(values)
    expected = 2.0 * (rankdata(values.numpy(), axis=0) - 1) / (len(values) - 1) - 1.0
    assert np.abs(ranks(values).numpy() - expected).max() < 2.0 / (KNOTS - 1)


def test_ranks_keep_the_order_and_stay_in_range_beyond_the_training_values() -> None:
    ranks = Ranks(1)
    ranks.learn(torch.tensor([[1.0], [1.0], [1.0], [2.0], [5.0]]))
    asked = torch.tensor([-1e30, 0.0, 1.0, 1.5, 2.0, 3.0, 5.0, 6.0, 1e30])[:, None]
    found = ranks(asked).flatten()
    assert (found.diff() >= 0).all()
    assert found[0] == found[1] == -1.0
    assert found[-2] == found[-1] == 1.0


def test_a_descriptor_that_is_unknown_infinite_or_always_the_same_says_nothing() -> None:
    ranks = Ranks(2)
    ranks.learn(torch.tensor([[1.0, 7.0], [2.0, 7.0], [torch.nan, 7.0], [torch.inf, 7.0]]))
    asked = torch.tensor([[torch.nan, 7.0], [torch.inf, 8.0], [1.0, -torch.inf], [2.0, 7.0]])
    assert ranks(asked).tolist() == [[0.0, 0.0], [0.0, 0.0], [-1.0, 0.0], [1.0, 0.0]]
    nothing = Ranks(2)
    nothing.learn(torch.full((3, 2), torch.nan))
    assert nothing(asked).tolist() == [[0.0, 0.0]] * 4


def test_outputs_are_the_mean_of_three_branches_and_gradients_reach_each(
    described: CellComplex,
) -> None:
    network = network_of(described)
    parts = network.branches(described[:9])
    assert len(parts) == 3
    assert torch.equal(network(described[:9]), torch.stack(parts).mean(0))
    for place, part in enumerate((network.head, network.counts, network.descriptors)):
        network.zero_grad()
        network.branches(described[:9])[place].sum().backward()
        assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in part.parameters())


def test_a_batch_with_descriptors_is_its_members_one_by_one(described: CellComplex) -> None:
    network = network_of(described)
    whole = network(described[:5])
    each = torch.cat([network(described[[place]]) for place in range(5)])
    torch.testing.assert_close(whole, each, rtol=1e-5, atol=1e-5)


def test_only_the_order_of_a_descriptor_counts(described: CellComplex) -> None:
    values = described.complex_features
    warped = replace(described, complex_features=torch.sign(values) * values.abs() ** 0.2 * 1e4)
    found = network_of(described)(described), network_of(warped)(warped)
    torch.testing.assert_close(*found, rtol=1e-4, atol=2e-2)


def test_descriptors_follow_their_complex_through_selection_and_files(
    described: CellComplex, tmp_path: object
) -> None:
    path = f"{tmp_path}/described.safetensors"
    described.save(path)
    loaded = CellComplex.load(path)[[5, 3, 5]]
    expected = described.complex_features[[5, 3, 5]]
    torch.testing.assert_close(loaded.complex_features, expected, rtol=0, atol=0, equal_nan=True)
    with pytest.raises(InputError, match=r"complex_features must be \(188, F\), got \(3, 2\)"):
        replace(described, complex_features=torch.zeros(3, 2))


def test_training_learns_the_ranges_from_the_training_graphs_alone(
    described: CellComplex,
) -> None:
    features = described.complex_features.clone()
    features[150, 1] = 100.0
    described = replace(described, complex_features=features)
    task = task_of(described, torch.arange(100))
    given = start_training(
        described, range(100), range(100, 188), task=task, network=SMALL, training=QUICK, seed=(0,)
    )
    knots = given.network.descriptors.ranks.knots  # type: ignore[union-attr]
    assert knots[1, -1] == described.complex_features[:100, 1].max() < 100.0
    for _ in range(QUICK.epochs):
        given.epoch()
    assert given.curves.score[-1] > 0.95  # the second descriptor tells the classes


def test_networks_refuse_complexes_without_the_features_they_were_made_for(
    described: CellComplex,
) -> None:
    bare = replace(described, complex_features=None)
    with pytest.raises(InputError, match="complex_features must have 2 columns, got 0"):
        network_of(described)(bare)
    with pytest.raises(InputError, match="complex_features must have 0 columns, got 2"):
        CellAttentionNetwork(SMALL, 7, 4, 2)(described)
    with pytest.raises(InputError, match="design 'paper' reads no features of whole complexes"):
        CellAttentionNetwork(NetworkConfig.edges(), 7, 4, 2, complex_features=2)


def test_the_composition_is_what_a_loop_counts(described: CellComplex) -> None:
    found = composition(described[:40], 6).double()
    for number, one in enumerate(described[:40]):
        sizes = one.polygon_sizes.tolist()
        counted = [
            *(sizes.count(size) for size in (3, 4, 5, 6)), sum(size > 6 for size in sizes),
            one.num_nodes, *one.node_features.sum(0).tolist(),
            one.num_edges, *one.edge_features.sum(0).tolist(),
        ]  # fmt: skip
        assert found[number].tolist() == pytest.approx(np.log1p(counted), abs=1e-5)


def test_the_composition_keeps_signs_and_needs_no_edges() -> None:
    features = torch.tensor([[-3.0], [1.0]])
    one = lift(Data(x=features, edge_index=torch.empty(2, 0, dtype=torch.int64)))
    expected = [0, 0, 0, 0, 0, np.log(3), -np.log(3), 0]
    assert composition(one, 6).flatten().tolist() == pytest.approx(expected)
    assert composition(one[:0], 6).shape == (0, 8)


def test_the_composition_can_be_left_out_and_was_not_there_before() -> None:
    network = CellAttentionNetwork(replace(SMALL, composition=False), 7, 4, 2)
    assert len(network.branches(load_dataset("MUTAG")[:3])) == network.num_branches == 2
    record = record_of(NetworkConfig())
    assert record.pop("composition") is True
    assert NetworkConfig.from_record(record).composition is False
    assert "composition" not in record_of(NetworkConfig(composition=False))
    assert "composition" not in record_of(NetworkConfig.paper("MUTAG"))
