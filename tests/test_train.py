"""`train` and the folder that it leaves: whole, checked, and the same after an interruption."""

import hashlib
import json
import shutil
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from cell_attention import NetworkConfig, TrainingConfig, load_dataset, train
from cell_attention.arguments import record_of
from cell_attention.cli.entry import run as run_words
from cell_attention.errors import CellAttentionError
from cell_attention.inference.model_folder import load_model
from cell_attention.models.registry import PRESETS
from cell_attention.models.settings import Settings
from cell_attention.nn.config import FIELDS_OF
from cell_attention.nn.rank_network import RankNetwork
from cell_attention.training.loop import Training
from learning import complaints, interrupted_after

QUICK = ("--hidden", "4", "4", "--heads", "2", "2", "--epochs", "12", "--quiet")
WORDS = ("train", "MUTAG", *QUICK)
PAPER = (*WORDS, "--design", "paper", "--lift-heads", "4")
"""The design of the versions before the network on every rank."""


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    assert run_words([*WORDS, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def paper_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "paper"
    assert run_words([*PAPER, "--out", str(folder)]) == 0
    return folder


def test_a_model_says_what_it_is_and_what_it_reached(model_dir: Path) -> None:
    record = json.loads((model_dir / "config.json").read_text())
    assert sorted(path.name for path in model_dir.iterdir()) == [
        "config.json", "metrics.jsonl", "model.safetensors", "splits.json",
    ]  # fmt: skip
    weights = (model_dir / "model.safetensors").read_bytes()
    assert record["weights_sha256"] == hashlib.sha256(weights).hexdigest()
    assert record["labels"] == ["-1", "1"]
    assert record["featuriser"]["node_labels"] == [[0, 1, 2, 3, 4, 5, 6]]
    lines = [json.loads(line) for line in (model_dir / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 13))
    assert record["provenance"]["best_epoch"] == 12  # the last, because there is no patience
    reached = record["provenance"]["reached"]
    assert reached["validation"]["score"] == lines[-1]["validation"]
    # The weights on disk, alone, reach what is written beside them.
    model, mutag = load_model(model_dir), load_dataset("MUTAG")
    fold = json.loads((model_dir / "splits.json").read_text())
    assert sorted(fold["train"] + fold["validation"] + fold["test"]) == list(range(188))
    assert mutag.targets is not None
    with torch.no_grad():
        guessed = model.network(mutag[fold["test"]]).argmax(1)
    right = 100 * float((guessed == mutag.targets[fold["test"]]).double().mean())
    assert right == reached["test"]["score"]
    assert not model.network.training


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ranks": (0, 1), "weights": "gate", "shared_cell": False},
        {"voices": "each", "update": "mlp"},
        {"pooling": "hierarchical", "neighbourhoods": ("nodes", "polygons", "faces")},
    ],
)
def test_a_network_on_every_rank_survives_its_folder(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    mutag = load_dataset("MUTAG")
    network = {"hidden": (4, 4), "heads": (2, 1), **changes}
    model = train(mutag, network=network, training={"epochs": 2}, folder=tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert isinstance(again.network, RankNetwork)
    assert again.config == model.config == NetworkConfig(**network)
    # Averaged weights can be trained further, and are counted, like any others.
    assert all(parameter.requires_grad for parameter in model.network.parameters())
    assert repr(model.network) == repr(again.network)
    model.save_pretrained(tmp_path / "copy")
    with torch.no_grad():
        expected = model.network(mutag)
        for one in (again, load_model(tmp_path / "copy")):
            assert torch.equal(one.network(mutag), expected)


def test_the_same_command_only_reads_and_another_one_is_refused(
    model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in model_dir.iterdir()}
    assert run_words([*WORDS, "--out", str(model_dir), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["best_epoch"] == json.loads(before["config.json"])["provenance"]["best_epoch"]
    assert run_words([*WORDS, "--dropout", "0.5", "--out", str(model_dir)]) == 2
    assert "has another model" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in model_dir.iterdir()} == before


LATER = (
    "attention_layer", "pooling_layer", "design", "ranks", "neighbourhoods", "shared_cell",
    "weights", "voices", "update", "head_dropout", "counts", "composition",
)  # fmt: skip
"""Fields of a network that the first versions did not have."""


def digest_before_parts(folder: Path) -> str:
    """The digest that versions before the fields of LATER made."""
    record = json.loads((folder / "config.json").read_text())
    known = record["provenance"]
    asked = {entry.name: known[entry.name] for entry in fields(Settings) if entry.name in known}
    asked["network"] = {k: v for k, v in record["network"].items() if k not in LATER}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def test_new_fields_of_a_network_do_not_change_what_earlier_versions_began() -> None:
    """A new field belongs into LATER_FIELDS; these digests were made before and after the first."""
    settings = Settings(
        "MUTAG",
        188,
        "data",
        "splits",
        "folds",
        NetworkConfig.paper("MUTAG"),
        TrainingConfig.plain(),
    )
    assert [digest[:16] for digest in settings.digests()[-2:]] == [
        "b810e03a00a034dd", "c7c4598249349d9e",
    ]  # fmt: skip
    other = replace(settings.network, pool_activation="relu", pooling_layer="top_k")
    assert not set(replace(settings, network=other).digests()) & set(settings.digests())
    assert len(replace(settings, model="gin").digests()) == 1


def test_a_record_without_a_design_is_one_of_the_papers_design() -> None:
    for name in PRESETS:
        network, training = NetworkConfig.paper(name), TrainingConfig.paper(name)
        records = record_of(network), record_of(training)
        assert not {*records[0]} & {"design", *FIELDS_OF["ranks"]}
        assert not {*records[1]} & {"warmup", "average", "label_smoothing"}
        assert NetworkConfig.from_record(records[0]) == network
        assert TrainingConfig.from_record(records[1]) == training
    network, training = NetworkConfig(), TrainingConfig()
    assert record_of(network)["design"] == "ranks"
    assert record_of(training)["average"] == 0.998
    for config in (network, training, NetworkConfig.molecules(), NetworkConfig(ranks=(1, 2))):
        assert type(config).from_record(json.loads(json.dumps(record_of(config)))) == config


def test_no_field_of_a_network_or_a_training_leaves_the_digest_as_it_is() -> None:
    """A change must be another run, also of the fields that came later."""
    changes: dict[str, dict[str, Any]] = {
        "network": {
            "design": "paper", "ranks": (1,), "neighbourhoods": ("lower",), "shared_cell": False,
            "weights": "gate", "voices": "each", "update": "mlp", "head_dropout": 0.3,
        },
        "training": {"average": 0.0, "warmup": 0.1, "label_smoothing": 0.1},
    }  # fmt: skip
    usual = NetworkConfig(), TrainingConfig()
    settings = Settings("MUTAG", 188, "data", "splits", "folds", *usual)
    seen = {settings.digest()}
    for table, entries in changes.items():
        for name, value in entries.items():
            config = replace(getattr(settings, table), **{name: value})
            other = replace(settings, **{table: config})
            assert other.digest() not in seen, name
            assert Settings.of(other.record()) == other
            seen.add(other.digest())


def test_a_model_of_an_earlier_version_is_that_of_its_own_command(
    paper_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old"
    shutil.copytree(paper_dir, old)
    record = json.loads((old / "config.json").read_text())
    record |= {"format": 2, **record.pop("sizes")}
    del record["model"]
    record["network"] = {k: v for k, v in record["network"].items() if k not in LATER}
    record["provenance"]["question"] = digest_before_parts(paper_dir)
    del record["provenance"]["settings"]
    for reached in record["provenance"]["reached"].values():
        del reached["graphs"]
    (old / "config.json").write_text(json.dumps(record))
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    assert run_words([*PAPER, "--out", str(old)]) == 0
    assert {path.name: path.read_bytes() for path in old.iterdir()} == before
    assert run_words([*PAPER, "--dropout", "0.5", "--out", str(old)]) == 2
    assert "has another model" in capsys.readouterr().err


def test_an_interrupted_training_of_an_earlier_version_is_continued(
    paper_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, words = (
        Training.epoch,
        [*PAPER, "--checkpoint-seconds", "0", "--out", str(tmp_path / "m")],
    )
    with interrupted_after(5):
        assert run_words(words) == 130
    path = tmp_path / "m" / "training.checkpoint"
    with safe_open(path, framework="pt") as file:
        state = json.loads(file.metadata()["state"])
    assert len(state["curves"]["score"]) == 5
    del state["settings"]
    state["question"] = digest_before_parts(paper_dir)
    save_file(load_file(path), path, {"state": json.dumps(state)})
    done: list[int] = []
    monkeypatch.setattr(Training, "epoch", lambda one: (done.append(one.epochs_done), once(one)))
    assert run_words(words) == 0
    assert done[0] == 5, "it goes on after the fifth epoch"
    weights = (tmp_path / "m" / "model.safetensors").read_bytes()
    assert weights == (paper_dir / "model.safetensors").read_bytes()


def test_a_training_that_is_killed_ends_with_the_same_weights(tmp_path: Path) -> None:
    words = [*WORDS, "--checkpoint-seconds", "0", "--epochs", "60"]
    assert run_words([*words, "--out", str(tmp_path / "whole")]) == 0
    cut, kills = tmp_path / "cut", 0
    while kills < 2:
        process = subprocess.Popen(
            [sys.executable, "-m", "cell_attention", *words, "--out", str(cut)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        began = time.time()
        path = cut / "training.checkpoint"
        while not (path.is_file() and path.stat().st_mtime > began) and process.poll() is None:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        kills += 1
    assert run_words([*words, "--out", str(cut)]) == 0
    for name in ("config.json", "metrics.jsonl", "model.safetensors", "splits.json"):
        assert (cut / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (cut / "training.checkpoint").exists()


def test_training_ends_early_when_validation_no_longer_improves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS, "--epochs", "300", "--patience", "3", "--json", "--out", str(tmp_path / "m")]
    assert run_words(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["epochs"] == said["best_epoch"] + 3 < 300
    lines = map(json.loads, (tmp_path / "m" / "metrics.jsonl").read_text().splitlines())
    scores = [line["validation"] for line in lines]
    assert scores[said["best_epoch"] - 1] == max(scores) == said["reached"]["validation"]["score"]


def changed(folder: Path, **entries: Any) -> None:
    record = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**record, **entries}))


def signed(folder: Path) -> None:
    weights = (folder / "model.safetensors").read_bytes()
    changed(folder, weights_sha256=hashlib.sha256(weights).hexdigest())


def test_a_model_that_is_not_whole_is_refused(model_dir: Path, tmp_path: Path) -> None:
    def spoil(number: int, folder: Path) -> str:
        weights = folder / "model.safetensors"
        if number == 0:
            (folder / "config.json").unlink()
            return "is not a MODEL_DIR: config.json is missing"
        if number == 1:
            weights.write_bytes(weights.read_bytes()[:-1])
            return "the SHA-256 differs from weights_sha256 in config.json"
        if number == 2:
            weights.write_bytes(weights.read_bytes()[:100])
            signed(folder)
            return "model.safetensors: the weights do not fit config.json"
        if number == 3:
            changed(folder, format=4)
            return "format 4 is newer than 3"
        if number == 4:
            sizes = json.loads((folder / "config.json").read_text())["sizes"]
            more = {"labels": ["a", "b", "c"], "thresholds": []}
            changed(folder, sizes={**sizes, "outputs": 3}, **more)
            return "model.safetensors: the weights do not fit config.json"
        if number == 5:
            record = json.loads((folder / "config.json").read_text())
            changed(folder, network={**record["network"], "ratio": 7.0})
            return r"not a valid description of a model \(ratio must lie"
        if number == 6:
            changed(folder, task="sorcery")
            return "task must be classes, labels or values, got 'sorcery'"
        if number == 7:
            sizes = json.loads((folder / "config.json").read_text())["sizes"]
            changed(folder, sizes={**sizes, "node_features": -1})
            return "sizes and members must be whole numbers"
        if number == 8:
            changed(folder, loader="os.system")
            return "unknown entry 'loader'"
        if number in (9, 10, 11):
            outside = ("../0/model.safetensors", "/etc/passwd", "..")[number - 9]
            changed(folder, weights=outside)
            return "weights must be a file in the folder, got"
        if number == 12:
            tensors = load_file(weights)
            name = sorted(tensors)[0]
            save_file({**tensors, name: tensors[name] + 1e-3}, weights)
            return "the SHA-256 differs from weights_sha256 in config.json"
        if number == 13:
            tensors = load_file(weights)
            save_file({**tensors, "extra": torch.zeros(1)}, weights)
            signed(folder)
            return "model.safetensors: the weights do not fit config.json"
        if number == 14:
            changed(folder, members=2)
            return "model.safetensors: the weights do not fit config.json"
        if number == 15:
            changed(folder, members=10**6)
            return "members must lie in 1…1000"
        if number == 16:
            changed(folder, thresholds=["high"])
            return r"thresholds must lie in \[0, 1\], got \['high'\]"
        if number == 17:
            (folder / "model.bin").symlink_to(model_dir / "model.safetensors")
            changed(folder, weights="model.bin")
            return "model.bin: this link leaves the folder"
        if number == 18:
            changed(folder, weights="model.bin")
            return "is not a MODEL_DIR: model.bin is missing"
        odd: list[tuple[dict[str, Any], str]] = [
            ({"labels": ["0"]}, "labels do not fit 2 outputs of task 'classes'"),
            ({"labels": ["0", "0"]}, "labels must differ"),
            ({"labels": [None, {}]}, "labels must be a list of texts"),
            ({"thresholds": [float("nan")]}, "thresholds must lie in"),
            ({"thresholds": [0.5, 0.5]}, "thresholds do not fit"),
            ({"thresholds": "0.5"}, "thresholds do not fit"),
            ({"target_names": ["a", "b"]}, "target_names do not fit"),
            ({"task": "values"}, "labels do not fit 2 outputs of task 'values'"),
            (
                {"seen": {"elements": [float("inf")]}},
                "seen elements must be whole numbers in 0…999",
            ),
            ({"seen": {"elements": [2**70]}}, "seen elements must be whole numbers in 0…999"),
            ({"seen": {"elements": "67"}}, "seen must hold lists"),
            ({"format": 0}, "format must be at least 1"),
        ]
        if number - 19 < len(odd):
            changed(folder, **odd[number - 19][0])
            return odd[number - 19][1]
        (folder / "config.json").write_text("{")
        return "not a complete JSON file"

    for number in range(32):
        folder = tmp_path / str(number)
        folder.mkdir()
        for path in model_dir.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        message = spoil(number, folder)
        with pytest.raises(CellAttentionError, match=message):
            load_model(folder)


def test_a_model_of_the_first_format_is_read(paper_dir: Path, tmp_path: Path) -> None:
    record = json.loads((paper_dir / "config.json").read_text())
    for name in ("members", "weights", "target_names", "thresholds", "seen"):
        del record[name]
    del record["model"]
    record["network"] = {k: v for k, v in record["network"].items() if k not in LATER}
    record |= record.pop("sizes")  # formats 1 and 2 have them beside the rest
    (tmp_path / "config.json").write_text(json.dumps({**record, "format": 1}))
    (tmp_path / "model.safetensors").write_bytes((paper_dir / "model.safetensors").read_bytes())
    old, new = load_model(tmp_path), load_model(paper_dir)
    mutag = load_dataset("MUTAG")
    assert torch.equal(old.network(mutag), new.network(mutag))
    assert old.thresholds == ()


def test_ensembles_are_interrupted_and_continued_to_the_same_weights(tmp_path: Path) -> None:
    words = [*WORDS, "--ensemble", "3", "--checkpoint-seconds", "0", "--epochs", "20"]
    assert run_words([*words, "--out", str(tmp_path / "whole")]) == 0
    cut = tmp_path / "cut"
    process = subprocess.Popen(
        [sys.executable, "-m", "cell_attention", *words, "--out", str(cut)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not (cut / "training-1.checkpoint").is_file() and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert not (cut / "config.json").exists()
    assert run_words([*words, "--out", str(cut)]) == 0
    names = ["config.json", "metrics.jsonl", "model.safetensors", "splits.json"]
    assert sorted(path.name for path in cut.iterdir()) == names
    for name in names:
        assert (cut / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    model = load_model(cut)
    assert len(model.members) == 3
    again = tmp_path / "again"
    model.save_pretrained(again)
    mutag = load_dataset("MUTAG")
    for one, other in zip(model.members, type(model).from_pretrained(again).members, strict=True):
        assert torch.equal(one(mutag), other(mutag))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["MUTAGG"], "no data set 'MUTAGG'"),
        (["MUTAG", "--validation", "0"], "validation must lie in (0, 1), got 0"),
        (["MUTAG", "--test", "0.95"], "must leave graphs to train on, got 0.1 and 0.95"),
        (["MUTAG", "--patience", "-1"], "patience must lie in 0…10^9, got -1"),
        (["MUTAG", "--checkpoint-seconds", "-1"], "checkpoint_seconds must not be negative"),
    ],
)
@pytest.mark.filterwarnings("ignore:.* is not on this machine")
def test_bad_words_are_one_line_and_exit_code_2(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_words(["train", *words, "--out", str(tmp_path / "model")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(complaints(said)) == 1
    assert not (tmp_path / "model").exists()


def test_a_folder_with_other_things_in_it_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "diary.txt").write_text("mine")
    for more in ([], ["--fresh"]):
        assert run_words([*WORDS, "--out", str(tmp_path), *more]) == 2
        assert "has other files (diary.txt)" in capsys.readouterr().err
    assert (tmp_path / "diary.txt").read_text() == "mine"


def test_a_loss_that_is_no_number_is_one_line_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS, "--learning-rate", "1e30", "--out", str(tmp_path / "model")]
    assert run_words(words) == 1
    said = capsys.readouterr().err
    assert len(complaints(said)) == 1
    assert "epoch" in said
