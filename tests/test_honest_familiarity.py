"""A prediction far from what was learned says so: size, charges, radicals, rings and values."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rdkit import Chem

from cell_attention import Model, load_model, predict, train
from cell_attention.errors import DataError
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig
from learning import refused

TINY = replace(NetworkConfig.molecules(), hidden=(4,), heads=(2,))
SHORT = replace(TrainingConfig.molecules(), epochs=3)


def fit(source: Path, out: Path) -> Model:
    """A tiny model of values."""
    made = train(source, folder=out, network=TINY, training=SHORT)
    return replace(made, neighbours=None)  # test_honest_neighbours.py is about these


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("familiar")


@pytest.fixture(scope="module")
def model(place: Path) -> Model:
    rows = [f"{'C' * n}O,{n}" for n in range(1, 25)]
    rows += [f"C1CCCC1{'C' * n}N,{n}" for n in range(1, 15)] + [f"{'C' * 9}[O-],3"] * 2
    (place / "t.csv").write_text("\n".join(["smiles,y", *rows]) + "\n")
    return fit(place / "t.csv", place / "model")


def warning(model: Model, smiles: str) -> str:
    table = predict(model, [smiles])
    return table.rows[0][table.header.index("warning")]


def test_what_was_seen_is_what_rdkit_counts(model: Model, place: Path) -> None:
    rows = (place / "t.csv").read_text().splitlines()[1:]
    split = json.loads((place / "model" / "splits.json").read_text())["train"]
    molecules = [Chem.MolFromSmiles(rows[row].split(",")[0]) for row in split]
    charges = {Chem.GetFormalCharge(molecule) for molecule in molecules}
    values = [float(rows[row].split(",")[1]) for row in split]
    assert model.seen["nodes"] == (max(molecule.GetNumAtoms() for molecule in molecules),)
    assert model.seen["charges"] == tuple(sorted(charges))
    assert model.seen["rings"] == (5,)
    assert model.seen["radicals"] == (0,)
    assert model.ranges == ((min(values), max(values)),)
    assert load_model(place / "model").seen == model.seen
    assert load_model(place / "model").ranges == model.ranges


@pytest.mark.parametrize(
    ("smiles", "said"),
    [
        ("C" * 60, "60 atoms are more than any in training (25)"),
        ("CC[NH3+]", "net charge +1 was not in training"),
        ("C[N+](C)(C)CC([O-])=O", "atoms of charge +1 were not in training"),
        ("C[CH2]", "radicals were not in training"),
        ("C1CCCCCC1", "rings of 7 atoms were not in training (the largest has 5)"),
        ("C1CCCCCCCCC1", "a ring of 10 atoms is not a polygon (at most 8)"),
        ("CCS", "element S was not in training"),
        ("C=C", "double bonds were not in training"),
    ],
)
def test_a_molecule_unlike_those_of_training_says_in_what(
    smiles: str, said: str, model: Model
) -> None:
    wide = replace(model, ranges=())
    seen = {**model.seen, "nodes": (25,), "charges": (-1, 0), "atom_charges": (-1, 0)}
    assert said in warning(replace(wide, seen=seen), smiles)
    assert not warning(replace(wide, seen=seen), "CCCO")


def test_old_models_warn_of_nothing_more_than_before(model: Model) -> None:
    before = {name: model.seen[name] for name in ("elements", "bonds")}
    old = replace(model, seen=before, ranges=())
    assert not warning(old, "C" * 60 + "[O-]")
    assert not warning(old, "C[CH2]")
    assert warning(old, "CS") == "element S was not in training"


def test_a_value_is_flagged_beyond_half_of_the_width(model: Model) -> None:
    (found,) = predict(model, ["CCO"]).values[:, 0].tolist()
    for low, high, flagged in (
        (found + 1.0, found + 3.01, False), (found + 1.0, found + 2.99, True),
        (found - 3.01, found - 1.0, False), (found - 2.99, found - 1.0, True),
    ):  # fmt: skip
        said = warning(replace(model, ranges=((low, high),)), "CCO")
        text = f"{found:.6g} is beyond the values of training ({low:.6g} … {high:.6g})"
        assert said == (text if flagged else ""), (low, high)
    assert not warning(replace(model, ranges=(None,)), "CCO")


def test_large_molecules_stay_in_the_range_of_training_or_say_so(
    data_dir: Path, tmp_path: Path
) -> None:
    with (data_dir / "MoleculeNet" / "ESOL.csv").open() as file:
        rows = [(row["smiles"], row) for row in csv.DictReader(file)][:80]
    lines = [f"{smiles},{row['logp']}" for smiles, row in rows]
    (tmp_path / "e.csv").write_text("\n".join(["smiles,logS", *lines]) + "\n")
    model = fit(tmp_path / "e.csv", tmp_path / "m")
    (most,), ((low, high),) = model.seen["nodes"], [r for r in model.ranges if r]
    large = [f"{'C' * (10 * most)}.{smiles}" for smiles, _ in rows[:20]]
    large += [".".join([smiles] * 100) for smiles, _ in rows[:5]]
    table = predict(model, large)
    slack = (high - low) / 2
    for row, value in zip(table.rows, table.values[:, 0].tolist(), strict=True):
        said = row[table.header.index("warning")]
        assert not row[-1]
        inside = low - slack <= value <= high + slack
        assert inside != ("is beyond the values of training" in said)
        assert f"more than any in training ({most})" in said


def test_a_graph_larger_than_any_in_training_says_so(tmp_path: Path) -> None:
    model = train("MUTAG", folder=tmp_path / "m", training=replace(SHORT, epochs=1), network=TINY)
    (most,) = model.seen["nodes"]
    table = predict(replace(model, seen={**model.seen, "nodes": (most - 5,)}), "MUTAG")
    column = table.header.index("warning")
    sizes = torch.bincount(torch.tensor([len(row[column]) > 0 for row in table.rows]).long())
    assert 0 < int(sizes[1]) < len(table.rows)
    assert any(f"nodes are more than any in training ({most - 5})" in row[column]
               for row in table.rows)  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "value", "said"),
    [
        ("seen", {"colours": [1]}, "seen must hold lists of"),
        ("seen", {"charges": [0.5]}, "seen charges must be whole numbers"),
        ("seen", {"charges": [True]}, "seen charges must be whole numbers"),
        ("seen", {"nodes": [3, 4]}, "seen nodes must hold one number, got 2"),
        ("seen", {"nodes": []}, "seen nodes must hold one number, got 0"),
        ("seen", {"nodes": [-1]}, "seen nodes must be whole numbers in 0…"),
        ("ranges", {"y": [0, 1]}, "ranges must be a list with an entry per column"),
        ("ranges", [[0, 1], [0, 1]], "ranges must be a list with an entry per column"),
        ("ranges", [[0]], "ranges must hold two finite numbers each"),
        ("ranges", [[0, float("nan")]], "ranges must hold two finite numbers each"),
        ("ranges", [["0", 1]], "ranges must hold two finite numbers each"),
        ("ranges", [[0, 10**400]], "ranges must hold two finite numbers each"),
        ("ranges", [[2, 1]], "ranges must increase, got [2, 1]"),
    ],
)
def test_a_record_that_says_nonsense_is_refused_in_one_line(
    entry: str, value: object, said: str, model: Model, place: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert model.ranges
    folder = tmp_path / "model"
    shutil.copytree(place / "model", folder)
    record = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**record, entry: value}))
    with pytest.raises(DataError, match=r"config\.json"):
        load_model(folder)
    assert said in refused(["predict", str(folder), str(place / "t.csv")], capsys)


def test_a_record_without_ranges_is_read(model: Model, place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(place / "model", folder)
    record = json.loads((folder / "config.json").read_text())
    del record["ranges"]
    (folder / "config.json").write_text(json.dumps(record))
    assert load_model(folder).ranges == ()
    assert load_model(folder).seen == model.seen
