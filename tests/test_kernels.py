"""Every compiled part of the network against plain torch, and against its own derivative."""

import copy
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import networkx as nx
import pytest
import torch
from torch import Tensor

import families
from cell_attention import CellAttentionNetwork, CellComplex, NetworkConfig, lift, load_dataset
from cell_attention.errors import InputError
from cell_attention.nn.activated_norm import ActivatedNorm
from cell_attention.nn.attend import attend
from cell_attention.nn.attention import CellAttention
from cell_attention.nn.dropout import Dropout
from cell_attention.nn.functional import activation as pointwise
from cell_attention.nn.functional import segment_reduce
from cell_attention.nn.kernels.attention import BLOCK, Neighbours, cut_blocks
from cell_attention.nn.kernels.pointwise import KINDS, activate
from cell_attention.nn.lift import AttentionalLift
from cell_attention.nn.pooling import EdgePooling, best_rows


def random_complexes(width: int, dtype: torch.dtype = torch.float32) -> CellComplex:
    complexes = lift(families.graphs(40, seed=3))
    random = torch.Generator().manual_seed(4)
    nodes = torch.rand(complexes.num_nodes, width, generator=random, dtype=dtype)
    return replace(complexes, node_features=nodes)


def same(ours: Tensor, theirs: Tensor, tolerance: float = 1e-5) -> bool:
    """Equal up to a share of the largest value."""
    scale = max(1.0, float(theirs.detach().abs().max()))
    return bool((ours - theirs).detach().abs().max() <= tolerance * scale)


@pytest.mark.parametrize("name", KINDS)
def test_kernels_compute_the_same_pointwise_functions(name: str) -> None:
    x = torch.cat([torch.linspace(-120, 120, 40_001), torch.linspace(-1e-3, 1e-3, 2_001)])
    for values in (x, x.double()):
        got = torch.empty_like(values)
        activate(values.numpy(), KINDS[name], values.numpy().dtype.type(0.3), got.numpy())  # type: ignore[index]
        exact = pointwise(name, 0.3)(values.double())  # type: ignore[arg-type]
        bound = 4 * torch.finfo(values.dtype).eps
        assert bool(((got - exact).abs() <= bound * exact.abs().clamp(min=1e-3)).all())


@pytest.mark.parametrize("kind", ["symmetric", "paper"])
@pytest.mark.parametrize("activation", [*KINDS, "gelu"])
def test_the_compiled_lift_equals_the_plain_one_in_values_and_gradients(
    kind: str, activation: str
) -> None:
    complexes = random_complexes(5)
    torch.manual_seed(0)
    plain = AttentionalLift(5, 19, kind, activation=activation, kernel="torch")  # type: ignore[arg-type]
    results = []
    for kernel in ("torch", "auto"):
        layer = copy.deepcopy(plain)
        layer.kernel = kernel  # type: ignore[assignment]
        nodes = complexes.node_features.clone().requires_grad_()
        lifted = layer(nodes, complexes.edge_nodes, None)
        lifted.backward(torch.linspace(-1, 1, lifted.numel()).view_as(lifted))
        results.append([lifted, nodes.grad, layer.weight.grad])
    assert all(same(ours, theirs) for theirs, ours in zip(*results, strict=True))


@pytest.mark.parametrize("kernel", ["auto", "torch"])
@pytest.mark.parametrize("kind", ["symmetric", "paper", "none"])
def test_the_lift_passes_gradcheck(kernel: str, kind: str) -> None:
    torch.manual_seed(0)
    layer = AttentionalLift(3, 9, kind, activation="tanh", kernel=kernel).double()  # type: ignore[arg-type]
    nodes = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    edge_nodes = torch.tensor([[0, 1, 1, 2], [3, 2, 4, 5]])
    given = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, y: layer(x, edge_nodes, y), (nodes, given))
    if kind != "none":
        weight = layer.weight.detach().requires_grad_()

        def by_weight(value: Tensor) -> Tensor:
            result: Tensor = torch.func.functional_call(
                layer, {"weight": value}, (nodes.detach(), edge_nodes, None)
            )
            return result

        assert torch.autograd.gradcheck(by_weight, (weight,))


