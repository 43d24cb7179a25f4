"""The public `lift`: that of `topology`, which here also takes RDKit molecules and SMILES."""

import sys
from typing import Any

from cell_attention.arguments import checked
from cell_attention.data.dataset import GRAPH_POLYGON, MOLECULE_POLYGON
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.graphs import EdgeMerge
from cell_attention.topology.lifting import lift as lift_graphs
from cell_attention.topology.limits import LIMITS, Limits
from cell_attention.topology.readers import graph_reader, listed_graphs


@checked
def lift(
    graphs: Any,
    max_polygon: int | None = None,
    *,
    edge_merge: EdgeMerge | None = None,
    degrees: int | None = None,
    limits: Limits = LIMITS,
) -> CellComplex:
    """Lift graphs to cell complexes: their nodes, their edges, and a polygon per chordless cycle.

    graphs: a PyG `Data`, `Batch` or data set, a networkx graph, a scipy adjacency matrix, an RDKit
        molecule, a SMILES string, a CellComplex (its polygons are searched again), or a sequence of
        these.
    max_polygon: longest chordless cycle that becomes a polygon (R in the paper), at least 3; 6 by
        default, 8 if all graphs are molecules.
    edge_merge: how to merge the features of an edge whose two directions disagree: their "mean",
        the "first" one listed, or None to raise an error.
    degrees: number of columns of the one-hot degrees that become the features of graphs without
        any; by default PyG graphs get the largest degree and one more, at most 64, as TU sets do,
        and other graphs none.
    limits: how large the complex of one graph may grow.
    """
    given, molecules = _without_molecules(graphs)
    usual = MOLECULE_POLYGON if molecules else GRAPH_POLYGON
    longest = usual if max_polygon is None else max_polygon
    return lift_graphs(given, longest, edge_merge=edge_merge, degrees=degrees, limits=limits)


def _without_molecules(graphs: Any) -> tuple[Any, bool]:
    """Turn molecules into complexes of atoms and bonds; also say whether all are molecules."""
    if is_molecule(graphs):
        return _molecule_graphs([graphs]), True
    if graph_reader(graphs) is not None:
        return graphs, False
    listed = listed_graphs(graphs)
    if listed is None:
        return graphs, False
    if listed and all(map(is_molecule, listed)):
        return _molecule_graphs(listed), True
    return [_molecule_graphs([item]) if is_molecule(item) else item for item in listed], False


def listed_molecules(graphs: Any) -> list[Any] | None:
    """Return one molecule or a sequence of them as a list; None if anything else is in it."""
    if is_molecule(graphs):
        return [graphs]
    listed = None if graph_reader(graphs) is not None else listed_graphs(graphs)
    return listed if listed and all(map(is_molecule, listed)) else None


def is_molecule(thing: Any) -> bool:
    """Whether this is an RDKit molecule or a text, which is read as SMILES or InChI."""
    chem = sys.modules.get("rdkit.Chem")
    return isinstance(thing, str) or (chem is not None and isinstance(thing, chem.Mol))


def _molecule_graphs(molecules: list[Any]) -> CellComplex:
    from cell_attention.data.molecules.features import (
        molecule_graphs,  # RDKit takes a while to import
    )

    return molecule_graphs(molecules)
