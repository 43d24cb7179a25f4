"""chemprop's own network, featuriser and training, as `chemprop train` has them by default, on our
folds (Yang et al. 2019; Heid et al. 2024).
"""

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from cell_attention.data.file_format import Kind
from cell_attention.errors import InputError
from cell_attention.models.fitting import FoldTask
from cell_attention.models.molecule_fitter import MoleculeFitter, random_state
from cell_attention.models.settings import Settings
from cell_attention.topology.complex import CellComplex
from cell_attention.training.tasks import task_of

EPOCHS, BATCH = 50, 64
"""Epochs and molecules per step of `chemprop train`."""
NORM = 100.0
"""What it divides the sum over atoms by."""
INNER_SHARE = 0.1
"""Share of the training molecules that choose the epoch where the fold has no inner validation
set."""


class ChempropFitter(MoleculeFitter):
    """Trains chemprop's network; the weights with the best validation loss predict."""

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Refuse the model where chemprop is not installed."""
        require_chemprop(self.name)

    def predictions(
        self, task: FoldTask, smiles: list[str], *, targets: NDArray[Any], kind: Kind
    ) -> Tensor:
        """Return (held-out molecules, ·) probabilities or values."""
        state, fold = random_state(task.seed), task.fold
        train, chosen = (fold.train, fold.validation) if fold.test else _halves(fold.train, state)
        rows = targets.reshape(len(targets), -1).astype(np.float64)
        sets = [
            molecule_dataset([smiles[place] for place in part], rows[list(part)])
            for part in (train, chosen, fold.held_out)
        ]
        classes = int(targets.max()) + 1 if kind == "classes" else 0
        with quiet_chemprop(), torch.random.fork_rng(devices=[]):
            network = fitted_network(*sets[:2], kind=kind, classes=classes, state=state)
            found = predicted(network, sets[2])
        if classes == 2:
            return torch.cat([1.0 - found, found], dim=1)
        # A value that only the validation molecules have is not learned: its mean is predicted.
        mean = task_of(task.complexes, torch.tensor(fold.rest), kind=kind).centre
        found = found.flatten(1)
        return found if mean is None else torch.where(found.isnan(), mean, found)


def require_chemprop(name: str) -> None:
    """Refuse the model if chemprop is missing or too old."""
    try:
        found = tuple(map(int, re.findall(r"\d+", version("chemprop"))[:2]))
    except PackageNotFoundError:
        found = ()
    if found < (2, 1):
        raise InputError(
            f"model {name!r} needs chemprop 2.1 or later: pip install 'cell-attention[chemprop]'"
        )


def _halves(train: Sequence[int], state: int) -> tuple[list[int], list[int]]:
    """Hold out some of the training molecules at random, at least one."""
    order = np.random.default_rng(state).permutation(np.asarray(train)).tolist()
    few = max(1, round(INNER_SHARE * len(order)))
    return order[few:], order[:few]


def molecule_dataset(smiles: Sequence[str], rows: NDArray[np.float64]) -> Any:
    """Return chemprop's data set of these molecules and their targets; it keeps what it reads."""
    from chemprop.data import MoleculeDatapoint, MoleculeDataset

    points = [MoleculeDatapoint.from_smi(text, row) for text, row in zip(smiles, rows, strict=True)]
    made = MoleculeDataset(points)
    made.cache = True
    return made


def fitted_network(train: Any, chosen: Any, *, kind: Kind, classes: int, state: int) -> Any:
    """Train on the first set and choose the epoch on the second; return the network."""
    from lightning import pytorch

    scale = None
    if kind == "values":
        scale = train.normalize_targets()
        chosen.normalize_targets(scale)
    torch.manual_seed(state)
    network = _network(train, scale, classes)
    order = torch.Generator().manual_seed(state)
    best = _best_weights()
    trainer = pytorch.Trainer(
        accelerator="cpu", devices=1, max_epochs=EPOCHS, callbacks=[best], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(network, _batches(train, shuffle=True, generator=order), _batches(chosen))
    if best.weights is not None:
        network.load_state_dict(best.weights)
    return network.eval()


@torch.no_grad()
def predicted(network: Any, dataset: Any) -> Tensor:
    """Return (molecules, ·) what a trained network predicts."""
    return torch.cat([network.predict_step(batch, 0) for batch in _batches(dataset)])


def _batches(dataset: Any, **more: Any) -> Any:
    from chemprop.data import collate_batch

    return DataLoader(dataset, BATCH, collate_fn=collate_batch, **more)


def _network(train: Any, scale: Any, classes: int) -> Any:
    """Build chemprop's network with its defaults: scaled values, more than two classes, or two
    classes and labels.
    """
    from chemprop import models, nn

    messages = nn.BondMessagePassing()
    outputs: dict[str, Any] = {"input_dim": messages.output_dim, "n_tasks": train.Y.shape[1]}
    if scale is not None:
        unscale = nn.UnscaleTransform.from_standard_scaler(scale)
        predictor = nn.RegressionFFN(**outputs, output_transform=unscale)
    elif classes > 2:
        predictor = nn.MulticlassClassificationFFN(n_classes=classes, **outputs)
    else:
        predictor = nn.BinaryClassificationFFN(**outputs)
    return models.MPNN(messages, nn.NormAggregation(norm=NORM), predictor)


def _best_weights() -> Any:
    """Return a callback that keeps the weights of the epoch with the lowest validation loss.

    chemprop writes them to a file, which could only be read back by unpickling it.
    """
    from lightning import pytorch

    class BestWeights(pytorch.Callback):  # type: ignore[misc]
        loss = float("inf")
        weights: dict[str, Tensor] | None = None

        def on_validation_end(self, trainer: Any, network: Any) -> None:
            loss = float(trainer.callback_metrics["val_loss"])
            if not trainer.sanity_checking and loss < self.loss:
                values = network.state_dict().items()
                self.loss, self.weights = loss, {name: value.clone() for name, value in values}

    return BestWeights()


@contextmanager
def quiet_chemprop() -> Iterator[None]:
    """Silence what Lightning and chemprop log and warn of within this block."""
    logs = [logging.getLogger(name) for name in ("lightning", "lightning.pytorch", "chemprop")]
    before = [log.level for log in logs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for log in logs:
            log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for log, level in zip(logs, before, strict=True):
                log.setLevel(level)
