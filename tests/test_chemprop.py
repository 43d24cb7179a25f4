"""chemprop as a rival: its own network and training, on our folds."""

import importlib.util
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cell_attention.data.splits.folds import Fold
from cell_attention.models import chemprop as rival
from cell_attention.models.registry import fitter
from learning import refused
from test_molecule_rivals import FOLD, TEXTS, fold_task

needed = pytest.mark.skipif(
    importlib.util.find_spec("chemprop") is None,
    reason="chemprop is not installed: pip install 'cell-attention[chemprop]'",
)


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rival, "EPOCHS", 3)


def guessed(targets: Tensor, kind: Any, fold: Fold = FOLD) -> Tensor:
    made: Any = fitter("chemprop")
    task = fold_task("chemprop", targets, fold=fold)
    found: Tensor = made.predictions(task, TEXTS, targets=targets.numpy(), kind=kind)
    return found


def test_where_it_is_missing_or_old_one_line_says_how_to_install_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise rival.PackageNotFoundError(name)

    source = tmp_path / "t.csv"
    source.write_text("smiles,size\n" + "".join(f"{text},{len(text) / 3}\n" for text in TEXTS))
    words = ["crossval", str(source), "--model", "chemprop", "--folds", "2"]
    for found in (missing, lambda name: "2.0.5", lambda name: "1.6.1"):
        monkeypatch.setattr(rival, "version", found)
        line = refused([*words, "--out", str(tmp_path / "run")], capsys)
        need = "model 'chemprop' needs chemprop 2.1 or later: pip install"
        assert line.endswith(f"{need} 'cell-attention[chemprop]'")
        assert not (tmp_path / "run").exists()
    words = ["train", str(source), "--model", "chemprop", "--out", str(tmp_path / "m")]
    assert "is not a network and cannot be saved" in refused(words, capsys)


def test_a_tenth_of_the_training_molecules_chooses_the_epoch() -> None:
    train = list(range(5, 45))
    rest, chosen = rival._halves(train, 3)
    assert len(chosen) == 4
    assert sorted([*rest, *chosen]) == train
    assert rival._halves(train, 3) == (rest, chosen) != rival._halves(train, 4)


@needed
def test_predictions_are_those_of_chemprops_own_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network with the same first weights, trained by hand as chemprop's page shows it."""
    from chemprop import data, models, nn
    from lightning import pytorch

    monkeypatch.chdir(tmp_path)
    values = np.sin(np.arange(40.0))[:, None]
    parts = FOLD.train, FOLD.validation, FOLD.test
    points = [
        [data.MoleculeDatapoint.from_smi(TEXTS[i], values[i]) for i in part] for part in parts
    ]
    train, chosen, held = (data.MoleculeDataset(part) for part in points)
    chosen.normalize_targets(train.normalize_targets())
    scaler = data.MoleculeDataset(points[0]).normalize_targets()
    torch.manual_seed(rival.random_state((7,)))
    network = models.MPNN(
        nn.BondMessagePassing(), nn.NormAggregation(norm=100.0),
        nn.RegressionFFN(output_transform=nn.UnscaleTransform.from_standard_scaler(scaler)),
    )  # fmt: skip
    order = torch.Generator().manual_seed(rival.random_state((7,)))
    loader = torch.utils.data.DataLoader(
        train, 64, shuffle=True, generator=order, collate_fn=data.collate_batch
    )
    saved = pytorch.callbacks.ModelCheckpoint(tmp_path, monitor="val_loss")
    with rival._quiet():
        trainer = pytorch.Trainer(
            accelerator="cpu", max_epochs=3, callbacks=[saved], logger=False,
            enable_progress_bar=False,
        )  # fmt: skip
        later = data.build_dataloader(chosen, shuffle=False)
        trainer.fit(network, loader, later)
        best = models.MPNN.load_from_checkpoint(saved.best_model_path)
        expected = trainer.predict(best, data.build_dataloader(held, shuffle=False))
    found = guessed(torch.from_numpy(values[:, 0]), "values")
    torch.testing.assert_close(found, torch.cat(expected))
    monkeypatch.setattr(rival, "EPOCHS", 1)
    assert not torch.allclose(guessed(torch.from_numpy(values[:, 0]), "values"), found)


@needed
def test_classes_labels_and_values_have_their_own_outputs(tmp_path: Path) -> None:
    size = len(FOLD.held_out)
    for count in (2, 3):
        chances = guessed(torch.arange(40) % count, "classes")
        assert chances.shape == (size, count)
        torch.testing.assert_close(chances.sum(1), torch.ones(size))
    labels = torch.stack([torch.arange(40.0) % 2, torch.arange(40.0) // 2 % 2], 1)
    labels[::3, 0] = labels[4:9, 1] = torch.nan
    chances = guessed(labels, "labels")
    assert chances.shape == (size, 2)
    assert bool(((chances > 0) & (chances < 1)).all())
    values = 1000.0 + torch.stack([torch.randn(40), 5 * torch.randn(40)], 1)
    values[::3, 0] = values[4:9, 1] = torch.nan
    found = guessed(values, "values")
    assert found.shape == (size, 2)
    assert bool((found - 1000.0).abs().max() < 50.0)  # in the units of the targets
    values[list(FOLD.train), 1] = torch.nan  # known in the inner validation set alone
    found = guessed(values, "values")
    torch.testing.assert_close(found[:, 1], values[list(FOLD.rest), 1].nanmean().expand(size))


@needed
def test_a_seed_gives_the_same_bits_and_nothing_else_is_touched(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    targets = torch.arange(40.0).sin()
    levels = [logging.getLogger(name).level for name in ("lightning", "chemprop")]
    before = torch.get_rng_state()
    first = guessed(targets, "values")
    assert torch.equal(guessed(targets, "values"), first)
    assert torch.equal(torch.get_rng_state(), before)
    assert levels == [logging.getLogger(name).level for name in ("lightning", "chemprop")]
    assert not list(tmp_path.iterdir())
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


@needed
def test_without_an_inner_validation_set_the_held_out_molecules_choose_nothing() -> None:
    fold = Fold(FOLD.rest, FOLD.test)
    targets = torch.arange(40.0).sin()
    first = guessed(targets, "values", fold)
    assert first.shape == (len(FOLD.test), 1)
    other = targets.clone()
    other[list(FOLD.test)] = 100.0
    assert torch.equal(guessed(other, "values", fold), first)
