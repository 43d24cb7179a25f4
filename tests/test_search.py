"""`search`: what it may change, what it sees, and that no kill changes where it ends."""

import json
import subprocess
import sys
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from cell_attention import NetworkConfig, TrainingConfig
from cell_attention.cli.entry import run as run_words
from cell_attention.cli.options.config import configured
from cell_attention.errors import InputError
from cell_attention.evaluation.run_folder import RunFolder
from cell_attention.models.registry import MODELS, defaults
from cell_attention.nn.config import FIELDS_OF
from cell_attention.tuning.space import (
    Categorical,
    Range,
    applied,
    as_toml,
    check_space,
    space_of,
    suggested,
    usual_space,
)
from learning import refused

pytest.importorskip("optuna")

SPACE = """
[shape]
width = [2, 4]
[network]
dropout = {low = 0.0, high = 0.5}
[training]
learning_rate = {low = 1e-3, high = 1e-1, log = true}
"""


def words(out: Path, space: Path, *more: str) -> list[str]:
    given = ["search", "MUTAG", "--folds", "3", "--epochs", "2", "--jobs", "1", "--quiet"]
    small = ["--hidden", "2", "2", "--heads", "1", "1", "--space", str(space)]
    # After two epochs most networks still predict the largest class: their accuracy is the same.
    ranked = ["--metric", "roc_auc"]
    return [*given, *small, *ranked, "--out", str(out), *more]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("space") / "space.toml"
    path.write_text(SPACE)
    return path


