"""Functional groups, scaffolds and nearest training molecules: sums add up, and molecules of one
scaffold lie in one position.
"""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rdkit import Chem

from cell_attention import CellAttentionNetwork, Model, NetworkConfig, load_dataset
from cell_attention.app.jobs import perform
from cell_attention.app.limits import ServeLimits
from cell_attention.cli.entry import run
from cell_attention.data.molecules.features import Featuriser
from cell_attention.explanation import explain, group_totals, scaffold_totals
from cell_attention.explanation.drawing import drawing_of
from cell_attention.explanation.functional_groups import GROUPS, OTHER, groups_of
from cell_attention.explanation.scaffold_cores import cores_of
from cell_attention.explanation.totals import BETWEEN, groups_in
from cell_attention.inference.seen import neighbours_of

SOURCE = [
    ("O=[N+]([O-])c1ccc(-c2ccccc2)cc1", "nitro"),
    ("Oc1ccc(-c2ccccc2)cc1", "phenol"),
    ("OC(=O)c1cccc(-c2ccccc2)c1", "acid"),
    ("CCO", "ethanol"),
    ("C1CC", "broken"),
    ("Cn1c(=O)c2c(ncn2C)n(C)c1=O", "caffeine"),
    ("O=C1C=CC(=O)C=C1", "quinone"),
    ("CC1=CC(=O)C=CC1=O", "toluquinone"),
    ("[Na+].[Cl-]", "salt"),
]


@pytest.fixture(scope="module")
def model() -> Model:
    torch.manual_seed(0)
    config = NetworkConfig(max_polygon=8, hidden=(4, 4), heads=(2, 2))
    network = CellAttentionNetwork(config, *Featuriser().widths, 2).eval()
    known = neighbours_of(
        ["CCO", "Oc1ccccc1", "c1ccc(-c2ccccc2)cc1", "CCN"], ["spirit", "", "biphenyl", ""],
        [["yes"], ["no"], ["no"], ["yes"]],
    )  # fmt: skip
    labels = ("no", "yes")
    record = Featuriser().record
    return Model((network,), "classes", labels, record, {}, ("active",), neighbours=known)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with (tmp_path / "some.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("smiles", "name"), *SOURCE])
    return tmp_path / "some.csv"


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CC(=O)Oc1ccccc1C(=O)O", {"alkyl": 1, "ester": 3, "benzene ring": 6,
                                   "carboxylic acid": 3}),
        ("CN(C)N=O", {"alkyl": 2, "N-nitroso": 3}),
        ("CS(=O)(=O)Nc1ccccc1", {"alkyl": 1, "sulfonamide": 4, "benzene ring": 6}),
        ("OCC1OC(O)C(O)C1O", {"alcohol": 4, "alkyl": 1, "aliphatic ring": 4, "ether": 1}),
        ("NCC(=O)N(C)C", {"primary amine": 1, "alkyl": 3, "amide": 3}),
        ("CC(=O)NC(=O)C", {"alkyl": 2, "imide": 5}),
        ("O=C1C=CC(=O)C=C1", {"ketone or quinone": 4, "alkene": 4}),
        ("FC(F)(F)c1ccsc1Br", {"trifluoromethyl": 4, "heteroaromatic ring": 5,
                               "aromatic halogen": 1}),
        ("C[N+](C)(C)CC#N", {"alkyl": 4, "quaternary ammonium": 1, "nitrile": 2}),
        ("[Na+].CC(=O)[O-]", {OTHER: 1, "alkyl": 1, "carboxylic acid": 3}),
        ("O=[N+]([O-])c1ccc2ccccc2c1", {"nitro": 3, "benzene ring": 10}),
    ],
)  # fmt: skip
def test_every_atom_belongs_to_the_most_specific_group(
    smiles: str, expected: dict[str, int]
) -> None:
    found = groups_of(Chem.MolFromSmiles(smiles))
    assert {name: found.count(name) for name in found} == expected


def test_every_pattern_can_be_read_and_has_a_name_of_its_own() -> None:
    assert all(Chem.MolFromSmarts(smarts) is not None for _, smarts in GROUPS)
    assert len({name for name, _ in GROUPS}) == len(GROUPS)


def test_the_sums_of_groups_and_scaffolds_are_those_of_atoms_and_bonds(model: Model) -> None:
    smiles = [text for text, name in SOURCE if name != "broken"]
    found = explain(model, smiles, [1] * len(smiles), measure=False)
    atoms, bonds = (sum(float(getattr(one, k).sum()) for one in found) for k in ("nodes", "edges"))
    groups, scaffolds = group_totals(found), scaffold_totals(found)
    assert sum(row.importance for row in groups) == pytest.approx(atoms, abs=1e-5)
    assert sum(row.speaks_for + row.speaks_against for row in groups) == pytest.approx(atoms)
    assert sum(row.bonds for row in groups) == pytest.approx(bonds, abs=1e-5)
    assert sum(row.atoms for row in groups) == sum(one.complexes.num_nodes for one in found)
    assert sum(row.importance + row.outside for row in scaffolds) == pytest.approx(atoms)
    nitro = next(row for row in groups if row.group == "nitro")
    assert (nitro.molecules, nitro.atoms) == (1, 3)
    assert nitro.importance == pytest.approx(float(found[0].nodes[:3].sum()), abs=1e-5)
    assert nitro.bonds == pytest.approx(float(found[0].edges[:2].sum()), abs=1e-5)
    benzene = next(row for row in groups if row.group == "benzene ring")
    assert benzene.mean == pytest.approx(benzene.importance / 3)
    assert BETWEEN in {row.group for row in groups}
    assert [abs(row.importance) for row in groups] == sorted(
        (abs(row.importance) for row in groups), reverse=True
    )
    assert sum(groups_in(found[0]).values()) == pytest.approx(float(found[0].nodes.sum()))
    assert [row.members for row in scaffolds] == [[0, 1, 2], [3, 7], [5, 6], [4]]


