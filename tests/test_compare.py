"""Models side by side: paired differences, the joined table, ablations."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cell_attention import CellAttentionNetwork, CellComplex, NetworkConfig, load_dataset
from cell_attention.cli.entry import run as run_words
from cell_attention.errors import InputError
from cell_attention.evaluation.ablation import rank_ablations
from cell_attention.evaluation.paired import difference
from cell_attention.evaluation.published import ABLATION, PAPER, TABLE
from learning import answer, refused


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


# Paired differences ------------------------------------------------------------------------------


def test_the_p_value_is_scipys_with_the_variance_of_overlapping_training_sets() -> None:
    random = np.random.default_rng(0)
    ours, theirs = random.normal(85, 5, 10), random.normal(83, 5, 10)
    found = difference(ours.tolist(), theirs.tolist())
    plain = stats.ttest_rel(ours, theirs)
    gaps = ours - theirs
    assert found.mean == pytest.approx(gaps.mean())
    assert found.standard_error == pytest.approx(stats.sem(gaps))
    # Nadeau and Bengio: 1/k becomes 1/k + n_test/n_train, so t shrinks by √(1 + k/(k−1)).
    shrunk = plain.statistic / np.sqrt(1 + 10 / 9)
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(shrunk), 9))
    assert found.p_value > plain.pvalue
    turned = difference(theirs.tolist(), ours.tolist())
    assert turned.mean == pytest.approx(-found.mean)
    assert turned.p_value == pytest.approx(found.p_value)


def test_equal_folds_are_noise_and_a_constant_gap_is_not() -> None:
    folds = [80.0, 85.0, 90.0]
    same = difference(folds, folds)
    assert (same.mean, same.standard_error, same.p_value) == (0.0, 0.0, 1.0)
    assert same.inside_noise
    assert not difference([value + 2.0 for value in folds], folds).inside_noise
    with pytest.raises(InputError, match="the same folds, at least two, got 3 and 2"):
        difference(folds, folds[:2])


# The joined table --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(mutag: CellComplex, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    answer(folder / "can", mutag, epochs=2)
    answer(folder / "again", mutag, epochs=3, protocol="fair")
    answer(folder / "majority", mutag, model="majority")
    answer(folder / "wl", mutag, model="wl")
    answer(folder / "elsewhere", mutag, model="wl", folds=4)
    return folder


def rewritten(folder: Path, scores: list[float]) -> None:
    """Give a run other scores."""
    path = folder / "result.json"
    record = json.loads(path.read_text())
    outcome = {
        "mean": float(np.mean(scores)), "std": float(np.std(scores)), "epoch": None,
        "folds": scores,
    }  # fmt: skip
    record["protocols"] = dict.fromkeys(record["protocols"], outcome)
    path.write_text(json.dumps(record))


def test_the_best_is_bold_and_what_is_inside_the_noise_is_named(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewritten(runs / "wl", [90.0, 91.0, 92.0])
    rewritten(runs / "majority", [60.0, 61.0, 63.0])
    rewritten(runs / "can", [91.0, 86.0, 93.0])
    names = ("can", "majority", "wl")
    words = ["report", *(str(runs / name) for name in names)]
    assert run_words([*words, "--out", str(tmp_path / "table.md")]) == 0
    printed, markdown = capsys.readouterr().out, (tmp_path / "table.md").read_text()
    gap = stats.ttest_rel([91.0, 86.0, 93.0], [90.0, 91.0, 92.0]).statistic / np.sqrt(1 + 3 / 2)
    p_value = 2 * stats.t.sf(abs(gap), 2)
    for text in (printed, markdown):
        assert (
            "MUTAG: wl is best; inside the noise of it: "
            f"can-paper (-1.0 ± 2.0, p = {p_value:.2f})." in text
        )
        assert "majority (" not in text  # thirty points are no noise
    assert "| wl | **91.0 ± 0.8** |" in markdown
    assert "| can-paper | 90.0 ± 2.9 |" in markdown
    assert "*91.0 ± 0.8*" in printed
    assert "| IGN, quoted | 83.9 ± 13.0 |" in markdown
    assert "| CAN, quoted | 94.1 ± 4.8 |" in markdown
    assert run_words([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["comparison"]["sets"]["MUTAG"]
    assert record["best"] == "wl"
    assert record["minus_best"]["can-paper"]["p_value"] == pytest.approx(p_value)


def test_only_the_same_held_out_graphs_are_paired(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewritten(runs / "can", [91.0, 86.0, 93.0])
    rewritten(runs / "elsewhere", [50.0, 51.0, 52.0, 53.0])
    words = [str(runs / name) for name in ("can", "again", "elsewhere")]
    assert run_words(["report", *words, "--protocol", "per_fold_best"]) == 0
    printed = capsys.readouterr().out
    assert "By each fold's best epoch" in printed
    assert "on other folds, not paired: wl" in printed
    assert "can-paper (again)" in printed  # the same model twice is told apart by its folder
    assert (
        "not paired: can-paper" not in printed
    )  # an inner validation part changes nothing held out
    for name in ("can", "elsewhere"):
        (runs / "same" / name).parent.mkdir(exist_ok=True)
        shutil.copytree(runs / name, runs / "same" / name, dirs_exist_ok=True)
    assert run_words(["report", str(runs / "can"), str(runs / "elsewhere")]) == 0
    assert "noise" not in capsys.readouterr().out.lower()  # nothing was paired
    assert run_words(["report", str(runs / "can"), str(runs / "same" / "can")]) == 0
    printed = capsys.readouterr().out
    assert f"can-paper ({runs / 'can'})" in printed
    assert f"can-paper ({runs / 'same' / 'can'})" in printed
    assert "is named twice" in refused(["report", *[str(runs / "can")] * 2], capsys)
    assert run_words(["report", str(runs / "can")]) == 0
    assert "quoted" not in capsys.readouterr().out  # one run is not compared with anything


def test_other_graphs_of_the_same_name_are_not_compared(
    runs: Path, mutag: CellComplex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "wl", tmp_path / "other")
    asked = json.loads((tmp_path / "other" / "run.json").read_text())
    asked["settings"]["data"] = "of other molecules"
    (tmp_path / "other" / "run.json").write_text(json.dumps(asked))
    names = [str(runs / "can"), str(tmp_path / "other")]
    assert run_words(["report", *names, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparison"] is None
    names.insert(1, str(runs / "majority"))
    assert run_words(["report", *names[:2]]) == 0
    printed = capsys.readouterr().out
    assert "MUTAG: " in printed
    assert "this protocol favours the networks" in printed
    answer(tmp_path / "plain", mutag, epochs=1)
    names[0] = str(tmp_path / "plain")
    assert run_words(["report", *names[:2], "--protocol", "fair"]) == 0
    assert "nothing is compared" in capsys.readouterr().err


def test_the_quoted_table_is_the_papers() -> None:
    """Spot checks against the printed table, and what PTC means in it."""
    assert len(TABLE) == 14
    assert TABLE["CAN"] == PAPER
    assert TABLE["WLK"]["NCI1"] == (86.0, 1.8)
    assert "PTC_MM" not in TABLE["CIN"]
    assert TABLE["CIN"]["PTC_MR"] == (68.2, 7.2)


# Ablations ---------------------------------------------------------------------------------------


PAPER_DESIGN = ("--design", "paper", "--lift-heads", "4")


def ablate(folder: Path, *more: str) -> list[str]:
    words = ["ablate", "MUTAG", "--epochs", "2", "--folds", "3", "--jobs", "1"]
    return [*words, "--hidden", "4", "4", "--heads", "1", "1", "--out", str(folder), *more]


@pytest.fixture(scope="module")
def ablated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ablation") / "run"
    assert run_words(ablate(folder, *PAPER_DESIGN)) == 0
    return folder


def test_an_ablation_is_the_paired_difference_of_ordinary_runs(
    ablated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((ablated / "ablation.json").read_text())
    assert [entry["name"] for entry in record["removed"]] == [*ABLATION, "uniform"]

    def folds(name: str, protocol: str) -> list[float]:
        path = ablated / name.replace(" ", "-") / "result.json"
        values: list[float] = json.loads(path.read_text())["protocols"][protocol]["folds"]
        return values

    networks: dict[str, Any] = {}
    for entry in record["removed"]:
        asked = json.loads((ablated / entry["name"].replace(" ", "-") / "run.json").read_text())
        networks[entry["name"]] = asked["settings"]["network"]
        for protocol in ("paper", "per_fold_best"):
            outcome, gap = entry["protocols"][protocol]
            expected = difference(folds(entry["name"], protocol), folds("full", protocol))
            assert outcome["folds"] == folds(entry["name"], protocol)
            assert gap["mean"] == expected.mean
            assert gap["standard_error"] == expected.standard_error
        assert entry["protocols"]["fair"] is None
    assert networks["no lift"]["lift"] == "none"
    assert networks["no upper"]["attention"] == "lower"
    assert networks["no pooling"]["pooling"] == "none"
    table = (ablated / "ablation.md").read_text()
    assert "| no lift |" in table
    assert "-2.7 ± 6.1 |" in table  # what the paper prints for MUTAG
    assert "no pooling" in (ablated / "ablation.svg").read_text()
    assert run_words(["report", str(ablated / "full"), str(ablated / "no-lift")]) == 0
    assert "can-paper (no-lift)" in capsys.readouterr().out


def test_an_interrupted_ablation_ends_with_the_same_bytes(
    ablated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ("ablation.json", "ablation.md", "ablation.svg")
    before = {name: (ablated / name).read_bytes() for name in kept}
    for name in ("uniform/fold-01.json", "uniform/result.json", "full/result.json", *kept):
        (ablated / name).unlink()
    assert run_words(ablate(ablated, *PAPER_DESIGN, "--json")) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(before["ablation.json"])
    assert before == {name: (ablated / name).read_bytes() for name in kept}


def test_ablations_of_ranks_take_away_one_thing_each() -> None:
    usual = NetworkConfig()
    found = rank_ablations(usual)
    heard = usual.neighbourhoods
    assert list(found) == [
        "no nodes", "no polygons", "edges alone", *(f"no neighbourhood {name}" for name in heard),
        "no attention", "no shared cell", "gates", "plain sums",
        "a voice for each neighbourhood", "an MLP after each round", "means read out",
        "no counts", "no composition",
    ]  # fmt: skip
    made = {name: replace(usual, **changes) for name, changes in found.items()}
    assert len({*made.values(), usual}) == len(found) + 1
    assert [made[name].ranks for name in ("no nodes", "no polygons", "edges alone")] == [
        (1, 2), (0, 1), (1,),
    ]  # fmt: skip
    for name in heard:
        left = made[f"no neighbourhood {name}"].neighbourhoods
        assert left == tuple(one for one in heard if one != name)
    assert made["no attention"].neighbourhoods == ("faces", "cofaces")
    for config in made.values():  # every one is a network that predicts
        small = replace(config, hidden=(4,), heads=(1,))
        assert CellAttentionNetwork(small, 7, 4, 2).eval()(load_dataset("MUTAG")[:2]).shape == (
            2,
            2,
        )


def test_what_a_network_on_ranks_does_not_have_is_not_ablated() -> None:
    two = rank_ablations(NetworkConfig(ranks=(0, 1)))
    assert two["no nodes"] == {"ranks": (1,)}
    assert not {"no polygons", "edges alone"} & two.keys()
    assert rank_ablations(NetworkConfig(ranks=(1, 2)))["no polygons"] == {"ranks": (1,)}
    plain = NetworkConfig(
        ranks=(1,), neighbourhoods=("faces",), shared_cell=False, weights="sum", voices="each",
        update="mlp", readout="mean", counts=0, composition=False,
    )  # fmt: skip
    assert list(rank_ablations(plain)) == ["no neighbourhood faces", "gates"]


def test_the_default_network_is_ablated_part_by_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--neighbourhoods", "lower", "faces", "--ranks", "0", "1"]
    words = ablate(tmp_path / "run", *small)
    words[words.index("--folds") + 1] = "2"
    assert run_words(words) == 0
    record = json.loads((tmp_path / "run" / "ablation.json").read_text())
    config = NetworkConfig(ranks=(0, 1), neighbourhoods=("lower", "faces"))
    assert [entry["name"] for entry in record["removed"]] == list(rank_ablations(config))
    assert all(entry["printed"] is None for entry in record["removed"])
    table = (tmp_path / "run" / "ablation.md").read_text()
    assert "| changed |" in table
    assert "the paper prints" not in table
    capsys.readouterr()
    places = [str(tmp_path / "run" / name) for name in ("full", "no-neighbourhood-lower")]
    assert run_words(["report", *places]) == 0
    assert "can (no-neighbourhood-lower)" in capsys.readouterr().out


def test_both_designs_have_rows_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--epochs", "1", "--folds", "2", "--hidden", "4", "--heads", "1", "--jobs", "1"]
    for name in ("ranks", "paper"):
        words = ["crossval", "MUTAG", "--design", name, *few, "--out", str(tmp_path / name)]
        assert run_words(words) == 0
    capsys.readouterr()
    places = [str(tmp_path / name) for name in ("ranks", "paper")]
    assert run_words(["report", *places, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["comparison"]["sets"]["MUTAG"]
    assert {scores["best"], *scores["minus_best"]} == {"can", "can-paper"}


def test_what_cannot_be_ablated_is_one_line(
    ablated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(ablate(tmp_path / "a", *PAPER_DESIGN, "--lift", "none"), capsys)
    assert "ablation 'no lift' changes nothing" in line
    assert not (tmp_path / "a").exists()
    line = refused(ablate(ablated / "full"), capsys)
    assert "has files of another command (run.json); name another" in line
    line = refused(ablate(ablated, *PAPER_DESIGN, "--epochs", "3"), capsys)
    assert "has a run with other settings: training.epochs was 2, is 3" in line
    (tmp_path / "file").write_text("")
    assert "is a file; name another" in refused(ablate(tmp_path / "file"), capsys)
