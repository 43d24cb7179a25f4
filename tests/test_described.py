"""Descriptors of molecules as features of whole complexes: read, learned, predicted, explained."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Descriptors

from cell_attention import (
    CANRegressor,
    explain,
    fingerprint,
    load_dataset,
    load_model,
    predict,
    pretrain,
    train,
)
from cell_attention.cli.entry import run
from cell_attention.data.file_format import Columns
from cell_attention.data.molecules.descriptors import QUICK, words_of
from cell_attention.data.molecules.features import Featuriser, featurise, featuriser_of
from cell_attention.errors import CellAttentionWarning, DataError, InputError
from cell_attention.inference.model_folder import Model

SMALL: dict[str, Any] = {"hidden": (4, 4), "heads": (2, 2), "head_hidden": 8}
SHORT = {"epochs": 2}
SMILES = [f"{'C' * (n % 7 + 1)}{tail}" for n, tail in enumerate(["O", "N", "Cl", "c1ccccc1"] * 8)]


def table(path: Path, header: str = "smiles,y", more: tuple[str, ...] = ()) -> Path:
    cells = [more[n % len(more)] if more else "" for n in range(len(SMILES))]
    rows = [
        f"{s},{n / 3:g}{',' if more else ''}{c}"
        for n, (s, c) in enumerate(zip(SMILES, cells, strict=True))
    ]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("described")
    train(table(place / "t.csv"), network=SMALL, training=SHORT, folder=place / "m")
    return place / "m"


def test_a_file_of_molecules_is_read_with_the_values_of_rdkit(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv")
    found = load_dataset(path, columns=Columns(descriptors=("rdkit",))).complex_features
    assert found is not None
    for name in ("TPSA", "MolLogP", "SlogP_VSA2", "NumRotatableBonds"):
        compute = dict(Descriptors.descList)[name]
        expected = [compute(Chem.MolFromSmiles(text)) for text in SMILES]
        assert found[:, QUICK.index(name)].numpy() == pytest.approx(np.array(expected), rel=1e-5)
    assert load_dataset(path).complex_features is None


def test_the_default_network_reads_them_and_keeps_their_ranges(model_dir: Path) -> None:
    model = load_model(model_dir)
    assert model.sizes["complex_features"] == len(QUICK)
    assert words_of(model.featuriser) == ("rdkit",)
    rows = json.loads((model_dir / "splits.json").read_text())["train"]
    graphs = load_dataset(model_dir.parent / "t.csv", columns=Columns(descriptors=("rdkit",)))
    values = graphs.complex_features
    assert values is not None
    knots = model.network.get_buffer("descriptors.ranks.knots")
    assert torch.equal(knots[:, 0], values[rows].amin(0))
    assert torch.equal(knots[:, -1], values[rows].amax(0))


def test_predictions_are_those_of_the_trained_model_whatever_the_source(model_dir: Path) -> None:
    path, model = model_dir.parent / "t.csv", load_model(model_dir)
    place = predict(model, path).header.index("y_prediction")
    from_file = [float(row[place]) for row in predict(model, path).rows]
    listed = predict(model_dir, SMILES)
    from_list = [float(row[listed.header.index("y_prediction")]) for row in listed.rows]
    graphs = load_dataset(path, columns=Columns(descriptors=("rdkit",)))
    with torch.no_grad():
        outputs = model.network(graphs)[:, 0].numpy()
    assert from_file == pytest.approx(outputs, rel=1e-4)
    assert from_list == from_file


def test_descriptors_change_what_is_predicted(model_dir: Path) -> None:
    model = load_model(model_dir)
    graphs = load_dataset(model_dir.parent / "t.csv", columns=Columns(descriptors=("rdkit",)))
    unknown = replace(graphs, complex_features=torch.full_like(graphs.complex_features, torch.nan))  # type: ignore[arg-type]
    with torch.no_grad():
        assert (model.network(graphs) - model.network(unknown)).abs().max() > 1e-4


def test_estimators_read_the_same_descriptors(tmp_path: Path) -> None:
    regressor = CANRegressor(**SMALL, epochs=2).fit(SMILES, np.arange(len(SMILES)) / 3)
    assert words_of(regressor.model_.featuriser) == ("rdkit",)
    regressor.save_pretrained(tmp_path / "m")
    listed = predict(tmp_path / "m", SMILES[:5])
    place = listed.header.index("prediction")
    assert [float(row[place]) for row in listed.rows] == pytest.approx(
        regressor.predict(SMILES[:5]), rel=1e-4
    )
    without = CANRegressor(**SMALL, epochs=1, descriptors="none").fit(SMILES, range(len(SMILES)))
    assert "complex_features" not in without.model_.sizes
    with pytest.raises(InputError, match="descriptors must be rdkit"):
        CANRegressor(descriptors="logD").fit(SMILES, range(len(SMILES)))


def test_columns_of_the_table_are_descriptors_and_not_targets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "t.csv", "smiles,y,dose", ("1.5", "", "1e3"))
    words = ["train", str(path), "--out", str(tmp_path / "m"), "--descriptors", "dose", "--hidden",
             "4", "4", "--heads", "2", "2", "--epochs", "2", "--quiet"]  # fmt: skip
    assert run(words) == 0
    model = load_model(tmp_path / "m")
    assert model.target_names == ("y",)
    assert model.sizes["complex_features"] == 1
    assert model.featuriser["descriptors"]["columns"] == ["dose"]
    capsys.readouterr()
    assert run(["predict", str(tmp_path / "m"), str(path)]) == 0
    plain = table(tmp_path / "plain.csv")
    assert run(["predict", str(tmp_path / "m"), str(plain)]) == 2
    assert "descriptors 'dose' is not a column" in capsys.readouterr().err
    with pytest.raises(InputError, match="needs the column 'dose'"):
        predict(model, SMILES)


def test_a_column_without_a_number_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "smiles,y,dose", ("low", "high"))
    with pytest.raises(DataError, match="'dose' must be numbers"):
        load_dataset(path, columns=Columns(descriptors=("dose",)))


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--model", "gin", "--descriptors", "rdkit"], "model 'gin' does not use descriptors"),
        (["--design", "paper", "--descriptors", "rdkit"], "design 'paper' does not use"),
        (["--descriptors", "none", "rdkit"], "'none' stands alone"),
        (["--descriptors", "nonsense"], "'nonsense' is not a column"),
    ],
)
def test_words_that_cannot_be_used_are_one_line(
    words: list[str], rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "t.csv")
    assert run(["train", str(path), "--out", str(tmp_path / "m"), *words]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert rule in said[-1]


@pytest.mark.parametrize("model", ["can", "gin"])
def test_networks_that_read_none_get_none(model: str, tmp_path: Path) -> None:
    network = SMALL | {"design": "paper"} if model == "can" else {"hidden": (4,)}
    made = train(table(tmp_path / "t.csv"), model, network=network, training=SHORT)
    assert "complex_features" not in made.sizes
    assert "descriptors" not in made.featuriser


def test_what_rdkit_cannot_compute_is_unknown_and_predicted_all_the_same(
    model_dir: Path,
) -> None:
    strange = ["[Na+].[Cl-]", "*C", "[U]", "C" * 400]
    found = predict(model_dir, strange)
    place = found.header.index("y_prediction")
    assert all(np.isfinite(float(row[place])) for row in found.rows)
    whole = featurise(["C" * 400], Featuriser(descriptors=("BalabanJ", "TPSA")))
    values = whole.graphs.complex_features
    assert values is not None
    assert values.isnan().tolist() == [[True, False]]


def test_a_record_with_unknown_descriptors_is_refused() -> None:
    record = Featuriser(descriptors=("TPSA",)).record
    assert featuriser_of(record).descriptors == ("TPSA",)
    record["descriptors"]["names"] = ["Magic"]
    with pytest.raises(InputError, match="needs the descriptor 'Magic' of RDKit"):
        featuriser_of(record)
    record["descriptors"] = ["TPSA"]
    with pytest.raises(InputError, match="lists of names and columns"):
        featuriser_of(record)


def test_what_a_descriptor_carries_is_what_the_margin_loses_without_it(model_dir: Path) -> None:
    model = load_model(model_dir)
    path = model_dir.parent / "t.csv"
    one = explain(model, SMILES[3], measure=False)[0]
    graph = load_dataset(path, columns=Columns(descriptors=("rdkit",)))[3:4]
    with torch.no_grad():
        before = float(model.network(graph))
        for name in ("TPSA", "MolLogP", "NumHAcceptors"):
            values = graph.complex_features.clone()  # type: ignore[union-attr]
            values[:, QUICK.index(name)] = torch.nan
            lost = before - float(model.network(replace(graph, complex_features=values)))
            assert one.descriptors[name] == pytest.approx(lost, abs=2e-5)
        gone = torch.full_like(values, torch.nan)
        lost = before - float(model.network(replace(graph, complex_features=gone)))
    assert one.described == pytest.approx(lost, abs=2e-5)
    assert list(one.descriptors) == list(QUICK)
    assert one.to_dict()["descriptors"] == one.descriptors
    assert sum(line.startswith("0,,descriptor,") for line in one.to_csv().splitlines()) == len(
        QUICK
    )


def test_graphs_without_descriptors_carry_none() -> None:
    model: Model = train("MUTAG", network=SMALL, training={"epochs": 1})
    one = explain(model, load_dataset("MUTAG")[:1], measure=False)[0]
    assert one.descriptors == {}
    assert one.described == 0.0


def test_a_network_pretrained_without_descriptors_learns_to_read_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "t.csv")
    before = pretrain(path, network=SMALL, training=SHORT, folder=tmp_path / "p")
    assert "complex_features" not in before.sizes
    assert fingerprint(before, SMILES[:3]).shape[0] == 3
    tuned = train(path, from_model=tmp_path / "p", training=SHORT)
    assert tuned.sizes["complex_features"] == len(QUICK)
    assert run(["pretrain", str(path), "--descriptors", "rdkit", "--out", str(tmp_path / "q")]) == 2
    assert "pretraining uses no descriptors" in capsys.readouterr().err


def test_a_target_is_no_descriptor_and_cells_that_are_no_numbers_are_counted(
    tmp_path: Path,
) -> None:
    path = table(tmp_path / "t.csv", "smiles,y,dose", ("1.5", "low"))
    for targets in (("dose",), ("y", "dose")):
        with pytest.raises(InputError, match="target_columns 'dose' is named twice"):
            load_dataset(path, columns=Columns(targets=targets, descriptors=("dose",)))
    with pytest.warns(CellAttentionWarning, match="16 of 32 descriptors are blank or no numbers"):
        load_dataset(path, columns=Columns(descriptors=("dose",)))
