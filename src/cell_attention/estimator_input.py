"""What the estimators take: X as graphs or molecules, y as classes or values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

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


def complexes_for(given: Any, model: Model) -> CellComplex:
    """Lift graphs as the fitted model needs them; refuse other features."""
    descriptors = model.featuriser.get("descriptors", {}).get("names", ())
    found = read_graphs(
        given, model.config.max_polygon, descriptors, degrees=model.sizes["node_features"]
    )
    require_same_features(model, found.featuriser, "X")
    return found.graphs


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