@pytest.mark.parametrize("activation", [*KINDS, "gelu"])
@pytest.mark.parametrize("rows", [2, 63, 64, 65, 700])
def test_the_compiled_norm_equals_torchs_in_values_gradients_and_statistics(
    activation: str, rows: int
) -> None:
    torch.manual_seed(rows)
    # A mean far from zero: its square must not drown the variance.
    given = torch.randn(rows, 11) + 30 * torch.arange(11)
    upstream = torch.randn(rows, 11)
    exact = ActivatedNorm(11, "batch", activation, negative_slope=0.2, kernel="torch").double()  # type: ignore[arg-type]
    ours = ActivatedNorm(11, "batch", activation, negative_slope=0.2)  # type: ignore[arg-type]
    results = []
    for layer, values in ((exact, given.double()), (ours, given)):
        with torch.no_grad():
            layer.norm.weight.copy_(torch.linspace(0.5, 2, 11))
            layer.norm.bias.copy_(torch.linspace(-1, 1, 11))
        edges = values.requires_grad_()
        normalised = layer(edges)
        normalised.backward(upstream.to(edges.dtype))
        assert int(layer.norm.num_batches_tracked) == 1
        results.append(
            [
                normalised, edges.grad, layer.norm.weight.grad, layer.norm.bias.grad,
                layer.norm.running_mean, layer.norm.running_var,
            ]
        )  # fmt: skip
        assert torch.equal(layer.eval()(edges), layer.norm(layer.activation(edges)))
    # Two rows that are almost equal are blown up by the norm, and their rounding with them.
    tolerance = 1e-2 if rows == 2 else 2e-4
    for theirs, mine in zip(*results, strict=True):
        assert same(mine.double(), theirs, tolerance)