@pytest.fixture(scope="module")
def searched(space: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search") / "run"
    assert run_words(words(folder, space, "--trials", "8")) == 0
    return folder


def trials(folder: Path) -> list[dict[str, Any]]:
    record = json.loads((folder / "trials.json").read_text())
    listed: list[dict[str, Any]] = record["tried"][0]
    return listed


def test_the_winner_has_the_best_mean_of_inner_validation_scores(searched: Path) -> None:
    means = {}
    for entry in trials(searched):
        parts = sorted((searched / entry["name"]).glob("fair-*-choice-0.json"))
        records = [json.loads(path.read_text()) for path in parts]
        scores = [record["score"][record["epoch"] - 1] for record in records]
        assert len(scores) == entry["folds"]
        assert entry["value"] == pytest.approx(sum(scores) / len(scores))
        if entry["state"] in ("start", "complete"):
            means[entry["name"]] = entry["value"]
        else:
            assert entry["state"] == "pruned"
            assert entry["folds"] < 3
    best = max(means.values())
    record = json.loads((searched / "trials.json").read_text())["winners"][0]
    assert record["value"] == best
    assert record["name"] == next(name for name, value in means.items() if value == best)
    asked = json.loads((searched / record["name"] / "run.json").read_text())["settings"]
    with (searched / "best.toml").open("rb") as file:
        written = tomllib.load(file)
    for kind, table in ((NetworkConfig, "network"), (TrainingConfig, "training")):
        assert written[table].keys() == {entry.name for entry in fields(kind)}
        assert kind.from_record(written[table]) == kind.from_record(asked[table])


def test_a_trial_never_trains_on_or_watches_what_its_fold_holds_out(searched: Path) -> None:
    folds = json.loads((searched / "trial-0000" / "splits.json").read_text())
    assert len(folds) == 3
    for fold in folds:
        assert not {*fold["train"], *fold["validation"]} & set(fold["test"])
        assert len({*fold["train"], *fold["validation"], *fold["test"]}) == 188
    # Between them the inner parts cover every graph, which is why the plain search says so.
    seen = {graph for fold in folds for graph in (*fold["train"], *fold["validation"])}
    assert len(seen) == 188


def test_more_trials_go_on_and_a_second_run_does_nothing(
    searched: Path, space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run_words(words(out, space, "--trials", "4")) == 0
    first = trials(out)
    written = {path: path.stat().st_mtime_ns for path in out.glob("*/fair-*.json")}
    assert run_words(words(out, space, "--trials", "4")) == 0
    assert written == {path: path.stat().st_mtime_ns for path in out.glob("*/fair-*.json")}
    assert trials(out) == first
    assert run_words(words(out, space, "--trials", "8")) == 0
    assert trials(out)[:5] == first
    assert trials(out) == trials(searched)
    printed = capsys.readouterr().out
    assert "Use --nested for one" in printed
    assert "is an honest estimate" in printed


def test_two_processes_find_what_one_finds(space: Path, tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        given = words(tmp_path / jobs, space, "--trials", "2")
        given[given.index("--jobs") + 1] = jobs
        given[given.index("--folds") + 1] = "2"
        assert run_words(given) == 0
    for name in ("trials.json", "best.toml"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_a_searched_configuration_is_cross_validated_with_a_word_of_warning(
    searched: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ["--config", str(searched / "best.toml"), "--folds", "3", "--quiet", "--jobs", "1"]
    assert run_words(["crossval", "MUTAG", *config, "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "a search of 8 trials over these graphs chose the configuration" in printed
    leaks = json.loads((tmp_path / "run" / "result.json").read_text())["leaks"]
    assert len(leaks) == 1
    plain = ["crossval", "MUTAG", "--model", "majority", "--folds", "3", "--quiet"]
    assert run_words([*plain, "--out", str(tmp_path / "majority")]) == 0
    assert run_words(["report", str(tmp_path / "run"), str(tmp_path / "majority")]) == 0
    assert f"MUTAG, can: {leaks[0]}." in capsys.readouterr().out
    text = (searched / "best.toml").read_text().replace('source = "MUTAG"', 'source = "OTHER"')
    (tmp_path / "other.toml").write_text(text)
    config[1] = str(tmp_path / "other.toml")
    assert run_words(["crossval", "MUTAG", *config, "--out", str(tmp_path / "clean")]) == 0
    assert json.loads((tmp_path / "clean" / "result.json").read_text())["leaks"] == []
    capsys.readouterr()


def test_a_nested_search_reports_graphs_that_no_choice_has_seen(
    space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    # With this seed one of the later trials wins a fold.
    given = ("--nested", "--seed", "0", "--counts", "0", "--composition", "False")
    assert run_words(words(out, space, "--trials", "2", *given)) == 0
    printed = capsys.readouterr().out
    record = json.loads((out / "trials.json").read_text())
    assert not (out / "best.toml").exists()
    assert len(record["winners"]) == len(record["nested"]["folds"]) == 3
    for fold, (winner, score) in enumerate(
        zip(record["winners"], record["nested"]["folds"], strict=True)
    ):
        below = out / f"outer-{fold:02}"
        (place,) = below.glob("winner-*")
        assert place.name == f"winner-{winner['name']}"
        reruns = sorted(place.glob(f"fair-{fold:02}-rerun-[012].json"))
        tests = [json.loads(path.read_text())["test"] for path in reruns]
        assert score == pytest.approx(sum(tests) / 3)
        asked = json.loads((below / winner["name"] / "run.json").read_text())["settings"]
        again = json.loads((place / "run.json").read_text())["settings"]
        assert asked == again
        # A study looks at the inner parts of its own fold alone.
        parts = {path.name[:7] for path in below.glob("*/fair-*-choice-*.json")}
        assert parts == {f"fair-{fold:02}"}
    assert "(honest)" in printed
    first = (out / "trials.json").read_bytes()
    next(out.glob("outer-01/winner-*/fair-01-rerun-1.json")).unlink()
    assert run_words(words(out, space, "--trials", "2", *given)) == 0
    assert (out / "trials.json").read_bytes() == first
    assert run_words(words(out, space, "--trials", "8", *given)) == 0
    winners = json.loads((out / "trials.json").read_text())["winners"]
    assert [winner["name"] for winner in winners] != [w["name"] for w in record["winners"]]
    capsys.readouterr()


def test_a_trial_that_was_given_up_does_not_win_by_its_easy_folds(
    space: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fold 0 is easy, so what is pruned after it has a higher mean than what saw all folds."""

    def scores(self: Any, run: RunFolder, folds: tuple[int, ...]) -> list[float]:
        later = int(run.folder.name[-2:]) if run.folder.name.startswith("trial") else 0
        return [(90.0 if fold == 0 else 60.0) - later for fold in folds]

    monkeypatch.setattr("cell_attention.tuning.search._Search._scores", scores)
    monkeypatch.setattr("cell_attention.tuning.search._Search._train", lambda self, wanted: None)
    assert run_words(words(tmp_path / "run", space, "--trials", "10")) == 0
    listed = trials(tmp_path / "run")
    given_up = [entry for entry in listed if entry["state"] == "pruned"]
    assert given_up
    assert all(entry["folds"] < 3 and entry["value"] > 70.0 for entry in given_up)
    complete = [entry for entry in listed if entry["state"] in ("start", "complete")]
    best = max(complete, key=lambda entry: float(entry["value"]))
    record = json.loads((tmp_path / "run" / "trials.json").read_text())["winners"][0]
    assert (record["name"], record["value"]) == (best["name"], best["value"])
    assert best["value"] == pytest.approx(70.0)
    capsys.readouterr()


def test_a_searched_start_is_never_called_honest(
    searched: Path, space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["search", "MUTAG", "--folds", "3", "--quiet", "--jobs", "1", "--space", str(space)]
    given += ["--config", str(searched / "best.toml"), "--trials", "1"]
    assert run_words([*given, "--nested", "--out", str(tmp_path / "nested")]) == 0
    printed = capsys.readouterr().out
    assert "(honest)" not in printed
    assert "not honest: a search of 8 trials over these graphs" in printed
    assert run_words([*given, "--out", str(tmp_path / "plain")]) == 0
    with (tmp_path / "plain" / "best.toml").open("rb") as file:
        assert tomllib.load(file)["search"]["trials"] == 9
    config = ["--config", str(searched / "best.toml"), "--quiet"]
    assert run_words(["train", "MUTAG", *config, "--out", str(tmp_path / "model")]) == 0
    assert "a search of 8 trials over these graphs" in capsys.readouterr().out


def test_a_trial_that_diverges_is_no_winner_and_no_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "space.toml"
    path.write_text("[training]\nlearning_rate = [1e30, 1e-3]\n")
    out = tmp_path / "run"
    assert run_words(words(out, path, "--trials", "4")) == 0
    states = {entry["changes"]["training.learning_rate"]: entry for entry in trials(out)[1:]}
    assert states["1e+30"]["state"] == "fail"
    assert states["0.001"]["state"] != "fail"
    assert json.loads((out / "trials.json").read_text())["winners"][0]["value"] is not None
    capsys.readouterr()


def test_values_that_do_not_go_together_end_a_trial_and_not_the_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "space.toml", tmp_path / "run"
    path.write_text("[network]\nhidden = [[2, 2], [2, 4]]\npooling = ['none', 'hierarchical']\n")
    # Layers of unequal width cannot be added up, which only the paper's design does.
    assert run_words(words(out, path, "--trials", "8", "--design", "paper")) == 0
    states = {
        (entry["changes"]["network.hidden"], entry["changes"]["network.pooling"]): entry["state"]
        for entry in trials(out)[1:]
    }
    assert "fail" in states.values()
    for (hidden, pooling), state in states.items():
        assert (state == "fail") == (hidden == "[2, 4]" and pooling == '"hierarchical"')
    capsys.readouterr()


# Kills -------------------------------------------------------------------------------------------

EVERY_WRITE = """
import os, signal, sys
from pathlib import Path
from cell_attention.cli.entry import run

words, root, step = sys.argv[3:], Path(sys.argv[1]), int(sys.argv[2])
fsync = os.fsync


def attempt(out, place):
    # A child that is killed in its write number `place`: a line of the journal, or a file.
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == signal.SIGKILL
    count = 0

    def dying_fsync(handle):
        nonlocal count
        count += 1
        if count == place:
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(handle)

    os.fsync = dying_fsync
    os._exit(run([*words, "--out", str(out)]))


def kept(out):
    return {name: (out / name).read_bytes() for name in ("trials.json", "best.toml")}


run([*words, "--trials", "1", "--out", str(root / "warm")])
assert not attempt(root / "whole", 0)
expected, kills, place = kept(root / "whole"), 0, 1
while attempt(root / f"cut-{place}", place):
    out = root / f"cut-{place}"
    if kills % 2:  # and the line that was being written has lost its end
        journal = out / "journal.log"
        if journal.is_file() and journal.stat().st_size > 5:
            os.truncate(journal, journal.stat().st_size - 5)
    assert not attempt(out, 0), place
    assert kept(out) == expected, place
    kills, place = kills + 1, place + step
print(kills, "kills", file=sys.stderr)
sys.exit(0 if kills > 5 else 1)
"""


def test_a_search_that_is_killed_in_any_write_ends_with_the_same_trials(
    space: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    step = 3 if pytestconfig.getoption("kills") > 3 else 19
    # More than the pruner's five and the sampler's ten, so that both have begun to choose.
    given = words(tmp_path / "out", space, "--trials", "12")
    given[given.index("--epochs") + 1] = "1"
    del given[given.index("--out") : given.index("--out") + 2]
    ended = subprocess.run(
        [sys.executable, "-c", EVERY_WRITE, str(tmp_path), str(step), *given],
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr


# The space ---------------------------------------------------------------------------------------


NETWORKS = [name for name, model in MODELS.items() if model.epochs]


@pytest.mark.parametrize(("model", "design"), [("can", "ranks"), *((n, "paper") for n in NETWORKS)])
def test_every_corner_of_a_usual_space_is_a_configuration_of_its_model(
    model: str, design: str
) -> None:
    space = usual_space(model, design)
    usual = defaults(model, "MUTAG", design)
    check_space(space, model, usual, where="usual")

    def corner(end: int) -> Any:
        def value(name: str, where: Categorical | Range) -> Any:
            if isinstance(where, Categorical):
                return where.values[end]
            return (where.low, where.high)[end]

        return value

    for end in (0, -1):
        made = applied(model, suggested(space, corner(end)), usual)
        assert made != usual
    for pooling in ("hierarchical", "global", "none"):
        if "pooling" in space["network"]:
            changes = suggested(space, corner(0))
            changes["network"]["pooling"] = pooling
            applied(model, changes, usual)


def test_the_usual_space_of_a_design_has_no_field_of_the_other_one() -> None:
    for design, other in (("ranks", "paper"), ("paper", "ranks")):
        searched = usual_space("can", design)["network"].keys()
        assert searched & {*FIELDS_OF[design]}
        assert not searched & {*FIELDS_OF[other]}


def test_a_space_with_a_field_of_the_other_design_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "space.toml", tmp_path / "run"
    path.write_text("[network]\nlift_heads = [2, 4]\n")
    line = refused(words(out, path), capsys)
    assert "space.toml: [network] lift_heads: design 'ranks' does not use lift_heads" in line
    path.write_text("[network]\nhead_dropout = {low = 0.1, high = 0.2}\n")
    line = refused(words(out, path, "--design", "paper"), capsys)
    assert "[network] head_dropout: design 'paper' does not use head_dropout" in line
    assert not out.exists()


@pytest.mark.parametrize(
    ("network", "training"),
    [
        (
            replace(NetworkConfig.paper("NCI109"), learn_epsilon=True),
            replace(TrainingConfig.paper("NCI1"), learning_rate=1e-05),
        ),
        (
            NetworkConfig(ranks=(0, 1), neighbourhoods=("nodes", "faces"), shared_cell=False),
            TrainingConfig(average=0.9, label_smoothing=0.1),
        ),
    ],
    ids=["paper", "ranks"],
)
def test_a_configuration_survives_its_toml(
    network: NetworkConfig, training: TrainingConfig
) -> None:
    text = as_toml("can", (network, training), {"source": 'a "quoted" \\ name', "trials": 3})
    record = tomllib.loads(text)
    assert NetworkConfig.from_record(record["network"]) == network
    assert TrainingConfig.from_record(record["training"]) == training
    assert record["search"]["source"] == 'a "quoted" \\ name'


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"network": {"hiden": [1]}}, "'hiden' in [network] must be one of"),
        ({"training": {"seed": [1, 2]}}, "'seed' in [training] must be one of"),
        ({"network": {"max_polygon": [5, 6]}}, "'max_polygon' in [network] must be one of"),
        (
            {"network": {"dropout": 0.5}},
            "must be a list of values or, for a number, {low, high, log}",
        ),
        ({"network": {"dropout": {"low": 0.5, "high": 0.1}}}, "with low < high"),
        (
            {"network": {"dropout": {"low": 0.0, "high": 0.1, "log": True}}},
            "low > 0 if log is true",
        ),
        ({"network": {"dropout": {"low": 0, "high": 1, "step": 1}}}, "{low, high, log}"),
        ({"network": {"dropout": []}}, "must be a list of values"),
        (
            {"shape": {"layers": [1]}, "network": {"hidden": [[1]]}},
            "[shape] sets hidden and heads",
        ),
        ({}, "must name at least one field to search"),
    ],
)
def test_a_space_that_cannot_be_is_refused(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        space_of(tables, "space.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("space.toml: ")


def test_what_cannot_be_searched_is_one_line(
    searched: Path, space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    out = tmp_path / "run"
    assert "trials must be at least 1" in refused(words(out, space, "--trials", "0"), capsys)
    line = refused(["search", "MUTAG", "--model", "wl", "--out", str(out)], capsys)
    assert "model 'wl' has no configuration to search" in line
    line = refused(words(searched, space, "--patience", "3"), capsys)
    assert "has a search with other settings: settings.training.patience was 0, is 3" in line
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    line = refused(words(tmp_path / "full", space), capsys)
    assert "is neither empty nor a search" in line
    assert (tmp_path / "full" / "mine.txt").exists()
    line = refused(words(out, tmp_path / "none.toml"), capsys)
    assert "--space" in line
    assert "no such file" in line
    bad = tmp_path / "bad.toml"
    for text, message in (
        ("[network]\nratio = [0.5, 2.0]", "ratio: ratio must lie in (0, 1], got 2.0"),
        ("[network]\ndropout = {low = 0, high = 1}", "dropout must lie in [0, 1), got 1.0"),
        ("[network]\nweights = ['gate', 'gat']", "weights must be one of"),
        (
            "[training]\nbatch_size = ['64']",
            "[training] batch_size must be a list of whole numbers",
        ),
        (
            "[training]\nbatch_size = {low = 16.0, high = 64.0}",
            "whole numbers for a field of whole numbers",
        ),
        ("[shape]\nwidth = [0, 4]", "width: hidden must"),
        ("[shape]\nlayers = {low = 1.0, high = 3.0}", "whole numbers for a field of whole numbers"),
        ("[shape]\nlayers = [true]", "[shape] layers must be a list of whole numbers"),
        ("[network]\ndropout = [1979-05-27]", "must be a list of values"),
        ("[network]\nlift = {low = 1, high = 2}", "for a number"),
        ("[other]\nx = [1]", "only, got 'other'"),
    ):
        bad.write_text(text + "\n")
        line = refused(words(out, bad, "--trials", "9"), capsys)
        assert str(bad) in line
        assert message in line
        assert not out.exists()
    bad.write_text("[network]\nratio = [0.5]\n")
    line = refused(["search", "MUTAG", "--model", "gin", "--space", str(bad), "--out", "x"], capsys)
    assert "model 'gin' does not use ratio" in line
    bad.write_text("[shape]\nheads = [1, 2]\n")
    line = refused(["search", "MUTAG", "--model", "gin", "--space", str(bad), "--out", "x"], capsys)
    assert "[shape] heads: model 'gin' does not use it" in line
    monkeypatch.setitem(sys.modules, "optuna", None)
    line = refused(words(tmp_path / "b", space), capsys)
    assert line.endswith("search needs Optuna: pip install 'cell-attention[search]'")
    assert not (tmp_path / "b").exists()


def test_a_damaged_journal_is_one_line(
    space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run_words(words(out, space, "--trials", "1")) == 0
    capsys.readouterr()
    asked = json.loads((out / "search.json").read_text())
    for change in ({"versions": 3}, {"asked": 4}, {"format": 3}):
        (out / "search.json").write_text(json.dumps({**asked, **change}))
        assert "search.json: " in refused(words(out, space), capsys)
    (out / "search.json").write_text(json.dumps(asked))
    (out / "journal.log").write_text("[1, 2]\nnot json\n{}\n")
    assert "journal.log: not a valid journal" in refused(words(out, space), capsys)
    assert run_words(words(out, space, "--trials", "1", "--fresh")) == 0
    capsys.readouterr()


def test_a_file_of_a_search_from_before_there_were_two_designs_means_the_papers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "best.toml"
    path.write_text('[network]\ndropout = 0.3\n[search]\nsource = "MUTAG"\n', encoding="utf-8")
    network, training = configured("can", "MUTAG", path)
    assert network == replace(NetworkConfig.paper("MUTAG"), dropout=0.3)
    assert training == TrainingConfig.paper("MUTAG")
    path.write_text("[network]\ndropout = 0.3\n", encoding="utf-8")
    assert configured("can", "MUTAG", path)[0].design == "ranks"
