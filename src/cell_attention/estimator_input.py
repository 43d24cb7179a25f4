"""What the estimators take: X as graphs or molecules, y as classes or values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from cell_attention.data.dataset import GraphSet, Molecules
from cell_attention.data.lifting import is_molecule, lift
from cell_attention.errors import DataError, InputError
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import require_same_features
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.polygons import attach_polygons
from cell_attention.topology.readers import listed_graphs


def read_graphs(
    given: Any, max_polygon: int, descriptors: Sequence[str], *, degrees: int | None = None
) -> GraphSet:
    """Read and lift graphs; for molecules, also compute descriptors, and record what the feature
    columns mean.
    """
    things = _listed(given)
    if isinstance(things, CellComplex):
        return GraphSet("", attach_polygons(things, max_polygon), max_polygon=max_polygon)
    if not things:
        raise InputError("X must hold at least one graph, got 0 graphs")
    if not all(map(is_molecule, things)):
        return GraphSet("", lift(things, max_polygon, degrees=degrees), max_polygon=max_polygon)
    from cell_attention.data.molecules.features import Featuriser, featurise

    featuriser = Featuriser(descriptors=tuple(descriptors))
    made = featurise(things, featuriser)
    molecules = Molecules((), (), made.elements, made.bonds, ())
    complexes = attach_polygons(made.graphs, max_polygon)
    return GraphSet(
        "", complexes, featuriser=featuriser.record, molecules=molecules, max_polygon=max_polygon
    )


OnBadGraph = Literal["raise", "nan"]


@dataclass(frozen=True)
class Readable:
    """The graphs of X that can be read."""

    graphs: CellComplex
    rows: list[int]
    """Their rows in X."""
    count: int
    """Number of rows of X."""

    def spread(self, found: Any) -> Any:
        """Return numbers of these graphs as rows of X, with NaN in all others."""
        if len(self.rows) == self.count:
            return found
        whole = np.full((self.count, *found.shape[1:]), np.nan)
        whole[self.rows] = found
        return whole


def complexes_for(given: Any, model: Model, on_error: OnBadGraph = "raise") -> Readable:
    """Lift graphs as the fitted model needs them; refuse other features.

    on_error: "raise" an error for a graph that cannot be read, or "nan" to leave it out.
    """
    if on_error not in get_args(OnBadGraph):
        raise InputError(f"on_error must be 'raise' or 'nan', got {on_error!r}")

    def read(things: Any) -> CellComplex:
        descriptors = model.featuriser.get("descriptors", {}).get("names", ())
        degrees = model.sizes["node_features"]
        found = read_graphs(things, model.config.max_polygon, descriptors, degrees=degrees)
        require_same_features(model, found.featuriser, "X")
        return found.graphs

    things = _listed(given)
    try:
        graphs = read(things)
        return Readable(graphs, list(range(len(graphs))), len(graphs))
    except (DataError, InputError):
        if on_error == "raise" or isinstance(things, CellComplex) or not things:
            raise
    rows = [row for row, thing in enumerate(things) if _is_readable(thing, model)]
    if not rows:  # nothing, but with the features that the model reads
        return Readable(_nothing(), rows, len(things))
    return Readable(read([things[row] for row in rows]), rows, len(things))


def _nothing() -> CellComplex:
    """Return zero complexes, which a network reads whatever features it needs."""
    from torch_geometric.data import Data

    return lift([Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=1)])[:0]


def _is_readable(thing: Any, model: Model) -> bool:
    """Whether one graph can be read and lifted, whatever its features are."""
    try:
        read_graphs([thing], model.config.max_polygon, (), degrees=1)
    except (DataError, InputError):
        return False
    return True


def joined(given: Any, more: Any) -> tuple[list[Any], int]:
    """Return the graphs of two X as one, and the number of those of the second."""
    parts = [_listed(given), _listed(more)]
    if all(isinstance(part, CellComplex) for part in parts):
        return parts, len(parts[1])
    if any(isinstance(part, CellComplex) for part in parts):
        raise InputError("X and the X of eval_set must both be a CellComplex, or both lists")
    return [*parts[0], *parts[1]], len(parts[1])


def evaluation_pair(eval_set: Any) -> tuple[Any, Any]:
    """Return (X, y) of an evaluation set, which may be the only one of a list."""
    pair = eval_set[0] if isinstance(eval_set, list) and len(eval_set) == 1 else eval_set
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InputError("eval_set must be (X, y), or a list with one such pair")
    return pair


def weight_column(sample_weight: Any, graphs: int) -> Tensor:
    """Return (graphs,) weights."""
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("sample_weight must be numbers, one per graph") from None
    if weights.shape != (graphs,):
        raise InputError(f"sample_weight must be ({graphs},), got shape {weights.shape}")
    return torch.from_numpy(weights)


def _listed(given: Any) -> "list[Any] | CellComplex":
    """Return the graphs as a list; arrays and columns of a table give their entries."""
    if isinstance(given, CellComplex):
        return given
    if isinstance(given, str):
        raise InputError("X must be a sequence of graphs, got one text; put it into a list")
    if hasattr(given, "to_numpy"):
        given = given.to_numpy()
    if isinstance(given, np.ndarray):
        if given.dtype.kind in "biufc" or given.ndim == 0 or given.size != given.shape[0]:
            raise InputError(
                "X must be a sequence of graphs (SMILES, RDKit, PyG or networkx), got an array of "
                f"shape {given.shape} and type {given.dtype}"
            )
        return [str(item) if isinstance(item, np.str_) else item for item in given.ravel()]
    listed = listed_graphs(given)
    if listed is None:
        raise InputError(f"X must be a sequence of graphs, got {type(given).__name__}")
    return list(listed)


def required_targets(y: Any) -> Any:
    """Return y; refuse None in the words that scikit-learn asks for."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    return y


def class_column(y: Any) -> Any:
    """Return (graphs,) classes."""
    labels = np.asarray(required_targets(y))
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or not labels.size:
        raise DataError(f"y must be (graphs,) classes, got shape {labels.shape}")
    return labels


def value_columns(name: str, y: Any) -> Tensor:
    """Return (graphs, columns) values, NaN if unknown."""
    with np.errstate(over="ignore"):  # overflow becomes infinite and is refused below
        values = np.asarray(required_targets(y), dtype=np.float64).astype(np.float32)
    if values.ndim not in (1, 2) or np.isinf(values).any() or np.isnan(values).all():
        rule = "finite in float32 or NaN, and not all NaN"
        raise InputError(f"{name} must be (graphs,) or (graphs, columns), {rule}")
    return torch.from_numpy(values).reshape(len(values), -1)
