"""From a file of molecules to a model, and from the model to predictions: every row accounted."""

import csv
import io
import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from rdkit import Chem
from sklearn import metrics as oracle

from cell_attention import Model, load_model
from cell_attention.cli.entry import run as run_words
from cell_attention.cli.options.training import MetricName
from cell_attention.data.molecules.features import featurise
from cell_attention.data.molecules.rebuild import rebuilt
from cell_attention.data.sources import read_source
from cell_attention.errors import MoleculeError
from cell_attention.inference.chunks import molecule_features
from cell_attention.inference.prediction import predict_complexes
from cell_attention.topology.polygons import attach_polygons
from cell_attention.training.metrics import METRICS, best_thresholds, measured
from learning import refused

SMALL = ["--hidden", "4", "4", "--heads", "2", "2", "--epochs", "4", "--quiet"]
PAPER = ["--design", "paper", "--lift", "symmetric", "--lift-heads", "4", "--node-readout", "4"]
"""The paper's design; its preset for MUTAG lifts one way, in the order of the nodes."""


def molecules(count: int = 60) -> list[str]:
    """Chains and rings with a tail."""
    return ["C" * n + "O" if n % 2 else "C1CCCCC1" + "C" * n + "N" for n in range(1, count + 1)]


def table(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def train(folder: Path, source: Path, *words: str) -> Path:
    assert run_words(["train", str(source), "--out", str(folder), *SMALL, *words]) == 0
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("molecules")


@pytest.fixture(scope="module")
def binary(place: Path) -> Path:
    rows = [f"m{n},{text},{n % 2}" for n, text in enumerate(molecules())]
    source = table(place / "binary.csv", "id,smiles,active", rows)
    words = ["--smiles-column", "smiles", "--target-columns", "active", "--ensemble", "2"]
    return train(place / "binary", source, *words)


@pytest.fixture(scope="module")
def values(place: Path) -> Path:
    rows = [f"{text},{1000 + 50 * len(text)}" for text in molecules()]
    return train(place / "values", table(place / "values.csv", "smiles,weight", rows))


def predicted(
    model: Path, source: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> list[dict[str, str]]:
    capsys.readouterr()
    assert run_words(["predict", str(model), str(source), *words]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_every_row_comes_back_in_its_place(
    binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["a,CCO,x", "b,C1CC,y", "c,,z", "d,CC", "e,[U]CC1CCCCCCCCC1,w", "a,CCO,x"]
    source = table(tmp_path / "new.csv", "id,smiles,more", rows)
    found = predicted(binary, source, capsys, "--smiles-column", "smiles")
    assert [row["id"] for row in found] == ["a", "b", "c", "d", "e", "a"]
    assert [row["more"] for row in found] == ["x", "y", "z", "", "w", "x"]
    assert [bool(row["active_probability"]) for row in found] == [1, 0, 0, 0, 1, 1]
    assert found[1]["error"] == "RDKit cannot read 'C1CC' (unclosed ring)"
    assert found[2]["error"] == "there is no molecule"
    assert found[3]["error"] == "3 cells are expected, got 2"
    assert "element U was not in training" in found[4]["warning"]
    assert "a ring of 10 atoms is not a polygon" in found[4]["warning"]
    assert found[0] == found[5]
    assert float(found[0]["active_spread"]) > 0
    model = load_model(binary)
    limit = model.thresholds[0]
    for row in found:
        if row["active_probability"]:
            assert row["active_prediction"] == str(int(float(row["active_probability"]) >= limit))
    words = ["predict", str(binary), str(source), "--smiles-column", "smiles"]
    line = refused([*words, "--on-error", "fail"], capsys)
    assert "new.csv, line 3: RDKit cannot read 'C1CC'" in line
    left = predicted(binary, source, capsys, "--smiles-column", "smiles", "--on-error", "skip")
    assert [row["id"] for row in left] == ["a", "e", "a"]


def test_predictions_do_not_depend_on_their_neighbours(
    binary: Path, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--smiles-column", "smiles")
    everyone = predicted(binary, place / "binary.csv", capsys, *words)
    text = (place / "binary.csv").read_text().splitlines()
    for number in (0, 31, 59):
        (tmp_path / "one.csv").write_text(f"{text[0]}\n{text[number + 1]}\n")
        (one,) = predicted(binary, tmp_path / "one.csv", capsys, *words)
        probability = float(everyone[number]["active_probability"])
        assert float(one["active_probability"]) == pytest.approx(probability, abs=1e-5)


def test_values_come_back_in_their_own_units(
    values: Path, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = predicted(values, place / "values.csv", capsys)
    guessed = np.array([float(row["weight_prediction"]) for row in found])
    assert 1000 < guessed.mean() < 5000
    record = json.loads((values / "config.json").read_text())
    fold = json.loads((values / "splits.json").read_text())
    truth = np.array([float(row["weight"]) for row in found])
    for part in ("train", "validation", "test"):
        reached = record["provenance"]["reached"][part]["metrics"]
        mine, known = guessed[fold[part]], truth[fold[part]]
        assert reached["rmse"] == pytest.approx(
            float(oracle.root_mean_squared_error(known, mine)), rel=1e-4
        )
        assert reached["mae"] == pytest.approx(
            float(oracle.mean_absolute_error(known, mine)), rel=1e-4
        )
        assert reached["r2"] == pytest.approx(
            float(oracle.r2_score(known, mine)), rel=1e-3, abs=1e-5
        )


def test_a_second_run_on_its_own_output_is_refused(
    values: Path, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    assert run_words(["predict", str(values), str(place / "values.csv"), "--out", str(out)]) == 0
    before = out.read_bytes()
    line = refused(["predict", str(values), str(out), "--out", str(tmp_path / "two.csv")], capsys)
    assert "already has a column 'weight_prediction'" in line
    line = refused(["predict", str(values), str(out), "--out", str(out)], capsys)
    assert "is the source and would be replaced" in line
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv"]


def test_json_holds_the_same_predictions(
    values: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = table(tmp_path / "t.csv", "smiles,weight", ["CCO,1150", "C1,3", "CCCCO,1250"])
    rows = predicted(values, source, capsys)
    assert run_words(["predict", str(values), str(source), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    numbers = ("weight_prediction", "nearest_similarity")
    assert {*numbers} <= {*rows[0]}
    for found, row in zip(said["predictions"], rows, strict=True):
        for name, cell in row.items():
            read = float if name in numbers else str
            made = name in (*numbers, "nearest_training", "nearest_target")
            expected = read(cell) if cell or not made else None
            assert found[name] == expected
            assert type(found[name]) is type(expected)
    assert (said["rows"], said["predicted"]) == (3, 2)
    assert said["metrics"]["rows"] == 2


def test_labels_with_gaps_are_learned_and_predicted(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{text},{n % 2},{'' if n % 3 else (n // 2) % 2}" for n, text in enumerate(molecules())]
    source = table(place / "labels.csv", "smiles,a,b", rows)
    folder = train(place / "labels", source)
    found = predicted(folder, source, capsys)
    assert set(found[0]) == {"smiles", "a", "b", "a_prediction", "a_probability", "b_prediction",
                             "b_probability", "nearest_similarity", "nearest_training",
                             "nearest_target", "warning", "error"}  # fmt: skip
    assert len(load_model(folder).thresholds) == 2


def test_classes_have_the_names_of_the_file(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{text},{('low', 'mid', 'high')[n % 3]}" for n, text in enumerate(molecules())]
    source = table(place / "classes.csv", "smiles,level", rows)
    folder = train(place / "classes", source, "--split", "random")
    found = predicted(folder, source, capsys)
    for row in found:
        shares = {n: float(row[f"level_probability_{n}"]) for n in ("low", "mid", "high")}
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-5)
        assert row["level_prediction"] == max(shares, key=lambda name: shares[name])


def test_fingerprints_are_the_readout_of_every_row(
    binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = table(tmp_path / "t.csv", "smiles,x", ["CCO,1", "C1,2", "c1ccccc1C,3"])
    for name in ("f.npy", "f.csv"):
        words = ["fingerprint", str(binary), str(source), "--out", str(tmp_path / name)]
        assert run_words(words) == 0
    array = np.load(tmp_path / "f.npy", allow_pickle=False)
    model = load_model(binary)
    mine = [model.members[k].embed(_complexes(model, ["CCO", "c1ccccc1C"])) for k in (0, 1)]
    whole = torch.cat([one.complexes for one in mine], 1).detach().numpy()
    np.testing.assert_allclose(array[[0, 2]], whole, rtol=1e-5)
    assert np.isnan(array[1]).all()
    with (tmp_path / "f.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["x"] for row in rows] == ["1", "2", "3"]
    assert rows[1]["h0"] == ""
    assert float(rows[2]["h3"]) == pytest.approx(float(array[2, 3]), rel=1e-5)
    words = ["predict", str(binary), str(source), "--out", str(tmp_path / "o.csv.gz")]
    assert "--out must end in .csv" in refused(words, capsys)
    assert "must end in .csv, .npy" in refused(
        ["fingerprint", str(binary), str(source), "--out", "f.txt"], capsys
    )


def _complexes(model: Model, texts: list[str]) -> Any:
    made = featurise(texts, molecule_features(model)).graphs
    return attach_polygons(made, model.network.config.max_polygon)


@pytest.mark.parametrize("design", [[], PAPER], ids=["ranks", "paper"])
def test_a_network_trained_on_mutag_reads_smiles(
    design: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "MUTAG", *design, "--out", str(tmp_path / "m"), *SMALL]
    assert run_words(words) == 0
    source = table(tmp_path / "n.smi", "O=[N+]([O-])c1ccccc1 nitrobenzene", ["CS sulphur"])
    found = predicted(tmp_path / "m", source, capsys)
    assert found[0]["name"] == "nitrobenzene"
    assert found[0]["prediction"] in ("-1", "1")
    assert found[1]["warning"] == "element S was not in training"
    # Every graph that RDKit can rebuild says the same as its SMILES, in another order of atoms.
    mutag, model = read_source("MUTAG"), load_model(tmp_path / "m")
    texts, kept = [], []
    for number in range(188):
        try:
            molecule = rebuilt(mutag.graphs[number : number + 1], mutag.featuriser)
        except MoleculeError:
            continue
        texts.append(Chem.MolToSmiles(molecule))
        kept.append(number)
    assert len(kept) == 186
    graphs = predict_complexes(model, attach_polygons(mutag.graphs[kept], 6)).values
    assert (
        float((graphs - predict_complexes(model, _complexes(model, texts)).values).abs().max())
        < 1e-5
    )


def test_thresholds_and_metrics_are_those_of_scikit_learn() -> None:
    draw = torch.Generator().manual_seed(5)
    known = torch.randint(0, 2, (80,), generator=draw)
    share = (0.3 * known + 0.7 * torch.rand(80, generator=draw)).double()
    table = torch.stack([1 - share, share], 1)
    (limit,) = best_thresholds("classes", table, known)
    levels = np.concatenate([[0.5], share.numpy()])
    best = max(oracle.matthews_corrcoef(known, share.numpy() >= level) for level in levels)
    assert oracle.matthews_corrcoef(known, share.numpy() >= limit) == pytest.approx(best)
    expected = {
        "accuracy": 100 * oracle.accuracy_score(known, share >= limit),
        "mcc": best,
        "roc_auc": oracle.roc_auc_score(known, share),
        "pr_auc": oracle.average_precision_score(known, share),
        "brier": oracle.brier_score_loss(known, share),
    }
    for name, value in expected.items():
        assert measured(name, table, known, kind="classes", thresholds=(limit,)) == pytest.approx(
            value
        )
    three = torch.rand(80, 3, generator=draw).double().softmax(1)
    classes = torch.randint(0, 3, (80,), generator=draw)
    assert measured("roc_auc", three, classes, kind="classes") == pytest.approx(
        oracle.roc_auc_score(classes, three, multi_class="ovr")
    )
    assert measured("mcc", three, classes, kind="classes") == pytest.approx(
        oracle.matthews_corrcoef(classes, three.argmax(1))
    )
    assert np.isnan(measured("roc_auc", table, torch.zeros(80), kind="classes"))
    gaps = torch.stack([known.double(), torch.full((80,), float("nan")).double()], 1)
    both = torch.stack([share, share], 1)
    assert measured("roc_auc", both, gaps, kind="labels") == pytest.approx(expected["roc_auc"])


def test_a_column_or_a_file_tells_the_division(place: Path, tmp_path: Path) -> None:
    parts = ["train"] * 40 + ["valid"] * 12 + ["test"] * 8
    rows = [f"{text},{len(text)},{part}" for text, part in zip(molecules(), parts, strict=True)]
    source = table(tmp_path / "told.csv", "smiles,size,set", rows)
    one = train(tmp_path / "column", source, "--split-column", "set")
    fold = json.loads((one / "splits.json").read_text())
    assert [len(fold[part]) for part in ("train", "validation", "test")] == [40, 12, 8]
    words = ["--splits", str(one / "splits.json"), "--target-columns", "size"]
    two = train(tmp_path / "file", source, *words)
    for name in ("splits.json", "model.safetensors", "metrics.jsonl"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--smiles-column", "nope"], "--smiles-column 'nope' is not a column"),
        (["--target-columns", "nope"], "--target-columns 'nope' is not a column"),
        (["--metric", "roc_auc"], "metric must be one of rmse, mae, r2"),
        (["--split", "stratified"], "split stratified needs classes"),
        (["--ensemble", "0"], "ensemble must lie in 1…100"),
        (["--split-column", "weight", "--splits", "x.json"], "use one of them"),
    ],
)
def test_bad_words_about_molecules_are_one_line(
    words: list[str], message: str, values: Path, place: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    capsys.readouterr()
    source = str(place / "values.csv")
    assert run_words(["train", source, "--out", str(tmp_path / "m"), *words]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note")]
    assert len(said) == 1
    assert message in said[0]
    assert not (tmp_path / "m").exists()


def test_scaffold_is_for_molecules_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "MUTAG", "--split", "scaffold", "--out", str(tmp_path / "m")]
    assert "split scaffold needs a file of molecules" in refused(words, capsys)
    words = ["train", "MUTAG", "--smiles-column", "x", "--out", str(tmp_path / "m")]
    assert "MUTAG is not a file of molecules" in refused(words, capsys)


def test_forest_and_network_are_compared_on_the_same_scaffold_folds(
    place: Path, tmp_path: Path, values: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, words = (
        str(place / "values.csv"),
        ["--split", "scaffold", "--folds", "2", "--jobs", "1"],
    )
    for name, more in (("can", [*SMALL, "--protocol", "paper"]), ("forest", ["--quiet"])):
        folder = str(tmp_path / name)
        assert run_words(["crossval", source, "--model", name, *words, "--out", folder, *more]) == 0
    capsys.readouterr()
    assert run_words(["report", str(tmp_path / "can"), str(tmp_path / "forest")]) == 0
    said = capsys.readouterr().out
    assert "forest" in said
    splits = [(tmp_path / name / "splits.json").read_text() for name in ("can", "forest")]
    assert splits[0] == splits[1]
    assert not (tmp_path / "forest" / "molecules.json").exists()
    words = ["crossval", "MUTAG", "--model", "forest", "--out", str(tmp_path / "no")]
    assert "model 'forest' needs a file of molecules" in refused(words, capsys)


def test_new_names_for_the_same_numbers_are_another_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for header, names in (("smiles,y", ("high", "low")), ("smiles,z", ("bad", "no"))):
        rows = [f"{text},{names[n % 2]}" for n, text in enumerate(molecules())]
        source = table(tmp_path / "t.csv", header, rows)
        words = ["train", str(source), "--out", str(tmp_path / "m"), *SMALL]
        if names[0] == "high":
            assert run_words(words) == 0
    assert run_words(words) == 2
    assert "has another model" in capsys.readouterr().err


def test_zeros_and_ones_are_values_where_the_user_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{text},{n % 2}" for n, text in enumerate(molecules())]
    source = table(tmp_path / "t.csv", "smiles,y", rows)
    folder = train(tmp_path / "m", source, "--task", "regression")
    assert load_model(folder).task == "values"
    assert set(predicted(folder, source, capsys)[0]) == {
        "smiles", "y", "y_prediction", "nearest_similarity", "nearest_training", "nearest_target",
        "warning", "error",
    }  # fmt: skip
    assert run_words(["train", str(source), "--out", str(folder), *SMALL, "--json",
                      "--task", "regression"]) == 0  # fmt: skip
    said = json.loads(capsys.readouterr().out)
    assert (said["model_dir"], said["members"], said["model"]) == (str(folder), 1, "can")


def test_strange_targets_are_counted_and_not_measured(
    place: Path, binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["x,CCO,1", "x,CCC,0.0", "x,CCCC,maybe", "x,CCN,", "x,CN,inf", "x,C,2"]
    source = table(tmp_path / "t.csv", "id,smiles,active", rows)
    words = ["predict", str(binary), str(source), "--smiles-column", "smiles", "--json"]
    assert run_words(words) == 0
    found = json.loads(capsys.readouterr().out)["metrics"]
    assert (found["rows"], found["unknown_targets"]) == (2, 3)


def test_a_lopsided_file_falls_back_to_accuracy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{text},{int(n < 4)}" for n, text in enumerate(molecules(40))]
    train(tmp_path / "m", table(tmp_path / "t.csv", "smiles,y", rows))
    assert "accuracy is used instead of ROC-AUC" in capsys.readouterr().err
    assert load_model(tmp_path / "m").provenance["score"] == "accuracy in %"
    words = ["train", str(tmp_path / "t.csv"), "--metric", "roc_auc", *SMALL]
    assert run_words([*words, "--out", str(tmp_path / "n")]) == 2
    assert "use another metric, or hold out more" in capsys.readouterr().err


def test_a_molecule_beyond_the_limits_is_a_row_like_any_other(
    values: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    star = "*" + "(C)" * 7000
    rows = [f"{text},{len(text)}" for text in (*molecules(20), star)]
    source = table(tmp_path / "t.csv", "smiles,weight", rows)
    words = ["train", str(source), "--out", str(tmp_path / "m"), *SMALL]
    assert run_words(words) == 2
    assert "t.csv, line 22: the graph has" in capsys.readouterr().err
    assert run_words([*words, "--on-error", "skip"]) == 0
    assert "1 row left out, the first on line 22" in capsys.readouterr().err
    found = predicted(values, source, capsys)
    assert "the graph has" in found[-1]["error"]
    assert all(not row["error"] for row in found[:-1])


def test_a_file_without_any_molecule_is_one_line(
    values: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = table(tmp_path / "t.csv", "id,smiles", ["a1,CCO(", "a2,Q"])
    words = ["predict", str(values), str(source), "--out", str(tmp_path / "o.csv")]
    for verb in ("predict", "fingerprint"):
        line = refused([verb, *words[1:]], capsys)
        assert "none of 2 rows is a valid molecule; check --smiles-column" in line
        assert not (tmp_path / "o.csv").exists()


def test_columns_of_one_name_are_kept_where_nothing_is_learned_from_them(
    values: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = table(tmp_path / "t.csv", "smiles,id,id", ["CCO,a,b"])
    assert run_words(["predict", str(values), str(source)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("CCO,a,b,")
    assert run_words(["predict", str(values), str(source), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert (row["id"], row["id_2"]) == ("a", "b")


def test_folds_are_those_of_a_column(tmp_path: Path) -> None:
    rows = [f"{text},{len(text)},{'abc'[n % 3]}" for n, text in enumerate(molecules(30))]
    source = table(tmp_path / "t.csv", "smiles,y,fold", rows)
    words = ["crossval", str(source), "--split-column", "fold", "--protocol", "paper", *SMALL]
    assert run_words([*words, "--jobs", "1", "--out", str(tmp_path / "r")]) == 0
    splits = json.loads((tmp_path / "r" / "splits.json").read_text())
    assert [fold["validation"][:2] for fold in splits] == [[0, 3], [1, 4], [2, 5]]


def test_flags_for_metrics_are_the_metrics() -> None:
    assert get_args(MetricName) == tuple(METRICS)
