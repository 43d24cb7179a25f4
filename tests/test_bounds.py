"""Values of which only a bound is known: reading, storage, the loss, and the metrics."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from torch_geometric.data import Batch

from cell_attention import CellComplex, lift, train
from cell_attention.cli.entry import run as run_words
from cell_attention.data.molecules.molecule_set import read_molecules
from cell_attention.data.targets import read_targets
from cell_attention.errors import DataError, InputError
from cell_attention.inference.prediction import predict_complexes
from cell_attention.topology.interop import from_networkx, to_networkx
from cell_attention.topology.pyg import to_pyg
from cell_attention.training.tasks import task_of

SMALL = ("--hidden", "4", "4", "--heads", "1", "1", "--epochs", "3", "--quiet")


def table(path: Path, rows: list[str], header: str = "smiles,y") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def bounded() -> CellComplex:
    """Chains of 3 … 12 atoms; the value of every third is a lower bound, of the next an upper."""
    chains = lift(["C" * size for size in range(3, 13)])
    targets = torch.arange(3.0, 13.0).unsqueeze(1)
    bounds = torch.tensor([[(0, 1, -1)[i % 3]] for i in range(10)], dtype=torch.int8)
    return replace(chains, targets=targets, target_bounds=bounds)


def test_cells_with_a_sign_are_bounds() -> None:
    cells = ["1.5", ">10", "< 0.1", ">=3", "<= -2e1", "≥4", "≤ 5", "", "0"]
    found = read_targets("t.csv", ("y",), [[cell] for cell in cells])
    assert found.kind == "values"
    assert found.values is not None
    assert found.bounds is not None
    expected = [1.5, 10.0, 0.1, 3.0, -20.0, 4.0, 5.0, 0.0]
    assert found.values.flatten().tolist() == pytest.approx(expected)
    assert found.bounds.flatten().tolist() == [0, 1, -1, 1, -1, 1, -1, 0]
    assert found.bounds.dtype == torch.int8


def test_zeros_and_ones_with_a_bound_are_values_and_without_one_they_are_classes() -> None:
    assert read_targets("t.csv", ("y",), [["0"], ["1"], [">1"]]).kind == "values"
    several = read_targets("t.csv", ("a", "b"), [["0", "1"], ["1", "<1"]])
    assert several.kind == "values"
    plain = read_targets("t.csv", ("a", "b"), [["0", "1"], ["1", "0"]])
    assert (plain.kind, plain.bounds) == ("labels", None)


def test_a_column_without_any_plain_number_has_no_bounds() -> None:
    found = read_targets("t.csv", ("y",), [[">10"], ["<5"], [">10"], ["<5"]])
    assert found.class_names == ("<5", ">10")
    with pytest.raises(DataError, match=r"column 'b' holds texts such as '>10', not numbers"):
        read_targets("t.csv", ("a", "b"), [["1", ">10"], ["2.5", "<5"]])


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (">abc", "'>abc' in column 'y' is not a bound: > and < need a number"),
        (">", "'>' in column 'y' is not a bound"),
        (">>3", "'>>3' in column 'y' is not a bound"),
        ("<nan", "'<nan' in column 'y' is not a bound"),
        ("~3", "'~3' in column 'y' is not a number"),
        (">1e39", "'>1e39' in column 'y' does not fit into 32 bits"),
    ],
)
def test_what_is_no_bound_is_named_with_its_line(cell: str, reason: str, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", ["CC,1.5", f"CCC,{cell}"])
    with pytest.raises(DataError, match=f"t.csv, line 3: {reason}"):
        read_molecules(path)
    assert len(read_molecules(path, "skip").graphs) == 1


def test_the_number_of_bounds_is_said(tmp_path: Path) -> None:
    found = read_molecules(table(tmp_path / "t.csv", ["CC,1.5", "CCC,>3", "CCO,<1", "OCC,2"]))
    said = [text for text in found.remarks if text.startswith("2 values are bounds (>, <)")]
    assert len(said) == 1
    # A bound and a number are no contradiction.
    assert found.remarks[-1].endswith("2 rows in all; 0 of them with different targets")
    plain = read_molecules(table(tmp_path / "u.csv", ["CC,1.5", "CCC,3"]))
    assert plain.graphs.target_bounds is None
    assert not any("bounds" in text for text in plain.remarks)


def test_bounds_follow_their_complexes(
    bounded: CellComplex, assert_equal: Callable[[CellComplex, CellComplex], None]
) -> None:
    chosen = bounded[[4, 0, 2]]
    assert chosen.target_bounds is not None
    assert chosen.target_bounds.flatten().tolist() == [1, 0, -1]
    for changed in (chosen.restrict([0]), chosen.skeleton(1), chosen.to("cpu"), lift(chosen)):
        assert torch.equal(changed.target_bounds, chosen.target_bounds)
    one = bounded[1]
    assert_equal(from_networkx(to_networkx(one)), one)
    assert torch.equal(lift(to_networkx(one)).target_bounds, one.target_bounds)
    assert_equal(Batch.from_data_list(to_pyg(bounded)).complexes, bounded)
    mixed = lift([bounded[1], replace(bounded[0], target_bounds=None)])
    assert mixed.target_bounds is not None
    assert mixed.target_bounds.flatten().tolist() == [1, 0]
    assert bounded.exact_targets is not None
    assert bounded.exact_targets.isnan().flatten().tolist() == [i % 3 > 0 for i in range(10)]


def test_bounds_are_stored_and_files_without_them_keep_their_version(
    bounded: CellComplex,
    tmp_path: Path,
    assert_equal: Callable[[CellComplex, CellComplex], None],
) -> None:
    path = tmp_path / "set.safetensors"
    for complexes, version in ((bounded, "2"), (replace(bounded, target_bounds=None), "1")):
        complexes.save(path)
        assert_equal(CellComplex.load(path), complexes)
        with safe_open(path, framework="pt") as file:
            assert file.metadata()["version"] == version
            assert ("target_bounds" in file.keys()) == (version == "2")  # noqa: SIM118


def test_bounds_that_do_not_fit_are_refused(bounded: CellComplex, tmp_path: Path) -> None:
    path = tmp_path / "set.safetensors"
    bounded.save(path)
    tensors, metadata = load_file(path), {"format": "cell-complex", "num_complexes": "10"}
    for changed, reason in (
        (tensors["target_bounds"] + 5, "must be -1, 0 or 1"),
        (tensors["target_bounds"][:3], r"must have the shape of targets, \(10, 1\), got \(3, 1\)"),
        (tensors["target_bounds"].float(), "must be int8, got torch.float32"),
    ):
        save_file({**tensors, "target_bounds": changed}, path, {**metadata, "version": "2"})
        with pytest.raises(DataError, match=f"{path.name}: target_bounds {reason}"):
            CellComplex.load(path)
    with pytest.raises(InputError, match="target_bounds need targets that are values"):
        replace(bounded, targets=None)
    with pytest.raises(InputError, match="target_bounds need targets that are values"):
        replace(bounded, targets=torch.zeros(10, 1, dtype=torch.int64))


def test_only_the_wrong_side_of_a_bound_costs_something() -> None:
    random = np.random.default_rng(0)
    targets = random.normal(20.0, 5.0, (60, 2)).astype(np.float32)
    targets[::7, 0] = np.nan
    bounds = random.integers(-1, 2, (60, 2)).astype(np.int8)
    complexes = replace(
        lift(["CC"] * 60), targets=torch.tensor(targets), target_bounds=torch.tensor(bounds)
    )
    task = task_of(complexes, torch.arange(60))
    outputs = torch.tensor(random.normal(size=(60, 2)), dtype=torch.float32, requires_grad=True)
    loss = task.loss(outputs, complexes.targets, bounds=complexes.target_bounds)  # type: ignore[arg-type]
    loss.backward()

    wide, known = targets.astype(np.float64), ~np.isnan(targets)
    scaled = (wide - np.nanmean(wide, 0)) / np.nanstd(wide, 0)
    error = outputs.detach().double().numpy() - scaled
    right_side = ((bounds > 0) & (error > 0)) | ((bounds < 0) & (error < 0))
    counted = np.where(right_side | ~known, 0.0, error)
    assert float(loss.detach()) == pytest.approx((counted**2).sum() / known.sum(), rel=1e-5)
    assert outputs.grad is not None
    np.testing.assert_allclose(outputs.grad.numpy(), 2 * counted / known.sum(), atol=1e-6)
    # A step against the gradient raises what is below a lower bound, and moves nothing beyond it.
    below = known & (bounds > 0) & (error < 0)
    assert (outputs.grad.numpy()[below] < 0).all()
    assert (outputs.grad.numpy()[right_side] == 0).all()


def test_without_bounds_the_loss_has_the_same_bits() -> None:
    complexes = replace(lift(["CC"] * 60), targets=torch.randn(60, 1))
    task, outputs = task_of(complexes, torch.arange(60)), torch.randn(60, 1)
    assert complexes.targets is not None
    plain = task.loss(outputs, complexes.targets)
    none = torch.zeros(60, 1, dtype=torch.int8)
    assert float(plain) == float(task.loss(outputs, complexes.targets, bounds=none))


def test_metrics_and_scores_are_those_of_the_exact_values(tmp_path: Path) -> None:
    rows = [f"{'C' * n},{('', '>', '<')[n % 3]}{n}" for n in range(1, 61)]
    source = table(tmp_path / "t.csv", rows)
    folder = tmp_path / "m"
    assert run_words(["train", str(source), "--out", str(folder), *SMALL]) == 0
    out = tmp_path / "out.csv"
    assert run_words(["predict", str(folder), str(source), "--out", str(out)]) == 0
    lines = [line.split(",") for line in out.read_text().splitlines()[1:]]
    splits = json.loads((folder / "splits.json").read_text())
    reached = json.loads((folder / "config.json").read_text())["provenance"]["reached"]
    for name in ("train", "validation", "test"):
        exact = [lines[i] for i in splits[name] if lines[i][1][0] not in "<>"]
        known, guessed = [float(row[1]) for row in exact], [float(row[2]) for row in exact]
        assert 0 < len(known) < len(splits[name])
        found = reached[name]["metrics"]
        assert found["rmse"] == pytest.approx(root_mean_squared_error(known, guessed), rel=1e-4)
        assert found["mae"] == pytest.approx(mean_absolute_error(known, guessed), rel=1e-4)
        assert found.get("r2", 0) == pytest.approx(
            r2_score(known, guessed) if "r2" in found else 0, rel=1e-3
        )


def test_predictions_for_bounds_are_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = table(tmp_path / "t.csv", [f"{'C' * n},{n + 0.5}" for n in range(1, 31)])
    assert run_words(["train", str(source), "--out", str(tmp_path / "m"), *SMALL]) == 0
    new = table(tmp_path / "new.csv", ["CCO,1", "CCC,>3", "CCN,< 4", "CO,many"])
    capsys.readouterr()
    assert run_words(["predict", str(tmp_path / "m"), str(new), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["metrics"]
    assert (found["rows"], found["bounds"], found["unknown_targets"]) == (1, 2, 1)
    assert run_words(["predict", str(tmp_path / "m"), str(new)]) == 0
    assert "2 values are bounds (>, <) and are not counted" in capsys.readouterr().err


def test_held_out_molecules_of_which_only_bounds_are_known_cannot_be_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ["train"] * 20 + ["validation"] * 5 + ["test"] * 5
    rows = [f"{'C' * n},{'>' if n > 20 else ''}{n},{part}" for n, part in enumerate(parts, 1)]
    source = table(tmp_path / "t.csv", rows, "smiles,y,set")
    words = ["train", str(source), "--split-column", "set", "--out", str(tmp_path / "m"), *SMALL]
    assert run_words(words) == 2
    assert "all targets of the 5 validation graphs are bounds (>, <)" in capsys.readouterr().err


def test_bounds_teach() -> None:
    targets, bounds = torch.zeros(40, 1), torch.zeros(40, 1, dtype=torch.int8)
    targets[::2], bounds[::2] = 4.0, 1  # of one kind of graph only a lower bound is known
    graphs = replace(lift(["CCCCCC", "OOO"] * 20), targets=targets, target_bounds=bounds)
    model = train(graphs, training={"epochs": 40}, network={"hidden": (4, 4), "heads": (1, 1)})
    found = predict_complexes(model, graphs[:2]).values.flatten().tolist()
    assert found[0] > 3.0
    assert found[1] < 2.0
