"""What is explained: networks or models, and graphs with the molecules behind them."""

from dataclasses import dataclass
from typing import Any

from rdkit import Chem
from torch import nn

from cell_attention.data.dataset import GRAPH_POLYGON
from cell_attention.data.lifting import is_molecule, lift
from cell_attention.data.molecules.features import Featuriser, featurise
from cell_attention.data.molecules.molecule import MoleculeError, as_molecule
from cell_attention.data.molecules.rebuild import rebuilt
from cell_attention.errors import InputError
from cell_attention.inference.model_folder import Model
from cell_attention.inference.rows import molecule_features
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.polygons import attach_polygons
from cell_attention.topology.readers import graph_reader, listed_graphs

Explained = nn.Module | Model
"""A network, or a trained model, which also knows what its numbers mean."""


@dataclass(frozen=True)
class Subjects:
    """Graphs, ready for the network."""

    complexes: CellComplex
    molecules: tuple[Chem.Mol | None, ...]
    """Atom i is node i of its graph; None where a graph is no molecule, or not known to be one."""


def members_of(network: object) -> tuple[nn.Module, ...]:
    """The networks whose mean is predicted."""
    if isinstance(network, Model):
        return network.members
    if not isinstance(network, nn.Module):
        kind = type(network).__name__
        raise InputError(f"network must be a network or a Model, got {kind}")
    return (network,)


def subjects_of(network: Explained, graphs: Any) -> Subjects:
    """Anything that `lift` takes; texts are molecules."""
    given, molecules = separated(graphs)
    if molecules is not None:
        return _molecules(network, molecules)
    if isinstance(given, CellComplex):
        complexes = given
    elif isinstance(carried := getattr(given, "complexes", None), CellComplex):
        complexes = carried  # by a loader of lifted graphs
    else:
        complexes = lift(given, max_polygon_of(network))
    return Subjects(complexes, molecules_behind(network, complexes))


def separated(graphs: Any) -> tuple[Any, list[Chem.Mol] | None]:
    """The same graphs, and the molecules that they are where all of them are molecules."""
    listed = [graphs] if is_molecule(graphs) else None
    if listed is None and graph_reader(graphs) is None:
        listed = listed_graphs(graphs)
    if not listed or not all(map(is_molecule, listed)):
        return graphs if listed is None else listed, None
    try:
        return listed, [as_molecule(one) for one in listed]
    except MoleculeError as error:
        raise InputError(f"graphs: {error}") from None


def _molecules(network: Explained, molecules: list[Chem.Mol]) -> Subjects:
    """With the features that a model was trained on; a network alone has the full ones."""
    features = molecule_features(network) if isinstance(network, Model) else Featuriser()
    made = featurise(molecules, features)
    return Subjects(attach_polygons(made.graphs, max_polygon_of(network)), tuple(molecules))


def max_polygon_of(network: Explained) -> int:
    """Edges of the largest polygon that a network was made for."""
    config = getattr(network, "config", None)
    return config.max_polygon if isinstance(config, NetworkConfig) else GRAPH_POLYGON


def outputs_of(network: Explained) -> int | None:
    """How many outputs a network has, where it says so."""
    found = getattr(network, "outputs", None)
    return found if isinstance(found, int) else None


def molecules_behind(network: Explained, complexes: CellComplex) -> tuple[Chem.Mol | None, ...]:
    """Rebuilt from the elements and bond types of TU sets, where a model knows them."""
    known = network.featuriser if isinstance(network, Model) else {}
    if not {"elements", "bonds"} <= known.keys():
        return (None,) * len(complexes)
    return tuple(rebuilt(graph, known, strict=False) for graph in complexes)
