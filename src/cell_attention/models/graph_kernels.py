"""Graph kernels of GraKeL with a support vector machine; inner cross-validation chooses its C."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cell_attention.errors import InputError
from cell_attention.models.fitting import FoldTask
from cell_attention.models.settings import Settings
from cell_attention.topology.complex import CellComplex
from cell_attention.training.tasks import require_classes

COSTS = tuple(10.0**power for power in range(-3, 4))
"""Values of C that the inner folds choose from."""
INNER_FOLDS = 5
GRAPHLETS = 500
"""Number of triples of nodes that are drawn per graph."""
WALKED = 1000
"""Largest number of graphs for the random walk kernel, which compares every pair of them."""


class KernelFitter:
    """A support vector machine on a graph kernel."""

    def __init__(self, name: str) -> None:
        self.name = name

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Require classes, accuracy as the metric, GraKeL, and few enough graphs."""
        require_classes(self.name, complexes, settings.metric)
        require_kernel(self.name, complexes)

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Return accuracy in percent on the held-out graphs, and C, chosen without them."""
        fold = task.fold
        return kernel_score(
            self.name, task.complexes, train=fold.rest, held_out=fold.held_out, seed=task.seed
        )


def kernel_score(
    name: str,
    complexes: CellComplex,
    *,
    train: Sequence[int],
    held_out: Sequence[int],
    seed: tuple[int, ...],
) -> dict[str, Any]:
    """Return accuracy in percent on the held-out graphs, and C, which was chosen without them."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    targets = require_classes(name, complexes).numpy()
    known, unknown = targets[list(train)], targets[list(held_out)]
    smallest = min(count for count in np.bincount(known) if count)
    if smallest < 2:
        raise InputError(f"model {name!r} needs 2 training graphs of every class, got {smallest}")
    own, others = _matrices(name, complexes, train=train, held_out=held_out, seed=seed)
    search = GridSearchCV(
        SVC(kernel="precomputed", cache_size=500),
        {"C": COSTS},
        cv=StratifiedKFold(min(INNER_FOLDS, smallest), shuffle=True, random_state=seed[0]),
    )
    search.fit(own, known)
    score = 100.0 * float((search.predict(others) == unknown).mean())
    return {"score": [score], "cost": search.best_params_["C"]}


def _matrices(
    name: str,
    complexes: CellComplex,
    *,
    train: Sequence[int],
    held_out: Sequence[int],
    seed: tuple[int, ...],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return normalised kernel values: training × training graphs, and held-out × training."""
    kernel = _kernel(name, complexes, seed[0])
    graphs = as_grakel(complexes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GraKeL warns about graphs without edges
        own = kernel.fit_transform([graphs[n] for n in train])
        others = kernel.transform([graphs[n] for n in held_out])
    # A graph without any feature of the kernel has similarity 0 to every graph, itself included.
    return np.nan_to_num(np.asarray(own, np.float64)), np.nan_to_num(np.asarray(others, np.float64))


def require_kernel(name: str, complexes: CellComplex) -> None:
    """Refuse the model if GraKeL is missing or there are too many graphs."""
    _grakel(name)
    if name == "random-walk" and len(complexes) > WALKED:
        raise InputError(
            f"model 'random-walk' compares all pairs and takes at most {WALKED:,} graphs, "
            f"got {len(complexes):,}; use another model"
        )


def _grakel(name: str) -> Any:
    try:
        import grakel
    except ImportError:
        raise InputError(
            f"model {name!r} needs GraKeL: pip install 'cell-attention[bench]'"
        ) from None
    return grakel


def compared(name: str, complexes: CellComplex) -> NDArray[np.float64]:
    """Return the normalised kernel values of all pairs of graphs."""
    everyone = range(len(complexes))
    return _matrices(name, complexes, train=everyone, held_out=everyone[:1], seed=(0,))[0]


def _kernel(name: str, complexes: CellComplex, seed: int) -> Any:
    grakel = _grakel(name)
    if name == "wl":
        return grakel.WeisfeilerLehman(n_iter=5, normalize=True)
    if name == "propagation":
        return grakel.Propagation(normalize=True, random_state=seed)
    if name == "graphlet":
        # Deviation: in a graph without triangles, all connected graphlets are paths. Triples of
        # nodes also count the unconnected ones, as Shervashidze et al. 2009 do.
        few = {"n_samples": GRAPHLETS}
        return grakel.GraphletSampling(k=3, normalize=True, sampling=few, random_state=seed)
    # Common walks of two graphs are walks of their product, whose eigenvalues are at most the
    # square of the largest degree: below the inverse of that the geometric series converges, and
    # not far below it long walks still count.
    largest = int(complexes.edge_nodes.flatten().bincount().max()) if complexes.num_edges else 0
    return grakel.RandomWalkLabeled(lamda=1.0 / (largest**2 + 1), normalize=True)


def as_grakel(complexes: CellComplex) -> list[list[Any]]:
    """Return the adjacency matrix and node labels of every graph; equal features, equal label."""
    rows = torch.unique(complexes.node_features, dim=0, return_inverse=True)[1].numpy()
    nodes = _bounds(complexes.node_complex, len(complexes))
    edges = _bounds(complexes.edge_complex, len(complexes))
    ends = complexes.edge_nodes.numpy()
    graphs: list[list[Any]] = []
    for n in range(len(complexes)):
        first, last = nodes[n], nodes[n + 1]
        matrix = np.zeros((last - first, last - first), np.int64)
        tails, heads = ends[:, edges[n] : edges[n + 1]] - first
        matrix[tails, heads] = matrix[heads, tails] = 1
        graphs.append([matrix, {i: int(rows[first + i]) for i in range(last - first)}])
    return graphs


def _bounds(member: torch.Tensor, count: int) -> NDArray[np.int64]:
    """Return (count + 1,) the first cell of every complex, and the end."""
    sizes = member.bincount(minlength=count).numpy()
    return np.concatenate([[0], np.cumsum(sizes)])
