"""How similar a molecule is to the nearest one of training, as RDKit counts it."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from safetensors.numpy import load_file, save_file

from cell_attention import Model, load_model, predict, train
from cell_attention.data.file_format import Columns
from cell_attention.data.molecules.features import featurise
from cell_attention.data.splits.options import SplitOptions
from cell_attention.errors import DataError, SourceNotFoundError
from cell_attention.inference import neighbours, seen
from cell_attention.inference.chunks import molecule_features
from cell_attention.inference.neighbours import (
    Neighbours,
    TrainingMolecule,
    TrainingNames,
    blocks_of,
    load_neighbours,
    morgan_bits,
    nearest,
    tanimoto,
)
from cell_attention.inference.seen import neighbours_of, save_neighbours
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.polygons import attach_polygons
from cell_attention.training.config import TrainingConfig
from learning import refused

TEXTS = [
    "CCO", "CCN", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "[Na+].[Cl-]", "C1CCCCC1", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "C", "CCCCCCCC", "O=C=O", "CCCO",
    "[2H]O[2H]", "C/C=C/C", "C[CH2]",
]  # fmt: skip


def molecules(texts: list[str]) -> list[Chem.Mol]:
    return [Chem.MolFromSmiles(text) for text in texts]


def by_rdkit(
    left: list[str], right: list[str]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    generator = GetMorganGenerator(radius=2, fpSize=2048)
    prints = [[generator.GetFingerprint(one) for one in molecules(side)] for side in (left, right)]
    rows = [DataStructs.BulkTanimotoSimilarity(one, prints[1]) for one in prints[0]]
    return np.array(rows)


def test_similarities_are_those_of_rdkit(monkeypatch: pytest.MonkeyPatch) -> None:
    known, expected = morgan_bits(molecules(TEXTS)), by_rdkit(TEXTS, TEXTS)
    for many in (4096, 4):
        monkeypatch.setattr(neighbours, "MANY", many)
        blocks = blocks_of(known)
        found = np.concatenate([tanimoto(known, block) for block in blocks], 1)
        assert len(blocks) == -(-len(TEXTS) // many)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        most, places = nearest(known, blocks)
        assert most.tolist() == found.max(1).tolist()
        assert places.tolist() == found.argmax(1).tolist()


def test_the_threshold_is_a_percentile_of_the_nearest_other_molecule() -> None:
    made = neighbours_of([*TEXTS, "CCO"])
    assert made is not None
    table = by_rdkit(TEXTS, TEXTS)
    np.fill_diagonal(table, 0.0)
    assert len(made.fingerprints) == len(TEXTS)  # a molecule counts once
    assert made.least == pytest.approx(float(np.percentile(table.max(1), 1.0)))
    new = ["CCCN", "c1ccncc1"]
    found, rows = nearest(morgan_bits(molecules(new)), made.blocks)
    np.testing.assert_allclose(found, by_rdkit(new, TEXTS).max(1))
    assert rows.tolist() == by_rdkit(new, TEXTS).argmax(1).tolist()
    first = made.nearest_to(molecules(new)[0], 4)
    assert [near.similarity for near in first] == sorted(by_rdkit(new, TEXTS)[0])[:-5:-1]
    assert made.named(first[0]) == TrainingMolecule(TEXTS[rows[0]])


def test_of_many_molecules_a_seeded_sample_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "MOST", 5)
    first, second = neighbours_of(TEXTS), neighbours_of(TEXTS)
    assert first is not None
    assert second is not None
    assert first.fingerprints.shape == (5, 32)
    assert (first.fingerprints == second.fingerprints).all()
    whole = morgan_bits(molecules(TEXTS))
    assert all(any((row == one).all() for one in whole) for row in first.fingerprints)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("neighbours")


@pytest.fixture(scope="module")
def model(place: Path) -> Model:
    rows = [f"{'C' * n}{tail},{n}" for n in range(1, 21) for tail in ("O", "N")]
    (place / "t.csv").write_text("\n".join(["smiles,y", *rows]) + "\n")
    network = replace(NetworkConfig.molecules(), hidden=(4,), heads=(2,))
    training = replace(TrainingConfig.molecules(), epochs=1)
    return train(place / "t.csv", folder=place / "model", network=network, training=training)


def test_predictions_say_how_near_the_nearest_training_molecule_is(
    model: Model, place: Path
) -> None:
    loaded = load_model(place / "model")
    split = json.loads((place / "model" / "splits.json").read_text())["train"]
    every = [row.split(",")[0] for row in (place / "t.csv").read_text().splitlines()[1:]]
    known, new = (
        [every[row] for row in split],
        ["CCCCCO", "C1CC", "c1ccsc1C(F)(F)F", f"{'C' * 10}N"],
    )
    table = predict(loaded, new)
    column, said = (table.header.index(name) for name in ("nearest_similarity", "warning"))
    assert [row[column] for row in table.rows][1] == ""
    read = [new[0], new[2], new[3]]
    given = [float(row[column]) for row in table.rows if row[column]]
    np.testing.assert_allclose(given, by_rdkit(read, known).max(1), atol=5e-4)
    assert given[0] == 1.0
    assert "unlike the training molecules: the nearest has similarity" in table.rows[2][said]
    assert "unlike" not in table.rows[0][said]
    assert predict(model, new).rows == table.rows


def test_graphs_and_old_models_have_no_similarity(model: Model) -> None:
    old = predict(replace(model, neighbours=None), ["CCO"])
    assert "nearest_similarity" not in old.header
    assert "nearest_training" not in old.header
    made = featurise(["CCO", "CCN"], molecule_features(model)).graphs
    table = predict(model, attach_polygons(made, 8))
    first = table.header.index("nearest_similarity")
    assert table.header[first + 1 : first + 3] == ("nearest_training", "nearest_target")
    assert [row[first : first + 3] for row in table.rows] == [("", "", "")] * 2


def test_predictions_name_the_nearest_training_molecule_and_its_target(tmp_path: Path) -> None:
    rows = [f"n{n},{'C' * n}{tail},{n}.5,{'' if n == 4 else n % 2}" for n in range(1, 16)
            for tail in ("O", "N")]  # fmt: skip
    rows += ["=one,[Na+].[Cl-],>10,", "two,[Na+].[Cl-],1,"]
    (tmp_path / "t.csv").write_text("\n".join(["Name,smiles,y,z", *rows]) + "\n")
    (tmp_path / "split.json").write_text(
        json.dumps({"train": [0, *range(4, 32)], "validation": [1, 2, 3]})
    )
    network = replace(NetworkConfig.molecules(), hidden=(4,), heads=(2,))
    for number, targets in enumerate((("y",), ("y", "z"))):
        folder = tmp_path / str(number)
        train(
            tmp_path / "t.csv", folder=folder, network=network, training={"epochs": 1},
            columns=Columns(targets=targets), split=SplitOptions(file=tmp_path / "split.json"),
        )  # fmt: skip
        table = predict(folder, ["CCCCN", "C1CC", "[Cl-].[Na+]", "CO"])
        first = table.header.index("nearest_similarity")
        known = [row[first : first + 3] for row in table.rows]
        assert known[0] == ("1.000", "CCCCN n4", ("4.5", "y 4.5")[number])
        assert known[1] == ("", "", "")
        # The same molecule twice: both names and targets, a bound with its sign.
        assert known[2] == ("1.000", "[Cl-].[Na+] =one / two", (">10 / 1", "y >10 / 1")[number])
        assert known[3] == ("1.000", "CO n1", ("1.5", "y 1.5; z 1")[number])
        record = table.record(table.rows[2])
        assert record["nearest_training"] == known[2][1]
        assert record["nearest_target"] == known[2][2]


def test_names_in_a_model_are_plain_and_can_be_taken_away(
    model: Model, place: Path, tmp_path: Path
) -> None:
    spoiled = TrainingMolecule("CCO", "a\tb\n\u202ec", ("1\n2", ""))
    made = TrainingNames.of([TrainingMolecule("C"), spoiled, TrainingMolecule("N", "é" * 300)])
    assert made[0] == TrainingMolecule("C")
    assert made[1] == TrainingMolecule("CCO", "a b \\u202ec", ("1 2", ""))
    assert made[2].name == "é" * 300
    assert model.neighbours is not None
    unnamed = replace(model, neighbours=model.neighbours.anonymous())
    unnamed.save_pretrained(tmp_path)
    assert b"CCCCCN" in (place / "model" / "neighbours.safetensors").read_bytes()
    assert b"CCCCCN" not in (tmp_path / "neighbours.safetensors").read_bytes()
    # As models of earlier versions are: similarities without names.
    assert load_file(tmp_path / "neighbours.safetensors").keys() == {"fingerprints"}
    old, new = predict(load_model(tmp_path), ["CCCCCO"]), predict(place / "model", ["CCCCCO"])
    assert set(new.header) - set(old.header) == {"nearest_training", "nearest_target"}
    assert old.record(old.rows[0]).items() <= new.record(new.rows[0]).items()


def test_a_hundred_thousand_names_are_loaded_and_looked_up_at_once(tmp_path: Path) -> None:
    texts = [f"{'C' * (n % 50)}N{n:06d}" for n in range(100_000)]
    names = TrainingNames.of(TrainingMolecule(text, text[::-1], ("1.5",)) for text in texts)
    packed = np.zeros((len(texts), 32), np.uint64)
    entry = save_neighbours(tmp_path, Neighbours(packed, 0.2, names))
    began = time.perf_counter()
    loaded = load_neighbours(tmp_path, tmp_path / "config.json", entry)
    assert time.perf_counter() - began < 2.0  # a tenth of a second; no text is read
    assert loaded is not None
    assert loaded.names is not None
    began = time.perf_counter()
    for row in range(0, len(texts), 100):
        assert loaded.names[row].smiles == texts[row]
    assert time.perf_counter() - began < 1.0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda found: {**found, "ends": found["ends"][:-1].copy()},
        lambda found: {**found, "ends": found["ends"][::-1].copy()},
        lambda found: {**found, "ends": found["ends"] + 1},
        lambda found: {**found, "ends": found["ends"].astype(np.int32)},
        lambda found: {**found, "text": found["text"].astype(np.int64)},
        lambda found: {**found, "text": found["text"][:-3].copy()},
    ],
)
def test_names_that_do_not_fit_the_fingerprints_are_refused(
    spoil: Callable[[dict[str, Any]], dict[str, Any]], model: Model, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    path = tmp_path / "neighbours.safetensors"
    save_file(spoil(load_file(path)), path)
    record = json.loads((tmp_path / "config.json").read_text())
    record["neighbours"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "config.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"neighbours\.safetensors: (text|ends) must"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"least": float("nan")}, "neighbours least must lie in [0, 1]"),
        ({"least": "0.2"}, "neighbours least must lie in [0, 1]"),
        ({"least": True}, "neighbours least must lie in [0, 1]"),
        ({"bits": 1024}, "neighbours must have radius 2 and 2048 bits"),
        ({"more": 1}, "neighbours must hold bits, least, radius, sha256"),
        ({"sha256": "0"}, "the SHA-256 differs from that in config.json"),
    ],
)
def test_a_record_of_neighbours_that_is_not_valid_is_refused(
    change: dict[str, object], said: str, model: Model, place: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert model.neighbours is not None
    folder = tmp_path / "model"
    shutil.copytree(place / "model", folder)
    record = json.loads((folder / "config.json").read_text())
    record["neighbours"] |= change
    (folder / "config.json").write_text(json.dumps(record))
    assert said in refused(["predict", str(folder), str(place / "t.csv")], capsys)


def test_a_file_of_neighbours_that_is_missing_or_foreign_is_refused(
    model: Model, place: Path, tmp_path: Path
) -> None:
    folder, name = tmp_path / "model", "neighbours.safetensors"
    model.save_pretrained(folder)
    table = load_file(folder / name)["fingerprints"]
    assert table.shape[1] == 256
    save_file({"fingerprints": table[:, :8].copy()}, folder / name)
    with pytest.raises(DataError, match=r"the SHA-256 differs"):
        load_model(folder)
    record = json.loads((folder / "config.json").read_text())
    record["neighbours"]["sha256"] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "config.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"fingerprints must be \(molecules, 256\) bytes"):
        load_model(folder)
    (folder / name).unlink()
    with pytest.raises(SourceNotFoundError, match=r"neighbours\.safetensors is missing"):
        load_model(folder)
    replace(model, neighbours=None).save_pretrained(folder)
    assert load_model(folder).neighbours is None
