"""Learners of scikit-learn on tables of molecules: fingerprints or descriptors, the usual baselines
of chemists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.data.file_format import Kind
from cell_attention.models.fitting import FoldTask
from cell_attention.models.molecule_fitter import MoleculeFitter, random_state

RADIUS, BITS, TREES = 2, 2048, 500
"""Radius and number of bits of the fingerprints, number of trees of a forest."""

Learner = Callable[[int], Any]
"""Makes a learner from a random seed."""


@dataclass(frozen=True)
class TableModel:
    """A table of molecules, and the learner of every kind of target."""

    table: Callable[[Sequence[str]], NDArray[Any]]
    classes: Learner
    labels: Learner
    """Of one label; a regressor's mean over labels is a probability."""
    values: Learner


class TableFitter(MoleculeFitter):
    """Fits a learner of scikit-learn to a table of molecules; every target has its own."""

    def predictions(
        self, task: FoldTask, smiles: list[str], *, targets: NDArray[Any], kind: Kind
    ) -> Tensor:
        """Return (held-out molecules, ·) probabilities or values."""
        from threadpoolctl import threadpool_limits

        model, state = TABLES[self.name], random_state(task.seed)
        train, held_out = list(task.fold.rest), list(task.fold.held_out)
        table = model.table(smiles)
        with threadpool_limits(1):
            if kind == "classes":
                seen = _known_columns(table[train])
                learner = model.classes(state).fit(table[train][:, seen], targets[train])
                found = np.zeros((len(held_out), int(targets.max()) + 1))
                found[:, learner.classes_] = _chances(learner, table[held_out][:, seen])
                return torch.from_numpy(found)
            make = model.labels if kind == "labels" else model.values
            columns = []
            for column in targets.reshape(len(targets), -1).T:
                known = [row for row in train if not np.isnan(column[row])]
                if not known:  # nothing can be predicted, and no metric counts it
                    columns.append(np.full(len(held_out), np.nan))
                    continue
                seen = _known_columns(table[known])
                learner = make(state).fit(table[known][:, seen], column[known])
                columns.append(_guesses(learner, table[held_out][:, seen]))
            return torch.from_numpy(np.stack(columns, axis=1))


def _known_columns(table: NDArray[Any]) -> NDArray[np.int64]:
    """Return the columns with a known value; scikit-learn cannot bin those without any."""
    return np.flatnonzero(~np.isnan(table).all(0))


def _guesses(learner: Any, table: NDArray[Any]) -> NDArray[np.float64]:
    """Return values, or from a classifier the probability that a label is one."""
    if hasattr(learner, "predict_proba"):  # zero for a label that is never one in training
        found: NDArray[np.float64] = _chances(learner, table)[:, learner.classes_ == 1.0].sum(1)
    else:
        found = learner.predict(table)
    return found


def _chances(learner: Any, table: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probabilities of the classes in training; boosting adds a column to a lone one."""
    chances: NDArray[np.float64] = learner.predict_proba(table)
    return chances[:, : len(learner.classes_)]


def morgan(smiles: Sequence[str]) -> NDArray[np.uint8]:
    """Return (molecules, BITS) zeros and ones: which circular neighbourhoods occur."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    with rdBase.BlockLogs():
        found = [generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in smiles]
    return np.stack(found).astype(np.uint8)


def rdkit_table(smiles: Sequence[str]) -> NDArray[np.float64]:
    """Return (molecules, ·) all descriptors of RDKit, NaN where unknown."""
    return _rdkit_table(tuple(smiles))


@lru_cache(maxsize=1)  # the folds of a run share their molecules, and a thousand take seconds
def _rdkit_table(smiles: tuple[str, ...]) -> NDArray[np.float64]:
    from rdkit import Chem, rdBase

    from cell_attention.data.molecules.descriptors import ALL, descriptor_table

    with rdBase.BlockLogs():
        table = descriptor_table(map(Chem.MolFromSmiles, smiles), ALL)
    table.setflags(write=False)
    return table


def _forest_classifier(state: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(TREES, random_state=state)


def _forest_regressor(state: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(TREES, random_state=state, max_features=1 / 3)


def _boosting_classifier(state: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(early_stopping=False, random_state=state)


def _boosting_regressor(state: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(early_stopping=False, random_state=state)


_FOREST = (_forest_classifier, _forest_regressor, _forest_regressor)
_BOOSTING = (_boosting_classifier, _boosting_classifier, _boosting_regressor)
TABLES = {
    "forest": TableModel(morgan, *_FOREST),
    "forest-rdkit": TableModel(rdkit_table, *_FOREST),
    "boosting": TableModel(rdkit_table, *_BOOSTING),
}
"""The models by their names in the registry."""