def test_graphs_that_are_no_molecules_have_no_groups() -> None:
    mutag = load_dataset("MUTAG")[:2]
    network = CellAttentionNetwork(NetworkConfig(hidden=(4,), heads=(1,)), 7, 4, 2).eval()
    found = explain(network, mutag, measure=False)
    assert (group_totals(found), scaffold_totals(found)) == ([], [])


def test_molecules_that_share_a_scaffold_are_drawn_in_one_position(model: Model) -> None:
    smiles = [text for text, _ in SOURCE[:3]]
    molecules = [Chem.MolFromSmiles(text) for text in smiles]
    found = explain(model, smiles, measure=False)
    places = []
    for one, core, molecule in zip(found, cores_of(molecules), molecules, strict=True):
        assert core.smiles == "c1ccc(-c2ccccc2)cc1"
        assert len(core.atoms) == 12
        points = drawing_of(one.complexes, molecule, core).points
        placed = points[list(core.atoms)]
        length = np.linalg.norm(placed[0] - placed[1])
        places.append((placed - placed.mean(0)) / length)
    np.testing.assert_allclose(places[1], places[0], atol=1e-2)
    np.testing.assert_allclose(places[2], places[0], atol=1e-2)
    (ring,) = cores_of([Chem.MolFromSmiles("CCO")])
    assert (ring.smiles, ring.atoms, ring.place(molecules[0])) == ("", (), False)


def test_the_report_has_groups_scaffolds_and_nearest_training_molecules(
    model: Model, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save_pretrained(tmp_path / "m")
    words = ["explain", str(tmp_path / "m"), str(source), "--no-faithfulness", "--out"]
    assert run([*words, str(tmp_path / "r.html")]) == 0
    shown = capsys.readouterr().out
    assert "What functional groups carry of active = yes" in shown
    assert re.search(r"^nitro +1 +3 ", shown, re.MULTILINE)
    text = (tmp_path / "r.html").read_text()
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    page = json.loads(data)
    assert run([*words, str(tmp_path / "r.json"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows: list[dict[str, Any]] = json.loads((tmp_path / "r.json").read_text())
    total = sum(sum(row["nodes"]) for row in rows)
    for groups in (page["groups"], said["groups"]):
        assert sum(row["importance"] for row in groups) == pytest.approx(total, abs=1e-2)
    assert sum(sum(row["groups"].values()) for row in rows) == pytest.approx(total, abs=1e-5)
    assert [row["scaffold"] for row in rows][:4] == ["c1ccc(-c2ccccc2)cc1"] * 3 + [""]
    assert [len(row["members"]) for row in page["scaffolds"]] == [3, 2, 2, 1]
    near = rows[3]["nearest"]
    assert near[0] == {"smiles": "CCO", "name": "spirit", "similarity": 1.0, "target": "yes"}
    assert [one["similarity"] for one in near] == sorted(
        (one["similarity"] for one in near), reverse=True
    )
    assert len(near) == 3
    assert [graph["nearest"][0]["name"] for graph in page["graphs"]][:4] == [
        "biphenyl", "", "biphenyl", "spirit",
    ]  # fmt: skip
    # Atoms 3… of the first and 1… of the second are the same rings: in one position on the page.
    points = [np.array(graph["points"]).reshape(-1, 2) for graph in page["graphs"][:2]]
    rings = points[0][3:15], points[1][1:13]
    first, second = (ring - ring.mean(0) for ring in rings)
    np.testing.assert_allclose(first, second, atol=3)  # hundredths of a bond


def test_the_local_page_names_the_nearest_training_molecule(model: Model) -> None:
    job = {"verb": "explain", "smiles": ["CCO"], "names": None, "graphs": None, "target": None,
           "forms": ["drawing", "explanation"], "measure": False}  # fmt: skip
    status, answer = perform(model, job, ServeLimits())
    (row,) = answer["predictions"]
    assert status == 200
    assert row["nearest_training"] == "CCO spirit"
    assert row["nearest_target"] == "yes"
    assert row["drawing"]["nearest"][0]["name"] == "spirit"
    assert row["explanation"]["nearest"][0] == row["drawing"]["nearest"][0]
    assert model.neighbours is not None
    unnamed = replace(model, neighbours=model.neighbours.anonymous())
    _, answer = perform(unnamed, job, ServeLimits())
    assert answer["predictions"][0]["drawing"]["nearest"] == []
    assert "nearest_training" not in answer["predictions"][0]