@pytest.mark.parametrize("activation", ["identity", "elu", "tanh", "sigmoid"])
def test_the_compiled_norm_passes_gradcheck(activation: str) -> None:
    torch.manual_seed(0)
    layer = ActivatedNorm(9, "batch", activation, negative_slope=0.2).double()  # type: ignore[arg-type]
    values = torch.randn(70, 9, dtype=torch.float64, requires_grad=True)

    def by_all(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        given = {"norm.weight": weight, "norm.bias": bias}
        result: Tensor = torch.func.functional_call(layer, given, (x,))
        return result

    scale, shift = (torch.randn(9, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(by_all, (values, scale, shift))


def test_norm_and_dropout_together_drop_what_they_should_and_send_back_the_rest() -> None:
    torch.manual_seed(0)
    layer = ActivatedNorm(40, "batch", "elu")
    values = torch.randn(2_000, 40, requires_grad=True)
    whole = layer(values)
    torch.manual_seed(1)
    dropped = layer(values, dropout=0.3)
    kept = dropped != 0
    assert abs(float(kept.float().mean()) - 0.7) < 0.01
    assert torch.allclose(dropped[kept], whole[kept] / 0.7, atol=1e-5)
    upstream = torch.randn_like(whole)
    (got,) = torch.autograd.grad(dropped, values, upstream)
    (expected,) = torch.autograd.grad(whole, values, upstream * kept / 0.7)
    assert same(got, expected)
    torch.manual_seed(1)
    assert torch.equal(layer(values, dropout=0.3), dropped)


def test_the_lift_drops_its_share_and_sends_back_the_rest() -> None:
    complexes = random_complexes(5)
    torch.manual_seed(0)
    layer = AttentionalLift(5, 40, "symmetric", activation="elu", dropout=0.25)
    nodes = complexes.node_features.clone().requires_grad_()
    dropped = layer(nodes, complexes.edge_nodes, None)
    whole = layer.eval()(nodes, complexes.edge_nodes, None)
    kept = dropped != 0
    assert abs(float(kept.float().mean()) - 0.75) < 0.02
    assert torch.allclose(dropped[kept], whole[kept] / 0.75, atol=1e-5)
    upstream = torch.randn_like(whole)
    (got,) = torch.autograd.grad(dropped, nodes, upstream)
    (expected,) = torch.autograd.grad(whole, nodes, upstream * kept / 0.75)
    assert same(got, expected)


def loop_over_pooling(
    layer: EdgePooling, edges: Tensor, complex_of: list[int]
) -> tuple[list[int], list[Tensor]]:
    """γ = φ_p(aᵀh) per edge; the ⌈k·|E|⌉ best of each complex, with ties; γ·h of those."""
    scores = [torch.tanh(sum(a * x for a, x in zip(layer.weight, h, strict=True))) for h in edges]
    kept = []
    for number in sorted(set(complex_of)):
        members = [e for e, c in enumerate(complex_of) if c == number]
        wanted = -(-len(members) * Fraction(str(layer.ratio)) // 1)
        least = sorted((scores[e].item() for e in members), reverse=True)[int(wanted) - 1]
        kept += [e for e in members if scores[e].item() >= least]
    return kept, [scores[e] * edges[e] for e in kept]


@pytest.mark.parametrize("kernel", ["auto", "torch"])
@pytest.mark.parametrize("ratio", [0.3, 0.6, 1.0])
def test_pooling_equals_a_loop_over_the_formula_and_passes_gradcheck(
    kernel: str, ratio: float
) -> None:
    torch.manual_seed(0)
    layer = EdgePooling(9, ratio, kernel=kernel).double()  # type: ignore[arg-type]
    with torch.no_grad():
        layer.weight.mul_(0.2)
    edges = torch.randn(17, 9, dtype=torch.float64, requires_grad=True)
    complex_of = [0] * 5 + [1] + [3] * 11
    group = torch.tensor(complex_of)
    kept, scaled = loop_over_pooling(layer, edges, complex_of)
    pooled = layer(edges, group, 4)
    assert pooled.kept.tolist() == kept
    assert torch.allclose(pooled.edges, torch.stack(scaled), rtol=0, atol=1e-14)

    def by_all(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        result = torch.func.functional_call(layer, {"weight": weight}, (x, group, 4))
        return result.edges, result.score

    weight = layer.weight.detach().requires_grad_()
    assert torch.autograd.gradcheck(by_all, (edges, weight))


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "gelu"])
def test_both_poolings_keep_the_same_edges_where_scores_tie(activation: str) -> None:
    random = torch.Generator().manual_seed(0)
    sizes = torch.randint(0, 40, (200,), generator=random)
    group = torch.arange(200).repeat_interleave(sizes)
    edges = torch.randint(-2, 3, (int(sizes.sum()), 3), generator=random).float()
    for ratio in (0.1, 0.3, 0.5, 0.75):
        torch.manual_seed(1)
        plain = EdgePooling(3, ratio, activation, kernel="torch")  # type: ignore[arg-type]
        ours = copy.deepcopy(plain)
        ours.kernel = "auto"
        theirs, mine = plain(edges, group, 200), ours(edges, group, 200)
        assert torch.equal(mine.kept, theirs.kept)
        assert torch.allclose(mine.score, theirs.score, atol=1e-6)
        assert torch.allclose(mine.edges, theirs.edges, atol=1e-6)


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.5, 0.55, 0.6, 0.75, 0.9])
def test_the_compiled_pooling_keeps_exactly_k_edges_for_every_size(ratio: float) -> None:
    sizes = torch.arange(0, 1_101)
    group = torch.arange(1_101).repeat_interleave(sizes)
    random = torch.Generator().manual_seed(0)
    values = torch.randperm(group.numel(), generator=random).double().unsqueeze(1)
    layer = EdgePooling(1, ratio, "identity").double()
    with torch.no_grad():
        layer.weight.fill_(1.0)
    kept = layer(values, group, 1_101).kept
    assert torch.equal(kept, best_rows(values.squeeze(1), group, 1_101, ratio=ratio))
    counts = torch.bincount(group[kept], minlength=1_101).tolist()
    assert counts == [-(-Fraction(str(ratio)) * n // 1) for n in range(1_101)]


def test_complexes_that_do_not_follow_one_another_are_pooled_all_the_same() -> None:
    layer = EdgePooling(2, 0.5)
    edges, group = torch.randn(6, 2), torch.tensor([0, 1, 0, 1, 1, 0])
    order = group.argsort(stable=True)
    expected = order[layer(edges[order], group[order], 2).kept].sort().values
    assert torch.equal(layer(edges, group, 2).kept, expected)


@pytest.mark.parametrize("kernel", ["auto", "torch"])
@pytest.mark.parametrize("ratio", [0.1 + 0.2, 2 / 3, 1 / 3, 0.1, 1e-30, 1 - 1e-16])
def test_ratios_of_many_digits_keep_exactly_k_of_many_edges(kernel: str, ratio: float) -> None:
    layer = EdgePooling(1, ratio, "identity", kernel=kernel).double()  # type: ignore[arg-type]
    with torch.no_grad():
        layer.weight.fill_(1.0)
    values = torch.randperm(5_000).double().unsqueeze(1)
    kept = layer(values, torch.zeros(5_000, dtype=torch.int64), 1).kept
    assert kept.numel() == -(-Fraction(repr(ratio)) * 5_000 // 1)


def test_what_would_make_a_kernel_read_elsewhere_is_refused() -> None:
    with pytest.raises(InputError, match=r"edge_nodes must lie in 0…4, got"):
        AttentionalLift(3, 4)(torch.randn(5, 3), torch.tensor([[0, 1], [2, 10**9]]), None)
    group = torch.zeros(5, dtype=torch.int64)
    with pytest.raises(InputError, match=r"edges must be \(E, 3\), got \(5, 3000\)"):
        EdgePooling(3)(torch.randn(5, 3000), group, 1)
    with pytest.raises(InputError, match=r"edge_complex must be \(5,\), got \(4,\)"):
        EdgePooling(3)(torch.randn(5, 3), group[:4], 1)
    with pytest.raises(InputError, match=r"edge_complex must lie in 0…0, got 1"):
        EdgePooling(3)(torch.randn(5, 3), group + 1, 1)
    with pytest.raises(InputError, match=r"edges must be torch.float32, got torch.float64"):
        EdgePooling(3)(torch.randn(5, 3).double(), group, 1)
    pairs = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(InputError, match=r"receiver must be \(2, 4\) of torch.float32, got"):
        attend(torch.randn(5, 2, 4), torch.randn(4, 2), torch.randn(2, 4), pairs)
    with pytest.raises(InputError, match=r"edges must be \(E, 6\), got \(5, 3\)"):
        CellAttention(6, 4)(torch.randn(5, 3), pairs, pairs)
    for wrong in ({"dropout": 1.0}, {"heads": 0}, {"kind": "both"}, {"negative_slope": -1.0}):
        with pytest.raises(InputError):
            AttentionalLift(**{"in_channels": 3, "heads": 4, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 3.0])
def test_the_self_term_may_vanish(epsilon: float) -> None:
    one = lift(nx.circular_ladder_graph(4))
    torch.manual_seed(0)
    plain = CellAttention(3, 4, 2, epsilon=epsilon, learn_epsilon=True, kernel="torch").double()
    fused = copy.deepcopy(plain)
    fused.kernel = "fused"
    edges = torch.randn(one.num_edges, 3, dtype=torch.float64, requires_grad=True)
    results = []
    for layer in (plain, fused):
        out = layer(edges, one.lower_pairs, one.upper_pairs).edges
        given = [edges, *layer.parameters()]
        results.append([out, *torch.autograd.grad(out.square().sum(), given)])
    assert all(torch.allclose(ours, theirs) for theirs, ours in zip(*results, strict=True))


@pytest.mark.parametrize("kernel", ["auto", "torch"])
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_a_network_with_a_weight_that_is_not_a_number_says_so(kernel: str, ratio: float) -> None:
    network = CellAttentionNetwork(NetworkConfig.edges(ratio=ratio), 7, 4, 2, kernel=kernel).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        network.lift.weight.fill_(float("nan"))
    assert bool(network(load_dataset("MUTAG")[:8]).isnan().all())


def test_a_frozen_batch_norm_stays_as_it_is() -> None:
    layer = ActivatedNorm(4, "batch", "elu")
    layer(torch.randn(30, 4))
    layer.norm.eval()
    before = copy.deepcopy(layer.norm.state_dict())
    values = torch.randn(30, 4)
    assert torch.equal(layer(values), layer.norm(layer.activation(values)))
    assert all(torch.equal(before[key], value) for key, value in layer.norm.state_dict().items())


def test_the_norm_survives_an_outlier_in_the_first_row() -> None:
    values = 3 + 0.01 * torch.randn(20_000, 2, generator=torch.Generator().manual_seed(0))
    values[0] = 1e4
    exact = ActivatedNorm(2, activation="identity", kernel="torch").double()(values.double())
    assert (
        float((ActivatedNorm(2, activation="identity")(values) - exact).detach().abs().max()) < 1e-2
    )


def test_changing_a_result_in_place_is_noticed_in_the_backward_pass() -> None:
    batch = load_dataset("MUTAG")[:8]
    for name in ("lower", "score", "kept"):
        network = CellAttentionNetwork(NetworkConfig.edges(), 7, 4, 2)
        trace = network.trace(batch)
        with torch.no_grad():
            getattr(trace.layers[0], name).zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            trace.logits.sum().backward()


@pytest.mark.parametrize("preset", ["MUTAG", "PROTEINS", "NCI1"])
@pytest.mark.parametrize("lifted", ["symmetric", "paper"])
def test_the_weights_of_a_trace_rebuild_the_forward_pass(preset: str, lifted: str) -> None:
    config = replace(NetworkConfig.paper(preset), lift=lifted)  # type: ignore[arg-type]
    complexes = random_complexes(3, torch.float64)
    torch.manual_seed(0)
    network = CellAttentionNetwork(config, 3, 0, 2).double()
    network(complexes)
    trace = network.eval().trace(complexes)
    edges = network.norms[0](network.lift(complexes.node_features, complexes.edge_nodes, None))
    read = torch.zeros_like(trace.readout)
    for number, layer in enumerate(trace.layers):
        attention, seen = network.attention[number], layer.complexes
        itself, lower, upper = (edges @ attention.project.weight.T).split(attention.parts, dim=1)
        total = (1 + attention.epsilon) * itself
        for values, pairs, weights in (
            (lower, seen.lower_pairs, layer.lower), (upper, seen.upper_pairs, layer.upper),
        ):  # fmt: skip
            said = values.unflatten(1, (attention.heads, -1))[pairs[1]] * weights.unsqueeze(-1)
            total = total.index_add(0, pairs[0], said.flatten(1))
        edges = network.norms[number + 1](total)
        if layer.score is not None:
            edges = (layer.score.unsqueeze(1) * edges)[layer.kept]
        assert torch.allclose(edges, layer.features, rtol=0, atol=1e-10)
        if config.pooling == "hierarchical" or layer is trace.layers[-1]:
            read = read.index_add(0, complexes.edge_complex[layer.edges], edges)
    assert torch.allclose(read, trace.readout, rtol=0, atol=1e-8)
    hidden = network.activation(network.head[0](read))
    assert torch.allclose(network.head[1](hidden), trace.logits, rtol=0, atol=1e-8)


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_a_readout_equals_a_loop_and_passes_gradcheck(how: str) -> None:
    values = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    group = torch.tensor([0, 0, 0, 2, 2, 3, 3, 3, 3])
    got = segment_reduce(values, group, 5, how=how)  # type: ignore[arg-type]
    for number in range(5):
        rows = values[group == number]
        reduced = {"sum": rows.sum(0), "mean": rows.sum(0) / max(1, len(rows))}
        expected = reduced.get(how, rows.amax(0) if len(rows) else torch.zeros(4).double())
        assert torch.allclose(got[number], expected)
    assert torch.autograd.gradcheck(lambda x: segment_reduce(x, group, 5, how=how), (values,))  # type: ignore[arg-type]


def test_blocks_hold_whole_complexes_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    complexes = random_complexes(5)
    near = Neighbours(complexes.num_edges, complexes.lower_pairs, complexes.upper_pairs)
    bounds = cut_blocks(*near.heard, 25)
    assert bounds[0] == 0
    assert bounds[-1] == complexes.num_edges
    assert len(bounds) > 3
    block = torch.bucketize(torch.arange(complexes.num_edges), torch.tensor(bounds), right=True)
    for pairs in (complexes.lower_pairs, complexes.upper_pairs):
        assert torch.equal(block[pairs[0]], block[pairs[1]])
    torch.manual_seed(0)
    layer = CellAttention(7, 8, 2, kernel="fused")
    edges = torch.randn(complexes.num_edges, 7, requires_grad=True)
    results = []
    for size in (BLOCK, 500):
        monkeypatch.setattr("cell_attention.nn.kernels.attention.BLOCK", size)
        attended = layer(edges, complexes.lower_pairs, complexes.upper_pairs).edges
        given = [edges, *(p for p in layer.parameters() if p.requires_grad)]
        results.append([attended, *torch.autograd.grad(attended.square().sum(), given)])
    assert all(same(ours, theirs) for ours, theirs in zip(*results, strict=True))


def test_pairs_that_are_not_symmetric_are_heard_one_way() -> None:
    torch.manual_seed(0)
    pairs = torch.tensor([[0, 1, 1, 4, 4, 5], [3, 0, 2, 4, 5, 0]])
    plain = CellAttention(6, 4, 2, kernel="torch").double()
    fused = copy.deepcopy(plain)
    fused.kernel = "fused"
    edges = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
    results = []
    for layer in (plain, fused):
        out = layer(edges, pairs, pairs[:, :3]).edges
        given = [edges, layer.project.weight]
        results.append([out, *torch.autograd.grad(out.square().sum(), given)])
    assert all(torch.allclose(ours, theirs) for ours, theirs in zip(*results, strict=True))


def test_pairs_that_name_no_edge_are_refused_before_a_kernel_reads_them() -> None:
    layer = CellAttention(6, 4, kernel="fused")
    for wrong in (6, -1):
        pairs = torch.tensor([[0, 1], [1, wrong]])
        with pytest.raises(InputError, match=r"pairs must lie in 0…5, got"):
            layer(torch.randn(6, 6), pairs, pairs[:, :0])


@pytest.mark.parametrize("preset", ["MUTAG", "PTC_MM", "PROTEINS", "NCI1", "NCI109"])
def test_a_whole_step_is_the_same_compiled_and_plain(preset: str, data_dir: Path) -> None:
    batch = load_dataset(preset, data_dir=data_dir)[:128]
    batch = replace(batch, node_features=batch.node_features.double())
    if batch.edge_features is not None:
        batch = replace(batch, edge_features=batch.edge_features.double())
    # Dropout off: the two draw different masks. Everything else as in the paper.
    config = replace(NetworkConfig.paper(preset), dropout=0.0, lift_dropout=0.0)
    width = 0 if batch.edge_features is None else batch.edge_features.size(1)
    torch.manual_seed(0)
    plain, fused = (
        CellAttentionNetwork(config, batch.node_features.size(1), width, 2, kernel=kernel).double()  # type: ignore[arg-type]
        for kernel in ("torch", "fused")
    )
    fused.load_state_dict(plain.state_dict())
    results = []
    for network in (plain, fused):
        logits = network(batch)
        torch.nn.functional.cross_entropy(logits, batch.targets).backward()
        results.append([logits, *(p.grad for p in network.parameters() if p.grad is not None)])
    assert len(results[0]) == len(results[1]) > 10
    assert all(same(ours, theirs, 1e-9) for theirs, ours in zip(*results, strict=True))


def test_the_same_seed_gives_the_same_step_bit_for_bit() -> None:
    batch = load_dataset("MUTAG")[:64]
    steps = []
    for _ in range(2):
        torch.manual_seed(0)
        config = NetworkConfig.edges(dropout=0.2, lift_dropout=0.1)
        network = CellAttentionNetwork(config, 7, 4, 2)
        network(batch).sum().backward()
        steps.append([p.grad for p in network.parameters() if p.grad is not None])
    assert all(torch.equal(one, other) for one, other in zip(*steps, strict=True))


def test_a_second_derivative_is_refused_by_kernels_and_taken_by_plain_torch() -> None:
    one = lift(nx.cycle_graph(5))
    edges = torch.randn(5, 3, requires_grad=True)
    fused = CellAttention(3, 2, kernel="fused")
    attended = fused(edges, one.lower_pairs, one.upper_pairs).edges
    (slope,) = torch.autograd.grad(attended.sum(), edges, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
    plain = CellAttention(3, 2, kernel="torch", activation="tanh")
    attended = plain(edges, one.lower_pairs, one.upper_pairs).edges
    (slope,) = torch.autograd.grad(attended.sum(), edges, create_graph=True)
    slope.sum().backward()
    assert edges.grad is not None


def test_dropout_of_other_types_is_torchs_own() -> None:
    values = torch.ones(1_000, dtype=torch.bfloat16)
    assert set(Dropout(0.5)(values).tolist()) == {0.0, 2.0}


def test_under_autocast_the_network_runs_in_half_precision() -> None:
    batch = load_dataset("MUTAG")[:64]
    torch.manual_seed(0)
    network = CellAttentionNetwork(NetworkConfig.edges(pooling="none"), 7, 4, 2)
    network(batch)
    network.eval()
    exact = network(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = network(batch)
        assert rough.dtype == torch.bfloat16
        loss = torch.nn.functional.cross_entropy(network.train()(batch).float(), batch.targets)
    loss.backward()
    assert same(rough.float(), exact, 0.1)
    assert all(p.grad.isfinite().all() for p in network.parameters() if p.grad is not None)


# Dynamo looks at the .grad of every tensor that it meets, leaf or not.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_torch_compile_gives_the_same_logits() -> None:
    batch = load_dataset("MUTAG")[:8]
    torch.manual_seed(0)
    network = CellAttentionNetwork(NetworkConfig.edges(), 7, 4, 2).eval()
    try:
        assert same(torch.compile(network, backend="eager")(batch), network(batch))
    finally:
        torch.compiler.reset()


COMPILING = """
import numba, numpy
from cell_attention.topology import compiled

def probe(values):
    return values.sum()

for module in ("cell_attention.nn.kernels.probe", "of.a.user"):
    probe.__module__ = module
    kernel = numba.njit(probe)
    for kind in (numpy.int64, numpy.float32, numpy.float64, numpy.float64):
        kernel(numpy.ones(3, kind))
"""


def test_the_first_kernel_of_every_precision_says_that_it_compiles() -> None:
    ended = subprocess.run([sys.executable, "-c", COMPILING], capture_output=True, text=True)
    rest = "this happens once per machine and takes some seconds"
    lines = [f"compiling kernels; {rest}", f"compiling kernels for float64; {rest}"]
    assert ended.stderr.splitlines() == lines
