"""A random forest on Morgan fingerprints, the usual baseline of chemists."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import DataError
from cell_attention.models.fitting import FoldTask
from cell_attention.models.settings import Settings
from cell_attention.topology.complex import CellComplex

RADIUS, BITS, TREES = 2, 2048, 500
"""Radius and number of bits of the fingerprints, number of trees of the forest."""


class ForestFitter:
    """A random forest that predicts probabilities or values; any metric can score it."""

    def __init__(self, name: str = "forest") -> None:
        self.name = name

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Accept every task; whether there are molecules is checked when they are read."""

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Return the score on the held-out molecules."""
        complexes, fold, held = task.complexes, task.fold, torch.tensor(task.fold.held_out)
        what = task.settings.task_on(complexes, fold.rest)
        what.require_score(complexes, "held-out", held)
        guessed = forest_predictions(
            complexes, task.smiles(), train=fold.rest, held_out=fold.held_out, seed=task.seed
        )
        known = cast(Tensor, complexes.exact_targets)[held]
        found: dict[str, Any] = {"score": [what.score_of(guessed, known)]}
        if task.settings.columns:
            found["columns"] = what.column_scores(guessed, known)
        return found


def morgan(smiles: Sequence[str]) -> NDArray[np.uint8]:
    """Return (molecules, BITS) zeros and ones: which circular neighbourhoods occur."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    with rdBase.BlockLogs():
        found = [generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in smiles]
    return np.stack(found).astype(np.uint8)


def forest_predictions(
    complexes: CellComplex,
    smiles: Sequence[str],
    *,
    train: Sequence[int],
    held_out: Sequence[int],
    seed: tuple[int, ...],
) -> Tensor:
    """Return (held-out graphs, ·) probabilities of classes or labels, or values, depending on the
    targets.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if complexes.targets is None or len(smiles) != len(complexes):
        raise DataError("model 'forest' needs targets, and one SMILES per graph")
    bits, targets = morgan(smiles), complexes.targets.numpy()
    state = int(np.random.default_rng(seed).integers(2**31))
    train, held_out = list(train), list(held_out)
    if not complexes.targets.is_floating_point():
        classifier = RandomForestClassifier(TREES, random_state=state)
        classifier.fit(bits[train], targets[train])
        found = np.zeros((len(held_out), int(targets.max()) + 1))
        found[:, classifier.classes_] = classifier.predict_proba(bits[held_out])
        return torch.from_numpy(found)
    columns = []
    for column in targets.reshape(len(targets), -1).T:  # of labels, a mean is a probability
        known = [graph for graph in train if not np.isnan(column[graph])]
        if not known:  # such a column is not scored
            columns.append(np.full(len(held_out), np.nan))
            continue
        forest = RandomForestRegressor(TREES, random_state=state, max_features=1 / 3)
        columns.append(forest.fit(bits[known], column[known]).predict(bits[held_out]))
    return torch.from_numpy(np.stack(columns, axis=1))
