"""A random forest on Morgan fingerprints: what a chemist would try first."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import DataError
from cell_attention.topology.complex import CellComplex

RADIUS, BITS, TREES = 2, 2048, 500
"""Of the fingerprints, and of the forest."""


def morgan(smiles: Sequence[str]) -> NDArray[np.uint8]:
    """(molecules, BITS) which circular neighbourhoods occur."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    with rdBase.BlockLogs():
        found = [generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in smiles]
    return np.stack(found).astype(np.uint8)


def forest_predictions(
    complexes: CellComplex,
    smiles: Sequence[str],
    train: Sequence[int],
    held_out: Sequence[int],
    seed: tuple[int, ...],
) -> Tensor:
    """(held-out graphs, ·) probabilities of the classes or labels, or values; the targets say
    which.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if complexes.targets is None or len(smiles) != len(complexes):
        raise DataError("a random forest needs targets, and one SMILES per graph")
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
    for column in targets.reshape(len(targets), -1).T:  # zeros and ones: the share of the trees
        known = [graph for graph in train if not np.isnan(column[graph])]
        forest = RandomForestRegressor(TREES, random_state=state, max_features=1 / 3)
        columns.append(forest.fit(bits[known], column[known]).predict(bits[held_out]))
    return torch.from_numpy(np.stack(columns, axis=1))
