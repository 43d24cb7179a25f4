"""`cell-attention explain`: what it writes, what it keeps, what it refuses."""

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

from cell_attention import (
    CellAttentionNetwork,
    CellAttentionWarning,
    Model,
    NetworkConfig,
    lift,
    load_dataset,
    predict,
    train,
)
from cell_attention import explain as explain_anything
from cell_attention.cli.entry import run
from cell_attention.data.molecules.features import Featuriser
from cell_attention.data.molecules.molecule import as_molecule
from cell_attention.errors import InputError, SourceNotFoundError
from cell_attention.explanation import explain
from cell_attention.explanation.drawing import drawing_of
from cell_attention.inference.prediction import predict_complexes
from learning import refused

SMALL = NetworkConfig.edges(lift_heads=4, hidden=(4, 4), heads=(2, 2), ratio=0.6)
RANKS = NetworkConfig(max_polygon=8, hidden=(4, 4), heads=(2, 2))
ROWS = [
    ("CCO", "ethanol", "1"),
    ("c1ccccc1", "benzene", "0"),
    ("C1CC", "broken", "1"),
    ("CC(=O)Oc1ccccc1C(=O)O", "</script><script>alert(1)</script>", "1"),
    ("CCN", "", "0"),
    ("[Na+].[Cl-]", "salt", "maybe"),
]


def network(outputs: int, seed: int = 0, config: NetworkConfig = SMALL) -> CellAttentionNetwork:
    torch.manual_seed(seed)
    return CellAttentionNetwork(config, *Featuriser().widths, outputs).eval()


def model(
    task: Any = "classes", outputs: int = 2, members: int = 1, config: NetworkConfig = SMALL,
    **more: Any,
) -> Model:  # fmt: skip
    labels = tuple(str(k) for k in range(outputs)) if task == "classes" else ()
    names = ("active",) if task == "classes" else tuple(f"t{k}" for k in range(outputs))
    every = tuple(network(outputs, seed, config) for seed in range(members))
    return Model(every, task, labels, Featuriser().record, {"source": "x"}, names, **more)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "some.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("smiles", "name", "active"), *ROWS])
    return path


