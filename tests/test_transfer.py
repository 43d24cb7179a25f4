"""`train --from`: what is copied, what is new, what stays fixed, and what is refused."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cell_attention import CellComplex, Model, NetworkConfig, load_dataset, load_model, train
from cell_attention.api import train as api
from cell_attention.errors import InputError
from cell_attention.inference.fit import TrainingPlan
from cell_attention.inference.model_saving import weights_digest
from cell_attention.inference.prediction import predict_complexes
from cell_attention.progress import Progress
from learning import assert_resumes_to_the_same_bytes, refused

SMALL: dict[str, Any] = {"hidden": (4, 4), "heads": (2, 2)}
SCHEDULE = {"epochs": 3, "learning_rate": 1e-2}

LAST = ("head.1", "counts.last", "descriptors.last")
"""The layers whose size is the number of outputs."""


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def origin_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("origin") / "model"
    train("MUTAG", network=SMALL, training=SCHEDULE, folder=folder)
    return folder


def plans(monkeypatch: pytest.MonkeyPatch, *args: Any, **more: Any) -> TrainingPlan:
    """The plan of a call of `train`, which does no epoch."""
    caught: list[TrainingPlan] = []
    with monkeypatch.context() as patch:
        patch.setattr(api, "run_plan", lambda plan, *_, **__: caught.append(plan))
        train(*args, **more)
    return caught[0]


def values_of(graphs: CellComplex) -> CellComplex:
    """The same graphs with a value to predict: far from zero, and not of unit scale."""
    sizes = graphs.node_complex.bincount(minlength=len(graphs)).float()
    return replace(graphs, targets=(1000.0 + 7.0 * sizes)[:, None])


@pytest.mark.parametrize(
    ("model", "network", "values"),
    [
        ("can", SMALL, False),
        ("can", SMALL, True),
        ("can", {**SMALL, "design": "paper", "lift_heads": 4, "pooling": "hierarchical"}, True),
        ("gin", {"hidden": (4, 4)}, True),
    ],
)
def test_a_model_that_starts_from_itself_predicts_the_same_before_its_first_epoch(
    model: str, network: dict[str, Any], values: bool, mutag: CellComplex,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    graphs = values_of(mutag) if values else mutag
    first = train(graphs, model, network=network, training=SCHEDULE)
    plan = plans(monkeypatch, graphs, model, from_model=first, training={**SCHEDULE, "seed": 5})
    training = plan.training(0)
    every = torch.arange(len(graphs))
    found = training.task.predictions(training.outputs(every).double())
    plain = replace(first, temperatures=())  # a training has none yet
    expected = predict_complexes(plain, graphs).values
    # Values are scaled to the training's units and back.
    torch.testing.assert_close(found, expected, rtol=1e-4 if values else 0.0, atol=0.0)
    fresh = plans(monkeypatch, graphs, model, network=network, training={**SCHEDULE, "seed": 5})
    assert not torch.allclose(fresh.training(0).outputs(every), training.outputs(every), rtol=1e-3)


def test_with_other_targets_the_output_layers_alone_are_new(
    origin_dir: Path, mutag: CellComplex, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, graphs = load_model(origin_dir), values_of(mutag)
    plan = plans(monkeypatch, graphs, from_model=origin_dir, training=SCHEDULE)
    fresh = plans(monkeypatch, graphs, network=SMALL, training=SCHEDULE).training(0).network
    old, new = model.network.state_dict(), plan.training(0).network.state_dict()
    outputs = {f"{last}.{part}" for last in LAST for part in ("weight", "bias")}
    assert old.keys() == new.keys()
    for name, value in new.items():
        expected = fresh.state_dict() if name in outputs else old
        assert torch.equal(value, expected[name]), name


def test_two_classes_with_other_names_are_other_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "a.csv"
    rows = ["CCO,0", "c1ccccc1O,1", "CCN,0", "c1ccccc1N,1"] * 10
    table.write_text("\n".join(["smiles,toxic", *rows]))
    first = train(table, network={**SMALL, "counts": 4}, training=SCHEDULE)
    assert plans(monkeypatch, table, from_model=first).training(0).start.weights.keys() == {
        *first.network.state_dict()
    }
    other = tmp_path / "b.csv"
    other.write_text("\n".join(["smiles,soluble", *rows]))
    started = plans(monkeypatch, other, from_model=first).training(0).start
    assert first.network.state_dict().keys() - started.weights.keys() == {
        f"{last}.{part}" for last in LAST for part in ("weight", "bias")
    }


def test_frozen_weights_stay_equal_bit_for_bit_and_the_others_change(
    origin_dir: Path, mutag: CellComplex
) -> None:
    old = load_model(origin_dir).network.state_dict()
    frozen = ("layers.0", "start", "counts")
    model = train("MUTAG", from_model=origin_dir, freeze=frozen, training=SCHEDULE)
    new = model.network.state_dict()
    held = {name for name in old if name.startswith(tuple(f"{part}." for part in frozen))}
    assert "layers.0.first.0.norm.running_mean" in held
    for name in held:
        assert torch.equal(old[name], new[name]), name
    moved = {name for name in old if not torch.equal(old[name], new[name])}
    assert moved == old.keys() - held
    # It can be trained further as a whole, like any other model.
    assert all(parameter.requires_grad for parameter in model.network.parameters())
    known = model.provenance
    assert known["freeze"] == ["counts", "layers.0", "start"]
    assert known["transfer"]["frozen"]["parts"] == ["start", "layers.0", "counts"]
    expected = sum(
        old[name].numel() for name, _ in model.network.named_parameters() if name in held
    )
    assert known["transfer"]["frozen"]["weights"] == expected


def test_the_optimiser_and_the_average_do_not_hold_frozen_weights(
    origin_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plans(monkeypatch, "MUTAG", from_model=origin_dir, freeze=("counts", "layers"))
    training = plan.training(0)
    held = [p for name, p in training.network.named_parameters() if name in training.start.fixed]
    assert len(held) > 10
    optimised = {id(p) for p in training.adam.param_groups[0]["params"]}
    assert not optimised & {id(p) for p in held}
    assert len(optimised) + len(held) == len(list(training.network.parameters()))
    assert training.average is not None
    averaged = {value.data_ptr() for value in training.average._new}
    assert not averaged & {p.data_ptr() for p in held}


def test_the_origin_is_the_sha256_of_the_weights_and_stands_in_the_record(
    origin_dir: Path, tmp_path: Path
) -> None:
    digest = hashlib.sha256((origin_dir / "model.safetensors").read_bytes()).hexdigest()
    assert weights_digest(load_model(origin_dir)) == digest
    model = train("MUTAG", from_model=origin_dir, training=SCHEDULE, folder=tmp_path / "m")
    record = json.loads((tmp_path / "m" / "config.json").read_text())["provenance"]
    assert record["origin"] == model.provenance["origin"] == digest
    assert "origin" not in load_model(origin_dir).provenance
    # Another origin is another model.
    other = train("MUTAG", network=SMALL, training={**SCHEDULE, "seed": 1})
    with pytest.raises(InputError, match="has another model"):
        train("MUTAG", from_model=other, training=SCHEDULE, folder=tmp_path / "m")
    again = train("MUTAG", from_model=origin_dir, training=SCHEDULE, folder=tmp_path / "m")
    assert weights_digest(again) == weights_digest(model)


def test_an_interrupted_fine_tuning_ends_with_the_same_bits(
    origin_dir: Path, tmp_path: Path
) -> None:
    words = ["train", "MUTAG", "--from", str(origin_dir), "--freeze", "start", "layers.0"]
    words += ["--epochs", "6", "--checkpoint-seconds", "0", "--quiet", "--ensemble", "2"]
    assert_resumes_to_the_same_bytes(words, tmp_path, epochs=4)


def test_what_is_copied_and_a_split_that_leaks_are_said_in_a_line_each(origin_dir: Path) -> None:
    class Heard(Progress):
        def __init__(self) -> None:
            self.said: list[str] = []

        def remark(self, text: str) -> None:
            self.said.append(text)

    heard = Heard()
    train(
        "MUTAG", from_model=origin_dir, freeze=("start",), training=SCHEDULE, split="random",
        progress=heard,
    )  # fmt: skip
    copied, leak = [text for text in heard.said if "from_model" in text]
    assert copied.startswith("from_model: 536,682 weights copied (start, layers, head")
    assert copied.endswith("; 0 weights new; 352 weights frozen (start)")
    assert "may have learned from graphs that are held out here" in leak


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--freeze", "layerss"], "--freeze must name parts of the network (start, layers, head, "),
        (["--freeze", "start", "layers", "head", "head_norm", "counts", "descriptors"], "to train"),
        (["--hidden", "8", "8"], "hidden must be (4, 4), as in --from, got (8, 8)"),
        (["--max-polygon", "5"], "max_polygon must be 6, as in --from, got 5"),
        (["--model", "gin"], "model must be 'can', as in --from, got 'gin'"),
    ],
)
def test_what_does_not_fit_is_one_line(
    words: list[str], message: str, origin_dir: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    command = ["train", "MUTAG", "--from", str(origin_dir), "--out", str(tmp_path / "m"), *words]
    assert message in refused(command, capsys)
    assert not (tmp_path / "m").exists()


def test_a_start_without_a_model_or_from_the_own_folder_is_one_line(
    origin_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "m")]
    assert "--freeze needs --from" in refused(["train", "MUTAG", "--freeze", "start", *out], capsys)
    missing = ["train", "MUTAG", "--from", str(tmp_path / "none"), *out]
    assert "is not a MODEL_DIR: config.json is missing" in refused(missing, capsys)
    own = ["train", "MUTAG", "--from", str(origin_dir), "--fresh", "--out", str(origin_dir)]
    before = (origin_dir / "config.json").read_bytes()
    assert "is --from itself; name another folder" in refused(own, capsys)
    assert (origin_dir / "config.json").read_bytes() == before


def test_other_features_are_one_line(origin_dir: Path, mutag: CellComplex, tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("\n".join(["smiles,y", *["CCO,0", "c1ccccc1O,1"] * 10]))
    with pytest.raises(InputError, match="does not have the features that the model was trained"):
        train(table, from_model=origin_dir, network={"max_polygon": 6})
    wider = replace(mutag, node_features=torch.cat([mutag.node_features] * 2, 1))
    with pytest.raises(InputError, match="graphs has node_features 14, from_model needs 7"):
        train(wider, from_model=origin_dir)


def test_the_network_is_that_of_the_model_and_dropout_may_change(origin_dir: Path) -> None:
    model: Model = train("MUTAG", from_model=origin_dir, training={"epochs": 1})
    assert model.config == NetworkConfig(**SMALL)
    other = train("MUTAG", from_model=origin_dir, network={"dropout": 0.3}, training={"epochs": 1})
    assert other.config == replace(model.config, dropout=0.3)
