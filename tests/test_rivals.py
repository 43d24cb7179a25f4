"""The models that cell attention is measured beside: their mathematics, input and names."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.dummy import DummyClassifier
from torch import Tensor, nn
from torch.nn import functional

from cell_attention import CellComplex, NetworkConfig, TrainingConfig, lift, load_dataset
from cell_attention.api.configuration import resolve_config
from cell_attention.cli.entry import run as run_words
from cell_attention.cli.options.config import configured
from cell_attention.errors import InputError
from cell_attention.models.cin import CellIsomorphismNetwork, Incidences, IsomorphismLayer
from cell_attention.models.dmpnn import DirectedMessagePassing
from cell_attention.models.graph_kernels import as_grakel, kernel_score
from cell_attention.models.majority import majority
from cell_attention.models.node_networks import polygon_counts
from cell_attention.models.perceptron import BatchNorm
from cell_attention.models.registry import MODELS, PRESETS, build_network, defaults, sizes_of
from cell_attention.models.settings import Settings
from cell_attention.nn.config import FIELDS_OF
from cell_attention.nn.parts import PARTS
from cell_attention.testing import assert_batching_is_harmless, assert_permutation_invariant
from learning import refused

NETWORKS = [name for name, model in MODELS.items() if model.epochs and name != "can"]
KERNELS = [name for name, model in MODELS.items() if "grakel" in model.packages]


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


def few(complexes: CellComplex) -> CellComplex:
    """Molecules with and without polygons of several sizes, and one graph that is one node."""
    lonely = lift([nx.empty_graph(1)])
    assert complexes.edge_features is not None
    one = replace(
        lonely,
        node_features=complexes.node_features[:1],
        edge_features=complexes.edge_features[:0],
        targets=torch.tensor([0]),
    )
    molecules = complexes[[0, 3, 17, 90, 150]]
    return joined(molecules, one)


def joined(one: CellComplex, other: CellComplex) -> CellComplex:
    """Two sets of complexes as one: through the public constructor, which renumbers."""
    assert one.edge_features is not None
    assert other.edge_features is not None
    return replace(
        one,
        node_features=torch.cat([one.node_features, other.node_features]),
        node_complex=torch.cat([one.node_complex, other.node_complex + len(one)]),
        targets=torch.cat([one.targets, other.targets]),  # type: ignore[list-item]
        num_complexes=len(one) + len(other),
    )


def network(name: str, complexes: CellComplex) -> nn.Module:
    torch.manual_seed(0)
    made = build_network(name, defaults(name, "MUTAG")[0], sizes_of(name, complexes, 2))
    for part in made.modules():  # as if it had seen something, so that norms are no identity
        if isinstance(part, BatchNorm):
            assert part.running_mean is not None
            assert part.running_var is not None
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
    return made


def test_every_name_is_a_model_and_the_networks_can_be_built(mutag: CellComplex) -> None:
    for name in NETWORKS:
        assert network(name, mutag)(few(mutag)).shape == (6, 2)
    for name in (*KERNELS, "majority"):
        with pytest.raises(InputError, match="trained in epochs"):
            build_network(name, NetworkConfig.edges(), sizes_of(name, mutag, 2))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_rival_does_not_depend_on_numbering_or_batching(name: str, mutag: CellComplex) -> None:
    complexes = few(mutag)
    assert_permutation_invariant(network(name, mutag), complexes)
    assert_batching_is_harmless(network(name, mutag).double(), doubled(complexes), 1e-9)


def doubled(complexes: CellComplex) -> CellComplex:
    assert complexes.edge_features is not None
    return replace(
        complexes,
        node_features=complexes.node_features.double(),
        edge_features=complexes.edge_features.double(),
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_every_parameter_of_a_rival_learns_something(name: str, mutag: CellComplex) -> None:
    made = network(name, mutag)
    batch = mutag[:40]
    assert batch.targets is not None
    functional.cross_entropy(made(batch), batch.targets).backward()
    for label, parameter in made.named_parameters():
        assert parameter.grad is not None, label
        assert parameter.grad.isfinite().all(), label
        assert parameter.grad.abs().sum() > 0, label


def test_a_batch_with_one_polygon_or_none_can_be_trained_on(mutag: CellComplex) -> None:
    made = network("cin", mutag).train()
    counts = mutag.polygon_complex.bincount(minlength=len(mutag))
    for wanted in (0, 1):
        graphs = (counts == wanted).nonzero()[:1, 0] if (counts == wanted).any() else None
        one = mutag[graphs] if graphs is not None else mutag[:1].skeleton(1)
        made(one).sum().backward()


def neighbours_through(complexes: CellComplex, rank: int) -> list[tuple[int, int, int]]:
    """All (σ, τ, δ): two different cells of a rank on the boundary of a third, by brute force."""
    tops = complexes.num_edges if rank == 0 else complexes.num_polygons
    return [
        (int(sigma), int(tau), top)
        for top in range(tops)
        for sigma in complexes.boundary(rank + 1, top)
        for tau in complexes.boundary(rank + 1, top)
        if sigma != tau
    ]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_layer_of_cin_is_its_formula(rank: int) -> None:
    """Bodnar et al. 2021: U(B(h + Σ_faces h) ‖ A(h + Σ relu(W[h_τ ‖ h_δ] + b))), term by term."""
    torch.manual_seed(rank)
    complexes = lift([nx.petersen_graph(), nx.complete_graph(4), nx.cubical_graph()])
    layer = IsomorphismLayer(rank, 3, 5).double().eval()
    incidences = Incidences.of(complexes)
    cells = [torch.randn(size, 3, dtype=torch.float64) for size in incidences.sizes]
    below, above = cells[rank].clone(), cells[rank].clone()
    if rank > 0:
        for cell in range(incidences.sizes[rank]):
            for face in complexes.boundary(rank, cell):
                below[cell] += cells[rank - 1][face]
    if rank < 2:
        weight = torch.cat([layer.sender.weight, layer.coface.weight], dim=1)
        for sigma, tau, delta in neighbours_through(complexes, rank):
            pair = torch.cat([cells[rank][tau], cells[rank + 1][delta]])
            above[sigma] += functional.relu(weight @ pair + layer.sender.bias)
    expected = layer.update(torch.cat([layer.below(below), layer.above(above)], dim=1))
    torch.testing.assert_close(layer(cells, incidences), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_directed_messages_are_those_of_their_formula(layers: int, mutag: CellComplex) -> None:
    """Yang et al. 2019, bond by bond and neighbour by neighbour."""
    torch.manual_seed(layers)
    complexes = doubled(few(mutag))
    config = replace(defaults("dmpnn", "MUTAG")[0], hidden=(7,) * layers, heads=(1,) * layers)
    made = DirectedMessagePassing(config, **sizes_of("dmpnn", mutag, 3)).double().eval()
    assert complexes.edge_features is not None
    x, relu = complexes.node_features, functional.relu
    bonds = {}
    for (v, w), features in zip(
        complexes.edge_nodes.T.tolist(), complexes.edge_features, strict=True
    ):
        bonds[v, w] = bonds[w, v] = features
    near = {v: [w for a, w in bonds if a == v] for v in range(complexes.num_nodes)}
    first = {(v, w): made.bond.weight @ torch.cat([x[v], e]) for (v, w), e in bonds.items()}
    hidden = {pair: relu(value) for pair, value in first.items()}
    zero = torch.zeros(7, dtype=torch.float64)
    for _ in range(layers - 1):
        hidden = {
            (v, w): relu(
                first[v, w]
                + made.message.weight @ sum((hidden[k, v] for k in near[v] if k != w), zero)
            )
            for v, w in bonds
        }
    totals = torch.zeros(len(complexes), 7, dtype=torch.float64)
    for v in range(complexes.num_nodes):
        arrived = sum((hidden[k, v] for k in near[v]), zero)
        graph = int(complexes.node_complex[v])
        totals[graph] += relu(made.atom.weight @ torch.cat([x[v], arrived]) + made.atom.bias)
    _, inner, _, _, last = made.head
    expected = relu(totals @ inner.weight.T + inner.bias) @ last.weight.T + last.bias
    torch.testing.assert_close(made(complexes), expected, rtol=1e-10, atol=1e-10)


def test_directed_messages_share_one_map_and_need_no_edge_features() -> None:
    config = replace(defaults("dmpnn", "MUTAG")[0], hidden=(8, 4), heads=(1, 1))
    with pytest.raises(InputError, match=r"hidden must be one width .* got \(8, 4\)"):
        build_network("dmpnn", config, {"node_features": 2, "edge_features": 0, "outputs": 1})
    plain = replace(lift([nx.path_graph(4), nx.empty_graph(2)]), node_features=torch.ones(6, 1))
    made = network("dmpnn", plain)
    assert made(plain).isfinite().all()


def test_a_model_may_bring_its_own_training(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, own = defaults("gin", "MUTAG")[1], defaults("dmpnn", "MUTAG")[1]
    assert (own.schedule, own.learning_rate, own.epochs) == ("one_cycle", 1e-3, 30)
    assert own.epochs * own.warmup == pytest.approx(2.0)
    assert usual.schedule == "step"
    short = replace(usual, epochs=3)
    monkeypatch.setitem(MODELS, "mine", replace(MODELS["gin"], training={"epochs": 3}))
    assert defaults("mine", "a.csv")[1] == short
    assert defaults("mine", "MUTAG", "paper")[1] == short


def test_cin_sees_edge_features_and_polygons_begin_with_the_sum_of_their_edges(
    mutag: CellComplex,
) -> None:
    made = network("cin", mutag).eval()
    assert isinstance(made, CellIsomorphismNetwork)
    assert mutag.edge_features is not None
    other = replace(mutag, edge_features=mutag.edge_features.roll(1, dims=1))
    with torch.no_grad():
        assert not torch.allclose(made(mutag[:5]), made(other[:5]))


def test_models_without_layers_of_pyg_do_not_import_it() -> None:
    code = (
        "import sys\nfrom cell_attention import load_dataset, train\n"
        "for name in ('bag', 'cin', 'sin'):\n"
        "    train(load_dataset('MUTAG')[:40], name, training={'epochs': 1})\n"
        "assert 'torch_geometric' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_polygons_at_the_nodes_are_those_that_networkx_counts() -> None:
    graphs = [nx.petersen_graph(), nx.grid_2d_graph(3, 3), nx.complete_graph(5)]
    plain = [nx.convert_node_labels_to_integers(graph) for graph in graphs]
    found = polygon_counts(lift(plain, max_polygon=6), 6)
    rows = []
    for graph in plain:
        cycles = list(nx.chordless_cycles(graph, length_bound=6))
        for node in graph:
            sizes = Counter(len(cycle) for cycle in cycles if node in cycle)
            rows.append([float(sizes[size]) for size in (3, 4, 5, 6)])
    assert found.tolist() == rows


def test_grakel_gets_every_edge_once_and_one_label_per_kind_of_node(mutag: CellComplex) -> None:
    for one, (matrix, labels) in zip(mutag[:20], as_grakel(mutag)[:20], strict=True):
        graph = nx.from_numpy_array(matrix)
        assert sorted(graph.edges) == sorted(map(tuple, one.edge_nodes.T.tolist()))
        assert list(labels.values()) == [6 - k for k in one.node_features.argmax(1).tolist()]


def test_the_wl_kernel_is_that_of_colour_histograms() -> None:
    """Two triangles with different tails, five rounds, counted by hand with dictionaries."""
    import grakel

    graphs = [nx.lollipop_graph(3, 2), nx.lollipop_graph(3, 3), nx.cycle_graph(4)]
    given = as_grakel(replace_constant(graphs))
    kernel = grakel.WeisfeilerLehman(n_iter=5, normalize=True).fit_transform(given)

    def histogram(graph: nx.Graph) -> Counter[Any]:
        colours: dict[Any, Any] = dict.fromkeys(graph, ())
        total: Counter[Any] = Counter(colours.values())
        for _ in range(5):
            colours = {
                node: (colours[node], tuple(sorted(map(repr, (colours[k] for k in graph[node])))))
                for node in graph
            }
            total.update(colours.values())
        return total

    counts = [histogram(graph) for graph in graphs]
    dots = np.array([[sum(a[k] * b[k] for k in a) for b in counts] for a in counts], float)
    scale = np.sqrt(np.diag(dots))
    np.testing.assert_allclose(kernel, dots / np.outer(scale, scale), rtol=1e-12)


def replace_constant(graphs: list[nx.Graph]) -> CellComplex:
    complexes = lift(graphs)
    return replace(complexes, node_features=torch.ones(complexes.num_nodes, 1))


def test_a_kernel_never_looks_at_held_out_classes(mutag: CellComplex) -> None:
    train, held = list(range(0, 188, 2)), list(range(1, 188, 6))
    plain = kernel_score("wl", mutag, train=train, held_out=held, seed=(0,))
    assert mutag.targets is not None
    flipped = mutag.targets.clone()
    flipped[held] = 1 - flipped[held]
    other = kernel_score(
        "wl", replace(mutag, targets=flipped), train=train, held_out=held, seed=(0,)
    )
    assert other["cost"] == plain["cost"]
    assert other["score"][0] == pytest.approx(100.0 - plain["score"][0])


def test_majority_is_scikit_learns_dummy(mutag: CellComplex) -> None:
    assert mutag.targets is not None
    targets = mutag.targets.numpy()
    train, held = np.arange(60), np.arange(60, 188)
    dummy = DummyClassifier().fit(np.zeros((60, 1)), targets[train])
    expected = 100.0 * dummy.score(np.zeros((128, 1)), targets[held])
    assert majority(mutag, train.tolist(), held.tolist()) == pytest.approx(expected)


# Names and flags ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TU folder of 24 cycles and paths with two kinds of nodes."""
    folder = tmp_path_factory.mktemp("tu") / "RINGS"
    folder.mkdir()
    graphs = [make(size) for size in range(4, 10) for make in (nx.cycle_graph, nx.path_graph) * 2]
    edges, members, labels, first = [], [], [], 1
    for number, graph in enumerate(graphs, start=1):
        edges += [f"{a + first}, {b + first}" for i, j in graph.edges for a, b in ((i, j), (j, i))]
        members += [str(number)] * len(graph)
        labels += [str(node % 2) for node in graph]
        first += len(graph)
    classes = [str(number % 2) for number in range(len(graphs))]
    texts = {"A": edges, "graph_indicator": members, "graph_labels": classes, "node_labels": labels}
    for name, lines in texts.items():
        (folder / f"RINGS_{name}.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("name", [name for name in MODELS if not MODELS[name].molecules])
def test_every_model_runs_its_folds_through_one_command(
    name: str, rings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["crossval", str(rings), "--model", name, "--folds", "3", "--jobs", "1"]
    if MODELS[name].epochs:
        words += ["--epochs", "2"]
    assert run_words([*words, "--out", str(tmp_path / "run"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["model"] == name
    assert len(record["protocols"]["paper"]["folds"]) == 3
    first = (tmp_path / "run" / "result.json").read_bytes()
    (tmp_path / "run" / "fold-01.json").unlink()
    assert run_words([*words, "--out", str(tmp_path / "run"), "--json"]) == 0
    assert (tmp_path / "run" / "result.json").read_bytes() == first
    capsys.readouterr()


def test_a_rival_with_the_fair_protocol_and_a_grid(
    rings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text("[network]\nhidden = [[8], [4, 4]]\n")
    words = ["crossval", str(rings), "--model", "gin", "--folds", "3", "--jobs", "1"]
    words += ["--epochs", "2", "--protocol", "fair", "--grid", str(grid)]
    assert run_words([*words, "--out", str(tmp_path / "run"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["choices"]) == 3
    assert all(len(choice["validation"]) == 2 for choice in record["choices"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "gin", "--ratio", "0.5"], "model 'gin' does not use ratio"),
        (["--model", "bag", "--hidden", "8", "8"], "model 'bag' does not use hidden"),
        (["--model", "wl", "--dropout", "0.5"], "model 'wl' does not use dropout"),
        (["--model", "wl", "--epochs", "5"], "model 'wl' does not use epochs"),
        (["--model", "majority", "--learning-rate", "1"], "'majority' does not use learning_rate"),
        (["--model", "sin", "--heads", "2", "2", "2"], "model 'sin' does not use heads"),
        (["--model", "sin", "--max-polygon", "6"], "model 'sin' does not use max_polygon"),
        (["--model", "wl", "--class-weights"], "--class-weights cannot be used with model 'wl'"),
    ],
)
def test_what_a_model_would_not_notice_is_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(["crossval", "MUTAG", *words, "--out", str(tmp_path / "run")], capsys)
    assert message in line
    assert not (tmp_path / "run").exists()


def test_layers_of_a_rival_need_no_heads_and_no_equal_widths() -> None:
    flags: Any = type("Flags", (), {"hidden": (16, 8)})
    network, training = configured("gin", "MUTAG", None, network_flags=flags)
    assert network.hidden == (16, 8)
    assert training == defaults("gin", "NCI1")[1]


def test_the_words_morgan_and_both_turn_on_the_counts_of_surroundings() -> None:
    def counts(*words: str, **network: Any) -> int:
        return resolve_config("can", "a.csv", network=network, descriptors=words)[0].counts

    assert [counts(), counts("none"), counts("rdkit"), counts("weight")] == [0] * 4
    assert counts("morgan") == counts("both") == counts("rdkit", "morgan") == 4
    assert counts("morgan", counts=2) == 2


def test_each_design_has_defaults_of_its_own_and_the_papers_has_presets() -> None:
    assert NetworkConfig().design == "ranks"
    for source in ("NCI1", "OTHER", "folder/"):
        assert defaults("can", source) == (NetworkConfig(), TrainingConfig())
    assert defaults("can", "a.csv") == (NetworkConfig.molecules(), TrainingConfig.molecules())
    for source in PRESETS:
        preset = (NetworkConfig.paper(source), TrainingConfig.paper(source))
        assert defaults("can", source, "paper") == preset
    plain = (NetworkConfig.edges(), TrainingConfig.plain())
    assert defaults("can", "OTHER", "paper") == plain
    network, training = defaults("can", "a.csv", "paper")
    assert (network.design, network.max_polygon) == ("paper", 8)
    assert (training.average, training.schedule) == (0.0, "cosine")
    # A rival is trained as in its own papers, whatever the default of cell attention is.
    assert defaults("gin", "NCI1") == defaults("gin", "NCI1", "paper")


def test_flags_files_and_mappings_choose_the_design_and_with_it_the_defaults(
    tmp_path: Path,
) -> None:
    preset = (NetworkConfig.paper("NCI1"), TrainingConfig.paper("NCI1"))
    flags: Any = type("Flags", (), {"design": "paper"})
    assert configured("can", "NCI1", None, network_flags=flags) == preset
    (tmp_path / "c.toml").write_text("[network]\ndesign = 'paper'\n")
    assert configured("can", "NCI1", tmp_path / "c.toml") == preset
    assert resolve_config("can", "NCI1", network={"design": "paper"}) == preset
    assert resolve_config("can", "NCI1", network=NetworkConfig.paper("NCI1")) == preset
    other: Any = type("Flags", (), {"design": "ranks"})  # a flag wins over the file
    usual = (NetworkConfig(), TrainingConfig())
    assert configured("can", "NCI1", tmp_path / "c.toml", network_flags=other) == usual
    assert configured("can", "NCI1", None) == usual
    with pytest.raises(InputError, match="design must be one of 'ranks', 'paper', got 'rank'"):
        resolve_config("can", "NCI1", network={"design": "rank"})


CHANGED: dict[str, Any] = {
    "lift": "none", "lift_heads": 3, "lift_activation": "tanh", "lift_dropout": 0.3,
    "join": "mean", "score": "gatv2", "attention_layer": "other", "attention": "none",
    "attention_dropout": 0.3, "aggregate": "max", "epsilon": 0.5, "learn_epsilon": True,
    "layer_readout": "cat", "node_readout": 3, "ranks": (1,), "neighbourhoods": ("lower",),
    "shared_cell": False, "weights": "gate", "voices": "each", "update": "mlp",
    "head_dropout": 0.3, "counts": 2, "composition": False,
}  # fmt: skip
"""Another value of every field that only one design reads."""


@pytest.mark.parametrize(("design", "other"), [("ranks", "paper"), ("paper", "ranks")])
def test_every_field_of_the_other_design_is_refused(
    design: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CHANGED.keys() == {*FIELDS_OF["paper"], *FIELDS_OF["ranks"]}
    monkeypatch.setitem(PARTS["attention_layer"], "other", PARTS["attention_layer"]["cell"])
    usual = NetworkConfig() if design == "ranks" else NetworkConfig.edges()
    for name in FIELDS_OF[other]:
        rule = f"design '{design}' does not use {name}, which must keep its default"
        with pytest.raises(InputError, match=rule):
            resolve_config("can", "", network=replace(usual, **{name: CHANGED[name]}))
        with pytest.raises(InputError, match=rule):
            resolve_config("can", "", network={"design": design, name: CHANGED[name]})
    for name in FIELDS_OF[design]:
        made, _ = resolve_config("can", "", network=replace(usual, **{name: CHANGED[name]}))
        assert getattr(made, name) == CHANGED[name]


@pytest.mark.parametrize("name", KERNELS)
def test_a_missing_extra_is_one_line_that_names_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "grakel", None)
    line = refused(["crossval", "MUTAG", "--model", name, "--out", str(tmp_path / "run")], capsys)
    assert line.endswith(f"model '{name}' needs GraKeL: pip install 'cell-attention[bench]'")
    assert not (tmp_path / "run").exists()


def test_what_kernels_cannot_do_is_one_line(
    tmp_path: Path, mutag: CellComplex, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    values = tmp_path / "values.csv"
    values.write_text("smiles,value\n" + "".join(f"{'C' * n},{n / 3}\n" for n in range(1, 13)))
    for name in ("majority", "wl"):
        words = ["crossval", str(values), "--model", name, "--folds", "2"]
        line = refused([*words, "--out", str(tmp_path / name)], capsys)
        assert f"model '{name}' needs targets that are classes" in line
    monkeypatch.setattr("cell_attention.models.graph_kernels.WALKED", 100)
    words = ["crossval", "MUTAG", "--model", "random-walk", "--out", str(tmp_path / "walk")]
    assert "takes at most 100 graphs, got 188" in refused(words, capsys)


def test_rows_of_a_single_polygon_are_normalised_as_in_evaluation() -> None:
    norm = BatchNorm(3).train()
    row = torch.randn(1, 3)
    before = norm.running_mean
    assert before is not None
    expected: Tensor = norm.eval()(row)
    assert torch.equal(norm.train()(row), expected)
    assert norm(torch.randn(0, 3)).shape == (0, 3)
    assert norm.running_mean is before


@pytest.mark.parametrize(
    ("name", "design"), [("can", "ranks"), *((name, "paper") for name in MODELS)]
)
def test_a_run_writes_down_what_its_model_reads_and_nothing_else(name: str, design: str) -> None:
    network, training = defaults(name, "MUTAG", design)
    settings = Settings("MUTAG", 188, "", "", "", network, training, model=name)
    record = settings.record()
    # Fields that came later are left out where they are as before.
    later = {"design", *FIELDS_OF["ranks"]}
    if design == "ranks":
        later -= {"design", "voices", "update", "counts", "composition"}
    assert record["network"].keys() == {*MODELS[name].reads} - later
    assert ("epochs" in record["training"]) == MODELS[name].epochs
    assert Settings.of(record).record() == record
    if MODELS[name].epochs:
        assert Settings.of(record) == settings
    longer = {**record, "network": {**asdict(network), **record["network"]}}  # as once written
    assert Settings.of(json.loads(json.dumps(longer))).record() == record


def test_designs_and_missing_counts_have_rows_of_their_own_in_tables() -> None:
    def row(network: NetworkConfig, model: str = "can") -> str:
        return Settings("MUTAG", 188, "", "", "", network, TrainingConfig(), model=model).row

    assert row(NetworkConfig()) == "can"
    assert row(NetworkConfig(counts=0)) == "can-no-counts"
    assert row(NetworkConfig.paper("MUTAG")) == "can-paper"
    assert row(NetworkConfig.paper("MUTAG"), "gin") == "gin"


def test_a_model_of_the_user_may_read_a_field_that_came_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = replace(MODELS["bag"], reads=("head_dropout",), network={"head_dropout": 0.3})
    monkeypatch.setitem(MODELS, "mine", entry)
    network, training = defaults("mine", "MUTAG")
    for rate in (0.3, 0.5):  # its own default, and the value that is left out of a record
        changed = replace(network, head_dropout=rate)
        settings = Settings("MUTAG", 188, "", "", "", changed, training, model="mine")
        assert Settings.of(settings.record()) == settings