def saved(tmp_path: Path, what: Model) -> str:
    what.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def data_of(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert len(found) == 1
    return json.loads(found[0])


@pytest.mark.parametrize("config", [SMALL, RANKS], ids=["paper", "ranks"])
def test_the_report_loads_nothing_else(
    config: NetworkConfig, tmp_path: Path, source: Path, capsys: Any
) -> None:
    out, folder = tmp_path / "report.html", saved(tmp_path, model(config=config))
    assert run(["explain", folder, str(source), "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    page = data_of(out)
    assert [graph["name"] for graph in page["graphs"]] == [
        "ethanol", "benzene", "</script><script>alert(1)</script>", "CCN", "salt",
    ]  # fmt: skip
    assert text.count("<script") == 2
    assert "alert(1)</" not in text
    links = set(re.findall(r"https?://[^\s\"'`]+", text)) - {"http://www.w3.org/2000/svg"}
    assert links == set()
    assert "default-src 'none'" in text
    assert "{{" not in text
    said = capsys.readouterr()
    assert "rows left out: 1" in said.err
    assert "row 4: " in said.err
    assert "5 graphs explained" in said.out
    assert [graph["right"] is None for graph in page["graphs"]] == [False] * 4 + [True]


@pytest.mark.parametrize("config", [SMALL, RANKS], ids=["paper", "ranks"])
def test_numbers_are_those_of_predict_and_explain(
    config: NetworkConfig, tmp_path: Path, source: Path
) -> None:
    # A threshold that turns predictions round: what is explained is what is predicted.
    plain = predict(model(config=config, thresholds=(0.5,)), str(source))
    column = plain.header.index("active_probability")
    known = [float(row[column]) for row in plain.rows if row[column] not in ("", None)]
    limit = min(known) - 0.01 if min(known) < 0.5 else max(known) + 0.01
    made = model(config=config, thresholds=(limit,))
    folder = saved(tmp_path, made)
    assert run(["explain", folder, str(source), "--out", str(tmp_path / "r.json")]) == 0
    assert run(["predict", folder, str(source), "--out", str(tmp_path / "p.csv")]) == 0
    found = json.loads((tmp_path / "r.json").read_text())
    read = csv.DictReader((tmp_path / "p.csv").read_text().splitlines())
    stated = [row for row in read if not row["error"]]
    assert [one["prediction"] for one in found] == [row["active_prediction"] for row in stated]
    assert any(one["confidence"] < 0.5 for one in found)
    for one, row in zip(found, stated, strict=True):
        assert (f"decides at {limit:.3f}" in one["said"]) == (one["confidence"] < 0.5)
        assert one["predictions"][1] == pytest.approx(float(row["active_probability"]), abs=1e-5)
        assert one["output"] == 1  # the same for all, whatever is predicted
        (ours,) = explain(made, row["smiles"], [one["output"]], measure=False)
        for name in ("edges", "polygons", "nodes"):
            assert one[name] == pytest.approx(getattr(ours, name).tolist(), abs=1e-6)


def test_the_most_confident_are_kept_in_the_order_of_the_file(tmp_path: Path, source: Path) -> None:
    made, out = model(), tmp_path / "r.json"
    folder = saved(tmp_path, made)
    good = [row[0] for row in ROWS if row[0] != "C1CC"]
    sure = predict_complexes(made, lift(good, 8)).values.max(1).values
    best = sorted(sure.argsort(descending=True)[:2].tolist())
    assert run(["explain", folder, str(source), "--top", "2", "--out", str(out)]) == 0
    assert [one["text"] for one in json.loads(out.read_text())] == [good[k] for k in best]


def test_pieces_of_a_long_file_keep_the_best_of_all(tmp_path: Path) -> None:
    made = model("values", 1)
    smiles = ["C" * (1 + k % 40) + "O" * (k % 3) for k in range(1200)]
    (tmp_path / "long.smi").write_text("\n".join(smiles) + "\n")
    out = tmp_path / "r.json"
    words = ["explain", saved(tmp_path, made), str(tmp_path / "long.smi"), "--out", str(out)]
    assert run([*words, "--top", "5", "--no-faithfulness"]) == 0
    values = predict_complexes(made, lift(smiles, 8)).values[:, 0]
    limit = float(values.sort(descending=True).values[4])
    found = json.loads(out.read_text())
    assert len(found) == 5
    assert all(one["predictions"][0] >= limit - 1e-6 for one in found)
    assert [one["row"] for one in found] == sorted(one["row"] for one in found)
    assert found[0]["faithfulness"] is None


def test_tables_and_totals_for_programs(tmp_path: Path, source: Path, capsys: Any) -> None:
    out = tmp_path / "r.csv"
    words = ["explain", saved(tmp_path, model()), str(source), "--out", str(out), "--json"]
    assert run(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["graphs"] == record["read"] == 5
    assert len(record["left_out"]) == 1
    assert set(record["faithfulness"]) == {"area", "fidelity_plus", "fidelity_minus"}
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert {row["graph"] for row in rows} == {"ethanol", "benzene", ROWS[3][1], "CCN", "salt"}
    assert {row["row"] for row in rows} == {"2", "3", "5", "6", "7"}


def test_labels_and_values_are_explained_by_name(tmp_path: Path, source: Path, capsys: Any) -> None:
    folder, out = saved(tmp_path, model("labels", 3)), tmp_path / "r.json"
    assert run(["explain", folder, str(source), "--target", "t2", "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    assert all(one["output"] == 2 and one["explained"] == "t2 = 1" for one in found)
    assert [one["name"] for one in found][:2] == ["ethanol", "benzene"]
    line = refused(["explain", folder, str(source), "--target", "t9", "--out", str(out)], capsys)
    assert "it predicts t0, t1, t2" in line
    folder = saved(tmp_path, model("values", 1))
    assert run(["explain", folder, str(source), "--out", str(tmp_path / "v.html")]) == 0
    graphs = data_of(tmp_path / "v.html")["graphs"]
    assert all(graph["confidence"] is None and graph["right"] is None for graph in graphs)
    (tmp_path / "long.csv").write_text("smiles,t0\nCCO,-4.4319999999999995\nCC,unknown\n")
    words = ["explain", folder, str(tmp_path / "long.csv"), "--out", str(tmp_path / "v.html")]
    assert run(words) == 0
    assert [graph["truth"] for graph in data_of(tmp_path / "v.html")["graphs"]] == [
        "-4.432", "unknown",
    ]  # fmt: skip


@pytest.mark.parametrize("config", [SMALL, RANKS], ids=["paper", "ranks"])
def test_an_ensemble_is_explained_by_the_mean_of_its_networks(config: NetworkConfig) -> None:
    made = model(members=3, config=config)
    (one,) = explain(made, "CC(=O)Oc1ccccc1C(=O)O", [1])
    parts = [
        explain(member, "CC(=O)Oc1ccccc1C(=O)O", [1], measure=False)[0] for member in made.members
    ]
    for name in ("edges", "polygons", "nodes"):
        mean = torch.stack([getattr(part, name) for part in parts]).mean(0)
        torch.testing.assert_close(getattr(one, name), mean)
    torch.testing.assert_close(
        one.predictions, torch.stack([part.predictions for part in parts]).mean(0)
    )
    assert one.faithfulness is not None
    assert float(one.faithfulness.ours.deletion[0, 0]) == pytest.approx(one.prediction, abs=1e-6)


def test_graphs_of_tu_sets_are_explained_as_molecules(tmp_path: Path) -> None:
    record = {
        "elements": ["C", "N", "O", "F", "I", "Cl", "Br"],
        "bonds": ["aromatic", "single", "double", "triple"],
    }
    torch.manual_seed(0)
    small = CellAttentionNetwork(replace(SMALL, max_polygon=6), 7, 4, 2).eval()
    from cell_attention.data.sources import read_source

    found = read_source("MUTAG")
    assert {key: found.featuriser[key] for key in record} == record
    made = Model((small,), "classes", found.class_names, found.featuriser, {})
    out = tmp_path / "r.html"
    words = ["explain", saved(tmp_path, made), "MUTAG", "--out", str(out), "--no-faithfulness"]
    assert run([*words, "--top", "30"]) == 0
    graphs = data_of(out)["graphs"]
    mutag = load_dataset("MUTAG")
    for graph in graphs:
        assert len(graph["elements"]) == mutag[graph["row"]].num_nodes
        assert graph["right"] in (True, False)
    (one,) = explain(made, "O=[N+]([O-])c1ccccc1", measure=False)
    assert one.molecule is not None


@pytest.mark.parametrize(
    "more, message",
    [
        (["--out", "report.pdf"], "--out must end in .html, .json, .csv"),
        (["--top", "0"], "top must be at least 1, got 0"),
        (["--class", "yes"], "class must be one of 0, 1, got 'yes'"),
        (["--out", "nowhere/report.html"], "nowhere"),
        (["--smiles-column", "active"], "none of 6 rows is a valid molecule"),
        (["--out", "model/config.json"], "would replace a file of the model"),
    ],
)
def test_bad_requests_are_one_line(
    tmp_path: Path, source: Path, capsys: Any, monkeypatch: Any, more: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = saved(tmp_path, model())
    assert message in refused(["explain", folder, str(source), *more], capsys)
    assert not list(tmp_path.glob("report*"))


def test_rows_that_are_not_molecules_are_refused_on_request(
    tmp_path: Path, source: Path, capsys: Any
) -> None:
    words = ["explain", saved(tmp_path, model()), str(source), "--on-error", "fail"]
    assert "line 4" in refused([*words, "--out", str(tmp_path / "r.html")], capsys)
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("text", ["", "smiles\n", "smiles,name\n\n"])
def test_a_file_without_rows_is_refused(tmp_path: Path, capsys: Any, text: str) -> None:
    (tmp_path / "none.csv").write_text(text)
    words = ["explain", saved(tmp_path, model()), str(tmp_path / "none.csv")]
    line = refused([*words, "--out", str(tmp_path / "r.html")], capsys)
    assert "none.csv: there is no graph to explain" in line
    assert not (tmp_path / "r.html").exists()


def test_a_model_knows_its_task() -> None:
    from cell_attention.errors import InputError

    with pytest.raises(InputError, match="task must be that of the model, classes, got values"):
        explain(model(), "CCO", task="values")
    with pytest.raises(InputError, match="graphs: RDKit cannot read 'C1CC'"):
        explain(model(), ["CCO", "C1CC"])
    with pytest.raises(InputError, match="must be a network or a Model, got int"):
        explain(5, "CCO")  # type: ignore[arg-type]
    for wrong in (["1"], [0.9], [True]):
        with pytest.raises(InputError, match="outputs must be whole numbers"):
            explain(model(), "CCO", wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="task must be one of classes, labels, values"):
        explain(network(2), "CCO", task="other")  # type: ignore[arg-type]


def test_molecules_come_in_any_sequence() -> None:
    smiles = ["CCO", "c1ccccc1"]
    for given in (smiles, tuple(smiles), np.array(smiles), iter(smiles)):
        found = explain(model(), given, measure=False)
        assert [one.molecule is not None for one in found] == [True, True]


def test_one_graph_gives_json_that_everyone_reads(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "one.smi").write_text("CCO\n")
    words = ["explain", saved(tmp_path, model()), str(tmp_path / "one.smi"), "--json"]
    assert run([*words, "--out", str(tmp_path / "r.json")]) == 0

    def refuse(text: str) -> Any:
        raise AssertionError(text)

    record = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert record["faithfulness"]["area"]["p"] is None
    json.loads((tmp_path / "r.json").read_text(), parse_constant=refuse)


def test_a_prediction_that_is_not_a_number_is_not_explained() -> None:
    broken = model()
    with torch.no_grad():
        broken.network.head[1].bias.fill_(float("nan"))
    from cell_attention.errors import InputError

    with pytest.raises(InputError, match="the prediction for graph 0 is not a finite number"):
        explain(broken, "CCO")


def test_records_of_an_sdf_without_a_title_are_named_by_their_molecule(tmp_path: Path) -> None:
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    (tmp_path / "two.sdf").write_text(f"{block}$$$$\nnamed{block}$$$$\n")
    out = tmp_path / "r.json"
    assert (
        run(["explain", saved(tmp_path, model()), str(tmp_path / "two.sdf"), "--out", str(out)])
        == 0
    )
    found = json.loads(out.read_text())
    assert [(one["name"], one["text"]) for one in found] == [("CCO", "CCO"), ("named", "CCO")]


@pytest.mark.parametrize("ending", ["html", "json", "csv"])
def test_the_function_writes_the_file_of_the_command(
    tmp_path: Path, source: Path, ending: str
) -> None:
    folder = saved(tmp_path, model())
    command, function = tmp_path / f"command.{ending}", tmp_path / f"function.{ending}"
    assert run(["explain", folder, str(source), "--out", str(command), "--top", "3"]) == 0
    found = explain_anything(folder, str(source), out=function, top=3, on_error="skip")
    assert len(found) == 3
    assert function.read_bytes() == command.read_bytes()


def test_a_text_is_a_source_if_it_names_one_and_else_a_molecule(
    tmp_path: Path, source: Path
) -> None:
    made = model()
    with pytest.warns(CellAttentionWarning, match="left out: row 4: "):
        found = explain_anything(made, source, measure=False)
    assert [one.complexes.num_nodes for one in found] == [3, 6, 13, 3, 2]
    (one,) = explain_anything(made, "CCO", [1], measure=False)
    torch.testing.assert_close(one.edges, found[0].edges, rtol=1e-4, atol=1e-6)
    with pytest.raises(SourceNotFoundError, match="no such file"):
        explain_anything(made, tmp_path / "no.csv")
    (out,) = explain_anything(made, "CCO", measure=False, out=tmp_path / "one.json")
    torch.testing.assert_close(out.edges, one.edges, rtol=1e-4, atol=1e-6)
    assert json.loads((tmp_path / "one.json").read_text())[0]["name"] == "CCO"
    with pytest.raises(InputError, match="outputs and task are for graphs in memory"):
        explain_anything(made, source, outputs=[0])
    with pytest.raises(InputError, match="network must be a Model or a MODEL_DIR"):
        explain_anything(made.network, source)
    with pytest.raises(InputError, match="target 'nosuch' is not predicted"):
        explain_anything(made, source, target="nosuch")


def test_the_name_of_a_tu_set_is_explained_from_python() -> None:
    found = train("MUTAG", training={"epochs": 1})
    assert len(explain_anything(found, "MUTAG", measure=False, top=2)) == 2


def test_all_graphs_are_explained_for_one_class(tmp_path: Path, source: Path) -> None:
    made = model()
    for name, asked in (("0", "0"), ("1", "1"), ("1", None)):
        found = explain_anything(made, ["CCO", "c1ccccc1"], explained_class=asked, top=9)
        assert {one.name for one in found} == {f"active = {name}"}
    three = Model(
        (CellAttentionNetwork(SMALL, *Featuriser().widths, 3).eval(),), "classes", ("a", "b", "c"),
        Featuriser().record, {}, ("kind",),
    )  # fmt: skip
    found = explain_anything(three, ["CCO", "c1ccccc1", "CCN", "C1CCCCC1"], top=9, measure=False)
    predicted = [int(one.predictions.argmax()) for one in found]
    assert {one.output for one in found} == {max({*predicted}, key=predicted.count)}
    values = model(task="values")
    with pytest.raises(InputError, match="class 'a': the model predicts values; choose by target"):
        explain_anything(values, ["CCO"], explained_class="a")


def test_pictures_have_numbers_and_wedges_on_request() -> None:
    (one,) = explain_anything(model(), "C[C@H](N)C(=O)O", measure=False)
    assert one.picture(numbers=True).svg != one.picture().svg
    flat = drawing_of(one.complexes, one.molecule)
    ((edge, narrow, _),) = flat.wedges
    assert narrow == 1  # the stereocentre
    assert narrow in flat.edges[edge]
    assert drawing_of(lift("CC(N)C(=O)O"), as_molecule("CC(N)C(=O)O")).wedges == ()
