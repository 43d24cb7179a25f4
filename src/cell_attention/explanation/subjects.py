"""The input of an explanation: networks or models, and graphs with their molecules."""

from dataclasses import dataclass
from typing import Any

from rdkit import Chem
from torch import nn

from cell_attention.data.dataset import GRAPH_POLYGON
from cell_attention.data.lifting import is_molecule, lift
from cell_attention.data.molecules.features import Featuriser, featurise
from cell_attention.data.molecules.molecule import as_molecule
from cell_attention.data.molecules.rebuild import rebuilt
from cell_attention.errors import InputError, MoleculeError
from cell_attention.inference.chunks import molecule_features
from cell_attention.inference.model_folder import Model
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
    """Atom i is node i of its graph; None if a graph is not known to be a molecule."""


def members_of(network: object) -> tuple[nn.Module, ...]:
    """Return the networks of an ensemble, or the one network."""
    if isinstance(network, Model):
        return network.members
    if not isinstance(network, nn.Module):
        kind = type(network).__name__
        raise InputError(f"network must be a network or a Model, got {kind}")
    return (network,)


def temperatures_of(network: Explained) -> tuple[float, ...]:
    """Return the temperatures of a model; a network has none."""
    return network.temperatures if isinstance(network, Model) else ()


def subjects_of(network: Explained, graphs: Any) -> Subjects:
    """Read anything that `lift` takes; texts are molecules."""
    given, molecules = separated(graphs)
    if molecules is not None:
        return _molecules(network, molecules)
    if isinstance(given, CellComplex):
        complexes = given
    elif isinstance(carried := getattr(given, "complexes", None), CellComplex):
        complexes = carried  # in a batch of lifted graphs
    else:
        complexes = lift(given, max_polygon_of(network))
    return Subjects(complexes, molecules_behind(network, complexes))


def separated(graphs: Any) -> tuple[Any, list[Chem.Mol] | None]:
    """Return the same graphs, and their molecules if all of them are molecules."""
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
    """Featurise molecules as the model was trained; for a network, with the full features."""
    features = molecule_features(network) if isinstance(network, Model) else Featuriser()
    made = featurise(molecules, features)
    return Subjects(attach_polygons(made.graphs, max_polygon_of(network)), tuple(molecules))


def max_polygon_of(network: Explained) -> int:
    """Return the max_polygon of a network."""
    config = getattr(network, "config", None)
    return config.max_polygon if isinstance(config, NetworkConfig) else GRAPH_POLYGON


def outputs_of(network: Explained) -> int | None:
    """Return the number of outputs of a network, or None if it does not say."""
    found = getattr(network, "outputs", None)
    return found if isinstance(found, int) else None


def molecules_behind(network: Explained, complexes: CellComplex) -> tuple[Chem.Mol | None, ...]:
    """Rebuild molecules from the elements and bond types of TU sets, if the model knows them."""
    known = network.featuriser if isinstance(network, Model) else {}
    if not {"elements", "bonds"} <= known.keys():
        return (None,) * len(complexes)
    return tuple(rebuilt(graph, known, strict=False) for graph in complexes)


def is_traced(network: object) -> bool:
    """Whether a network has a trace of its layers; others are explained by gradients only."""
    return all(hasattr(network, name) for name in ("trace", "read_out", "logits"))
