"""What is explained: networks or models, and graphs with the molecules behind them."""

from dataclasses import dataclass
from typing import Any

from rdkit import Chem

from cell_attention.data.featurise import Featuriser, featurise
from cell_attention.data.lifting import is_molecule
from cell_attention.data.molecules import MoleculeError, as_molecule
from cell_attention.data.rebuild import rebuilt
from cell_attention.errors import InputError
from cell_attention.learn.checkpoint import Model
from cell_attention.learn.streaming import molecule_features
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.lifting import attach_polygons

Explained = CellAttentionNetwork | Model
"""A network, or a trained model, which also knows what its numbers mean."""


@dataclass(frozen=True)
class Subjects:
    """Graphs, ready for the network."""

    complexes: CellComplex
    molecules: tuple[Chem.Mol | None, ...]
    """Atom i is node i of its graph; None where a graph is no molecule, or not known to be one."""


def members_of(network: Explained) -> tuple[CellAttentionNetwork, ...]:
    """The networks whose mean is predicted."""
    return (network,) if isinstance(network, CellAttentionNetwork) else network.members


def subjects_of(network: Explained, graphs: Any) -> Subjects:
    """Anything that `lift` takes; texts are molecules."""
    listed = [graphs] if is_molecule(graphs) else graphs
    if isinstance(listed, list | tuple) and listed and all(map(is_molecule, listed)):
        return _molecules(network, listed)
    first = members_of(network)[0]
    complexes = first.complexes_of(graphs)
    return Subjects(complexes, molecules_behind(network, complexes))


def _molecules(network: Explained, listed: "list[Any] | tuple[Any, ...]") -> Subjects:
    """With the features that a model was trained on; a network alone has the full ones."""
    try:
        molecules = [as_molecule(one) for one in listed]
    except MoleculeError as error:
        raise InputError(f"graphs: {error}") from None
    features = molecule_features(network) if isinstance(network, Model) else Featuriser()
    made = featurise(molecules, features)
    longest = members_of(network)[0].config.max_polygon
    return Subjects(attach_polygons(made.graphs, longest), tuple(molecules))


def molecules_behind(network: Explained, complexes: CellComplex) -> tuple[Chem.Mol | None, ...]:
    """Rebuilt from the elements and bond types of TU sets, where a model knows them."""
    known = network.featuriser if isinstance(network, Model) else {}
    if not {"elements", "bonds"} <= known.keys():
        return (None,) * len(complexes)
    return tuple(rebuilt(graph, known, strict=False) for graph in complexes)
