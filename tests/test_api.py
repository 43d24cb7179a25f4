"""The functions of the package, called from Python: arguments are checked as the flags are."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cell_attention import (
    CANClassifier,
    CellAttentionNetwork,
    CellComplex,
    Columns,
    FileFormat,
    NetworkConfig,
    SplitOptions,
    ablate,
    crossvalidate,
    explain,
    fingerprint,
    from_networkx,
    lift,
    load_dataset,
    load_model,
    load_plugins,
    predict,
    register_model,
    register_pooling,
    search,
    to_networkx,
    to_pyg,
    train,
)
from cell_attention.cli.entry import run as run_words
from cell_attention.data.sources import lift_set, read_source
from cell_attention.data.splits.folds import Fold, Splits, stratified_folds
from cell_attention.errors import InputError
from learning import refused

HALVES = Splits.of((Fold(range(94), range(94, 188)), Fold(range(94, 188), range(94))), "halves")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


def _folds(*first: Any) -> Splits:
    """Two folds of MUTAG whose first one is given."""
    return Splits((Fold(*first), HALVES.folds[1]), "mine", "")


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (_folds((0, 188), (1,)), "folds, fold 0: train must list graphs 0…187, got 188"),
        (_folds((0, -1), (1,)), "folds, fold 0: train must list graphs 0…187, got -1"),
        (_folds((0, 0.5), (1,)), "folds, fold 0: train must be a list of graph numbers, got 0.5"),
        (_folds((0, True), (1,)), "fold 0: train must be a list of graph numbers, got True"),
        (_folds(None, (1,)), "folds, fold 0: train must be a list of graph numbers, got None"),
        (_folds((), (1,)), "folds, fold 0: train is empty"),
        (_folds((0,), ()), "folds, fold 0: validation is empty"),
        (_folds((0, 1), (1,)), "folds, fold 0: graph 1 is listed twice"),
        (_folds((0, 1), (2,), (1,)), "folds, fold 0: graph 1 is listed twice"),
        (_folds((0,), (1,)), "folds: the folds must hold out each of 188 graphs exactly once"),
        (Splits(HALVES.folds[:1], "mine", ""), "folds: must be a list of at least 2 folds, got 1"),
        (Splits((3,), "mine", ""), "folds, fold 0: must be a Fold, got 3"),  # type: ignore[arg-type]
        ("3", "folds must be a whole number or a Splits, got '3'"),
        (2.0, "folds must be a whole number or a Splits, got 2.0"),
    ],
)
def test_splits_from_python_are_checked_like_those_of_a_file(
    folds: Any, message: str, mutag: CellComplex
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        crossvalidate(mutag, "majority", folds=folds)


def test_splits_may_be_arrays_and_have_the_digest_of_their_numbers(mutag: CellComplex) -> None:
    assert mutag.targets is not None
    made = stratified_folds(mutag.targets, 3)
    arrays = tuple(Fold(np.array(f.train), np.array(f.validation)) for f in made.folds)  # type: ignore[arg-type]
    again = Splits.of(arrays, made.origin)
    assert again == made
    assert crossvalidate(mutag, "majority", folds=again) == crossvalidate(
        mutag, "majority", folds=3
    )


def test_the_fair_protocol_adds_inner_validation_graphs_to_splits_from_python(
    mutag: CellComplex, tmp_path: Path
) -> None:
    crossvalidate(
        mutag, "bag", folds=HALVES, protocol="fair", training={"epochs": 1}, folder=tmp_path / "run"
    )
    stored = json.loads((tmp_path / "run" / "splits.json").read_text())
    for fold, given in zip(stored, HALVES.folds, strict=True):
        assert tuple(fold["test"]) == given.validation
        assert len(fold["validation"]) == 9
        assert sorted(fold["train"] + fold["validation"]) == list(given.train)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"network": {"dropout": [0.5]}}, "grid must be a list of changes such as {'network'"),
        ([3], "grid: an entry must map network and training to changes of their fields, got 3"),
        ([{"net": {}}], "grid: an entry must map network and training"),
        ([{"network": 3}], "grid: an entry must map network and training"),
        ([{"network": {"dropot": 0.5}}], "grid: there is no field 'dropot'; did you mean dropout?"),
        ([{"network": {"dropout": 2}}], "grid: dropout must lie in [0, 1), got 2"),
        ([{"training": {"seed": 3}}], "grid: seed must be the same for the whole grid"),
        ([{"network": {"lift_heads": 3}}], "design 'ranks' does not use lift_heads"),
    ],
)
def test_a_grid_from_python_is_checked_like_that_of_a_file(
    grid: Any, message: str, mutag: CellComplex
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        crossvalidate(mutag, grid=grid, protocol="fair", folds=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"network": {"hiden": (4,)}}, "network: there is no field 'hiden'; did you mean hidden?"),
        ({"training": {"epochs": -1}}, "training: epochs must lie in 0…10^9, got -1"),
        ({"network": 3}, "network must be a NetworkConfig or a mapping of its fields, got 3"),
        (
            {"training": "x"},
            "training must be a TrainingConfig or a mapping of its fields, got 'x'",
        ),
    ],
)
def test_a_bad_configuration_is_refused_with_the_name_of_the_argument(
    arguments: dict[str, Any], message: str, mutag: CellComplex
) -> None:
    for function in (crossvalidate, train):
        with pytest.raises(InputError, match=re.escape(message)):
            function(mutag, **arguments)


def test_graphs_that_are_lifted_state_the_longest_polygon() -> None:
    rings = replace(lift(["C1CCCCCCC1", "CCO"] * 20), targets=torch.tensor([0, 1] * 20))
    once = {"epochs": 1}
    for data in (rings, lift_set(read_source("MUTAG"), 8)):
        assert train(data, training=once).config.max_polygon == 8
        for network in ({"max_polygon": 6}, NetworkConfig()):
            for function in (train, crossvalidate):
                with pytest.raises(InputError, match=r"max_polygon must fit the graphs.* got 6"):
                    function(data, network=network, training=once)
    assert train(lift_set(read_source("MUTAG"), 5), training=once).config.max_polygon == 5
    assert train(read_source("MUTAG"), training=once).config.max_polygon == 6


def test_the_usual_protocol_is_fair_for_molecules_and_networks_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("smiles,y\n" + "CCO,0\nCCN,1\n" * 20)
    for data, model, protocol in (
        (path, "bag", "fair"), (path, "majority", "paper"), ("MUTAG", "bag", "paper"),
    ):  # fmt: skip
        changes = {"epochs": 1} if model == "bag" else {}
        run, command = tmp_path / f"{Path(data).name}-{model}", tmp_path / "command"
        crossvalidate(data, model, folds=2, training=changes, folder=run)
        words = ["crossval", str(data), "--model", model, "--folds", "2", "--out", str(command)]
        more = ["--epochs", "1"] if model == "bag" else []
        assert run_words([*words, *more, "--jobs", "1", "--fresh"]) == 0
        for folder in (run, command):
            settings = json.loads((folder / "run.json").read_text())["settings"]
            assert settings["protocol"] == protocol


def test_a_source_is_read_as_the_arguments_say(tmp_path: Path) -> None:
    path, once = tmp_path / "m.csv", {"epochs": 1}
    path.write_text("id,text,y,z\n" + "a,CCO,0,2.5\nb,CCN,1,3.5\n" * 20)
    columns = Columns("text", ("z",))
    model = train(path, training=once, columns=columns)
    assert (model.target_names, model.task) == (("z",), "values")
    found = crossvalidate(path, "bag", folds=2, training=once, columns=columns)
    assert found.score == "negative RMSE"
    with pytest.raises(
        InputError, match="data_dir, node_attributes, columns and file_format are for a SOURCE"
    ):
        train(read_source("MUTAG"), node_attributes=True)
    with pytest.raises(InputError, match="targets must be a tuple of names, got the text 'z'"):
        Columns(targets="z")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="columns must be a Columns, got 'z'"):
        train(path, columns="z")  # type: ignore[arg-type]


def test_a_folder_of_sets_is_searched_and_node_attributes_are_read(tmp_path: Path) -> None:
    raw = tmp_path / "data" / "TINY"
    raw.mkdir(parents=True)
    count, pairs = 20, [(2 * g + 1, 2 * g + 2) for g in range(20)]
    (raw / "TINY_A.txt").write_text("".join(f"{a}, {b}\n{b}, {a}\n" for a, b in pairs))
    (raw / "TINY_graph_indicator.txt").write_text("".join(f"{g + 1}\n" * 2 for g in range(count)))
    (raw / "TINY_graph_labels.txt").write_text("0\n1\n" * (count // 2))
    (raw / "TINY_node_labels.txt").write_text("0\n1\n" * count)
    (raw / "TINY_node_attributes.txt").write_text("0.5, 1.5, 2.5\n" * 2 * count)
    widths = [
        train(
            "TINY", "bag", training={"epochs": 1}, data_dir=tmp_path / "data", node_attributes=more
        ).sizes["node_features"]
        for more in (False, True)
    ]
    assert widths == [2, 5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train(5), "data must be a text, a path, a GraphSet or a CellComplex, got 5"),
        (lambda: train("MUTAG", ["can"]), "model must be a text, got ['can']"),
        (lambda: train("MUTAG", ensemble=1.5), "ensemble must be a whole number, got 1.5"),
        (lambda: train("MUTAG", validation="x"), "validation must be a number, got 'x'"),
        (lambda: train("MUTAG", folder=3), "folder must be a text or a path, got 3"),
        (lambda: train("MUTAG", fresh="no"), "fresh must be True or False, got 'no'"),
        (lambda: train("MUTAG", split=3), "split must be one of 'auto', 'random', 'stratified', "),
        (lambda: train("MUTAG", split=SplitOptions(seed="x")), "split_seed must lie in 0…"),
        (lambda: crossvalidate("MUTAG", jobs="x"), "jobs must be a whole number, got 'x'"),
        (lambda: ablate("MUTAG", protocol=3), "protocol must be one of 'paper', 'fair', got 3"),
        (lambda: search("MUTAG", trials="x"), "trials must be a whole number, got 'x'"),
        (lambda: search("MUTAG", space=3), "space: must map shape, network, training to their"),
        (lambda: search("MUTAG", space={"net": {}}), "space: must map shape, network, training"),
        (lambda: predict(5, "CCO"), "model must be a Model, a text or a path, got 5"),
        (lambda: predict("m", "CCO", on_error="x"), "on_error must be one of 'fail', 'skip', "),
        (lambda: fingerprint("m", "CCO", out=3), "out must be a text or a path, got 3"),
        (lambda: CellComplex.load(3), "path must be a text or a path, got 3"),  # type: ignore[arg-type]
        (lambda: explain("m", "CCO", top="x"), "top must be a whole number, got 'x'"),
        (lambda: load_model(3), "folder must be a text or a path, got 3"),
        (lambda: load_dataset("MUTAG", data_dir=3), "data_dir must be a text or a path, got 3"),
        (lambda: load_plugins(3), "files must be paths of Python files, got 3"),
        (lambda: lift("CCO", limits=3), "limits must be a Limits, got 3"),
        (
            lambda: CANClassifier(network=3).fit(["C", "O"], [0, 1]),
            "network must be a NetworkConfig",
        ),
        (lambda: crossvalidate("MUTAG", search_trials=-1), "search_trials must be at least 0, got"),
        (
            lambda: CANClassifier(descriptors=3).fit(["C", "O"], [0, 1]),
            "descriptors must be a tuple of names, got 3",
        ),
        (lambda: lift("CCO", degrees="x"), "degrees must be a whole number, got 'x'"),
        (lambda: lift("CCO", edge_merge=3), "edge_merge must be one of "),
        (lambda: FileFormat(max_bytes="x"), "max_bytes must be a whole number of at least 1"),  # type: ignore[arg-type]
        (lambda: FileFormat(encoding=3), "encoding must be the name of a text encoding"),  # type: ignore[arg-type]
        (lambda: Columns(smiles=3), "smiles must be the name of a column, got 3"),  # type: ignore[arg-type]
        (lambda: Columns(targets=("a", 3)), "targets must be a tuple of names, got ('a', 3)"),  # type: ignore[arg-type]
        (lambda: CellAttentionNetwork(3, 1, 1, 1), "config must be a NetworkConfig, got 3"),  # type: ignore[arg-type]
        (
            lambda: CellAttentionNetwork(NetworkConfig(), "a", 1, 1),  # type: ignore[arg-type]
            "node_features must be a whole number, got 'a'",
        ),
        (lambda: to_pyg(3), "complexes must be a CellComplex, got int"),  # type: ignore[arg-type]
        (lambda: to_networkx(3), "complexes must be a CellComplex, got int"),  # type: ignore[arg-type]
        (lambda: from_networkx(3), "graph must be a networkx graph, got int"),  # type: ignore[arg-type]
        (lambda: register_model(3), "name must be a text, got 3"),  # type: ignore[arg-type]
        (lambda: register_pooling(""), "name must be a text, got ''"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named_with_the_rule_and_the_value(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        call()


def test_an_error_names_the_argument_in_python_and_the_flag_at_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    crossvalidate("MUTAG", "majority", folds=2, folder=folder)
    rule = "has a run with other settings"
    with pytest.raises(InputError, match=rf"^folder .*{rule}.*, or use fresh to start over$"):
        crossvalidate("MUTAG", "majority", folds=3, folder=folder)
    words = ["crossval", "MUTAG", "--model", "majority", "--folds", "3", "--out", str(folder)]
    said = refused(words, capsys)
    assert said.startswith("cell-attention: --out ")
    assert rule in said
    assert said.endswith("use --fresh to start over")
