"""The column of a probability says of which class it is."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cell_attention import Model, predict
from cell_attention.cli.entry import run as run_words
from cell_attention.data.molecules.features import Featuriser
from cell_attention.errors import InputError
from cell_attention.inference.prediction import predict_complexes
from cell_attention.inference.prediction_table import prediction_header
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.network import CellAttentionNetwork
from learning import refused

SMILES = ["CCO", "c1ccccc1", "CCN", "C1CCCC1C"]


def model(labels: tuple[str, ...] = (), task: str = "classes", outputs: int = 2) -> Model:
    torch.manual_seed(1)
    config = replace(NetworkConfig.molecules(), hidden=(4,), heads=(2,))
    network = CellAttentionNetwork(config, *Featuriser().widths, outputs).eval()
    name = ("act",) if task == "classes" else tuple(f"t{k}" for k in range(outputs))
    return Model((network,), task, labels, Featuriser().record, {}, name)  # type: ignore[arg-type]


def column(made: Model, name: str, positive: str | None = None) -> list[float]:
    table = predict(made, SMILES, positive=positive)
    return [float(row[table.header.index(name)]) for row in table.rows]


def test_the_probability_of_one_of_two_classes_has_its_name() -> None:
    made = model(("active", "inactive"))
    table = predict(made, SMILES)
    assert table.header[1:3] == ("act_prediction", "act_probability_inactive")
    second, first = table.values[:, 1].tolist(), table.values[:, 0].tolist()
    assert column(made, "act_probability_inactive") == pytest.approx(second, rel=1e-5)
    assert column(made, "act_probability_inactive", "inactive") == pytest.approx(second, rel=1e-5)
    assert column(made, "act_probability_active", "active") == pytest.approx(first, rel=1e-5)
    names = [row[1] for row in table.rows]
    assert names == [row[1] for row in predict(made, SMILES, positive="active").rows]
    assert names == [("active", "inactive")[int(share >= 0.5)] for share in second]


def test_zero_and_one_keep_the_short_name_of_the_probability_of_one() -> None:
    for labels in ((), ("0", "1")):
        made = model(labels)
        assert prediction_header(made) == ("act_prediction", "act_probability")
        assert prediction_header(made, "1") == ("act_prediction", "act_probability")
        assert prediction_header(made, "0") == ("act_prediction", "act_probability_0")
        ones = column(made, "act_probability")
        zeros = column(made, "act_probability_0", "0")
        assert [a + b for a, b in zip(ones, zeros, strict=True)] == pytest.approx([1.0] * 4)
    assert prediction_header(model(("-1", "1")))[1] == "act_probability_1"


def test_several_classes_and_labels_have_a_column_each() -> None:
    three = prediction_header(model(("a", "b", "c"), outputs=3))
    assert three == ("act_prediction", *(f"act_probability_{name}" for name in "abc"))
    labels = prediction_header(model(task="labels"))
    assert labels == ("t0_prediction", "t0_probability", "t1_prediction", "t1_probability")
    assert prediction_header(model(task="values")) == ("t0_prediction", "t1_prediction")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (model(("active", "inactive")), "positive must be 'active' or 'inactive', got 'Active'"),
        (model(("a", "b", "c"), outputs=3), "the model predicts 3 classes"),
        (model(task="labels"), "the model predicts labels"),
        (model(task="values"), "the model predicts values"),
    ],
)
def test_a_class_that_cannot_be_chosen_is_refused(made: Model, said: str) -> None:
    with pytest.raises(InputError, match=said):
        predict(made, SMILES, positive="Active")


def test_the_command_takes_the_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, source = model(("active", "inactive")), tmp_path / "t.csv"
    made.save_pretrained(tmp_path / "m")
    source.write_text("\n".join(["smiles,x", *(f"{text},1" for text in SMILES)]) + "\n")
    words = ["predict", str(tmp_path / "m"), str(source), "--positive"]
    assert run_words([*words, "active"]) == 0
    header = capsys.readouterr().out.splitlines()[0]
    assert header == "smiles,x,act_prediction,act_probability_active,warning,error"
    assert "positive must be 'active' or 'inactive', got 'no'" in refused([*words, "no"], capsys)


def test_the_probability_that_is_shown_is_that_of_the_network() -> None:
    made = model(("n", "y"))
    from cell_attention import lift

    values = predict_complexes(made, lift(SMILES, made.config.max_polygon)).values
    assert column(made, "act_probability_y") == pytest.approx(values[:, 1].tolist(), abs=1e-5)
