"""Parts and models of the user's own: the page on them runs, and every verb takes them."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from cell_attention import (
    NetworkConfig,
    crossvalidate,
    load_dataset,
    predict,
    register_model,
    train,
)
from cell_attention.cli.entry import run as run_words
from cell_attention.errors import InputError
from cell_attention.inference.model_folder import load_model
from cell_attention.inference.prediction import predict_complexes
from cell_attention.models.registry import MODELS
from cell_attention.nn.parts import PARTS, register_pooling, register_readout
from learning import refused

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three files of the page, in a folder."""
    folder = tmp_path_factory.mktemp("plugins")
    names = ("strongest.py", "degrees.py", "sizes.py")
    for name, text in zip(names, blocks()[:-1], strict=True):
        (folder / name).write_text(text)
    return folder


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def command(folder: Path, *words: str) -> str:
    """What a command prints; a process of its own, so that nothing is registered here."""
    ended = subprocess.run(
        [sys.executable, "-m", "cell_attention", *words],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_page_runs_as_it_is_written(plugins: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", blocks()[-1]], cwd=plugins, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("'predicted': 188") == 2


def test_the_page_can_be_followed_from_its_first_line_to_its_last() -> None:
    shell = re.findall(r" --out ([\w.-]+)", PAGE.read_text())
    python = re.findall(r'folder="([\w-]+)"', PAGE.read_text())
    assert shell
    assert python
    assert len({*shell, *python}) == len(shell) + len(python)  # a folder has one training


def test_a_pooling_layer_of_a_file_runs_through_every_verb(plugins: Path, tmp_path: Path) -> None:
    plugin = ("--plugin", str(plugins / "strongest.py"))
    small = ("--hidden", "4", "4", "--heads", "1", "1", "--epochs", "2")
    pooling = ("--pooling", "hierarchical", "--pooling-layer", "strongest")
    command(tmp_path, "train", "MUTAG", *plugin, *pooling, *small, "--out", "m")
    said = json.loads(command(tmp_path, "predict", "m", "MUTAG", *plugin, "--json"))
    assert said["predicted"] == 188
    command(tmp_path, "explain", "m", "MUTAG", *plugin, "--top", "3", "--out", "r.html")
    assert "strongest" in (tmp_path / "m" / "config.json").read_text()
    ended = subprocess.run(
        [sys.executable, "-m", "cell_attention", "predict", "m", "MUTAG"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "must be registered first" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_model_of_a_file_runs_through_every_verb_and_in_worker_processes(
    plugins: Path, tmp_path: Path
) -> None:
    plugin = ("--plugin", str(plugins / "degrees.py"))
    assert "degrees" in command(tmp_path, "crossval", "--help", *plugin)
    two = ("--model", "degrees", "--epochs", "2")
    command(tmp_path, "crossval", "MUTAG", *plugin, *two, "--jobs", "2", "--out", "run")
    here = crossvalidate_in(plugins, tmp_path / "here")
    assert (tmp_path / "run" / "result.json").read_bytes() == here
    command(tmp_path, "train", "MUTAG", *plugin, *two, "--out", "m")
    said = json.loads(command(tmp_path, "predict", "m", "MUTAG", *plugin, "--json"))
    assert said["predicted"] == 188
    command(tmp_path, "explain", "m", "MUTAG", *plugin, "--top", "3", "--out", "r.json")
    explained = json.loads((tmp_path / "r.json").read_text())
    assert len(explained) == 3
    assert all(any(value != 0 for value in one["edges"]) for one in explained)


def crossvalidate_in(plugins: Path, folder: Path) -> bytes:
    code = (
        "import degrees\nfrom cell_attention import crossvalidate\n"
        f"crossvalidate('MUTAG', 'degrees', training={{'epochs': 2}}, folder={str(folder)!r})"
    )
    subprocess.run([sys.executable, "-c", code], cwd=plugins, check=True)
    return (folder / "result.json").read_bytes()


def test_three_lines_of_python_give_the_bytes_of_the_command(tmp_path: Path) -> None:
    small = ["--hidden", "4", "4", "--heads", "1", "1"]
    words = ["crossval", "MUTAG", *small, "--epochs", "3", "--folds", "3", "--quiet"]
    assert run_words([*words, "--jobs", "1", "--out", str(tmp_path / "run")]) == 0
    changes = {"hidden": (4, 4), "heads": (1, 1)}
    result = crossvalidate("MUTAG", network=changes, training={"epochs": 3}, folds=3)
    assert result.to_json().encode() == (tmp_path / "run" / "result.json").read_bytes()
    again = crossvalidate(
        load_dataset("MUTAG"), network=NetworkConfig.paper("MUTAG"), training={"epochs": 1}, folds=3
    )
    assert again.source == "graphs"


def test_a_registered_readout_is_used_and_two_of_one_name_are_refused() -> None:
    @register_readout("first_feature_only")
    def first(values: Tensor, group: Tensor, num_groups: int) -> Tensor:
        found = values.new_zeros(num_groups, values.size(1)).index_add(0, group, values)
        return found * torch.eye(values.size(1))[0]

    config = NetworkConfig.edges(
        readout="first_feature_only", lift_heads=2, hidden=(4,), heads=(1,), pooling="global",
        pool_at="last",
    )  # fmt: skip
    try:
        model = train(load_dataset("MUTAG"), network=config, training={"epochs": 1})
        embedded = model.network.embed(load_dataset("MUTAG")[:3])  # type: ignore[operator]
        assert bool((embedded.complexes[:, 1:] == 0).all())
        assert bool((embedded.complexes[:, 0] != 0).any())
        with pytest.raises(InputError, match="already registered"):

            @register_readout("sum")
            def other(values: Tensor, group: Tensor, num_groups: int) -> Tensor:
                return values

        with pytest.raises(InputError, match="pooling_layer 'top_k' is already registered"):
            register_pooling("top_k")(nn.Identity)
        with pytest.raises(InputError, match="model 'gin' is already registered"):
            register_model("gin")(nn.Identity)
    finally:
        del PARTS["readout"]["first_feature_only"]


def test_a_rival_of_values_predicts_in_their_units_and_survives_its_folder(tmp_path: Path) -> None:
    complexes = load_dataset("MUTAG")
    sizes = complexes.node_complex.bincount().float() * 100 + 5000
    graphs = replace(complexes, targets=sizes[:, None])
    model = train(graphs, "bag", training={"epochs": 30}, folder=tmp_path / "m")
    values = predict_complexes(model, graphs).values
    assert abs(float((values[:, 0] - sizes).mean())) < 300
    assert float(values.min()) > 4000
    again = predict_complexes(load_model(tmp_path / "m"), graphs).values
    assert torch.equal(values, again)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["crossval", "MUTAG", "--plugin"], "needs a Python file"),
        (["crossval", "MUTAG", "--plugin", "nosuch.py"], "no such Python file"),
        (["train", "MUTAG", "--model", "wl"], "is not a network and cannot be saved"),
        (["train", "MUTAG", "--pooling-layer", "nosuch"], "pooling_layer must be one of 'top_k'"),
        (["crossval", "MUTAG", "--epoch", "3"], "--epochs"),
        (["crossval", "MUTAG", "--model", "nosuch"], "model must be one of can, cin"),
        (["crosval", "MUTAG"], "crossval"),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert part in refused(words, capsys)


def test_a_plugin_that_fails_is_named_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text("raise KeyError('x')\n")
    line = refused(["lift", "MUTAG", "--plugin", str(tmp_path / "broken.py")], capsys)
    assert "broken.py: KeyError: 'x'" in line
    assert "degrees" not in MODELS


def test_predictions_stand_under_their_names_and_no_input_is_replaced(tmp_path: Path) -> None:
    complexes = load_dataset("MUTAG")
    model = train(complexes, training={"epochs": 1}, folder=tmp_path / "m")
    table = predict(model, complexes[:3])
    assert table.header == ("graph", "prediction", "probability", "warning", "error")
    assert all(len(row) == len(table.header) for row in table.rows)
    shown = [float(row[2]) for row in table.rows]
    assert shown == pytest.approx(table.values[:, 1].tolist(), rel=1e-4)
    with pytest.raises(InputError, match=r"must end in \.csv"):
        predict(tmp_path / "m", complexes, out=tmp_path / "m" / "config.json")
    (tmp_path / "v.csv").write_text("smiles\nCCO\n")
    with pytest.raises(InputError, match="would be replaced"):
        predict(model, tmp_path / "v.csv", out=tmp_path / "v.csv")
    with pytest.raises(InputError, match="protocol must be one of"):
        crossvalidate(complexes, protocol="Fair")  # type: ignore[arg-type]
