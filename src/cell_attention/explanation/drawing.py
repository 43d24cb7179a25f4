"""Where the cells of one graph are drawn, and the labels of its nodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem, rdBase
from rdkit.Chem import rdDepictor

from cell_attention.errors import InputError
from cell_attention.explanation.layout import Points, laid_out
from cell_attention.explanation.scaffold_cores import Core
from cell_attention.topology.complex import CellComplex

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Drawing:
    """One graph on paper; x goes to the right and y down, an edge is about 1 long."""

    points: Points
    """(N, 2)."""
    edges: Integers
    """(E, 2) nodes of every edge."""
    polygons: tuple[tuple[int, ...], ...]
    """Nodes round every polygon."""
    labels: tuple[tuple[str, str, str] | None, ...]
    """Text before, on and after every node: for atoms hydrogens, element and charge; empty for
    carbon with bonds."""
    orders: tuple[float, ...]
    """Bond order of every edge; 0 if it is not a bond, or one of another kind."""
    wedges: tuple[tuple[int, int, bool], ...]
    """(edge, atom at its narrow end, whether it comes towards the reader) of every wedge."""
    molecule: Chem.Mol | None
    """The molecule with its two-dimensional coordinates."""


def drawing_of(
    graph: CellComplex, molecule: Chem.Mol | None = None, core: Core | None = None
) -> Drawing:
    """Lay out one graph: as its molecule, or by its distances.

    core: the scaffold of the molecule, to lay it on.
    """
    if len(graph) != 1:
        raise InputError(f"expected one graph, got {len(graph)}; select one, as in graphs[0]")
    edges = graph.edge_nodes.cpu().numpy().T
    polygons = tuple(map(tuple, cycles(graph)))
    if molecule is None:
        points = laid_out(graph.num_nodes, edges.T)
        silent = (None,) * graph.num_nodes
        return Drawing(points, edges, polygons, silent, (0.0,) * len(edges), (), None)
    flat, kekulised = _flattened(molecule, core)
    places = flat.GetConformer().GetPositions()[:, :2] * (1.0, -1.0)
    bonds = [kekulised.GetBondBetweenAtoms(int(u), int(v)) for u, v in edges]
    length = [np.linalg.norm(places[u] - places[v]) for u, v in edges]
    points = places / (np.mean(length) if length else 1.5)
    orders = tuple(_order(bond) for bond in bonds)
    labels = tuple(_label(atom, _leans_left(points, atom)) for atom in flat.GetAtoms())
    wedges = tuple(
        (edge, bond.GetBeginAtomIdx(), bond.GetBondDir() == Chem.BondDir.BEGINWEDGE)
        for edge, bond in enumerate(flat.GetBondBetweenAtoms(int(u), int(v)) for u, v in edges)
        if bond.GetBondDir() in (Chem.BondDir.BEGINWEDGE, Chem.BondDir.BEGINDASH)
    )
    return Drawing(points, edges, polygons, labels, orders, wedges, flat)


def cycles(graph: CellComplex) -> list[list[int]]:
    """Nodes round every polygon."""
    found: list[list[int]] = [[] for _ in range(graph.num_polygons)]
    for node, polygon in graph.polygon_nodes.T.tolist():
        found[polygon].append(node)
    return found


def _flattened(molecule: Chem.Mol, core: Core | None) -> tuple[Chem.Mol, Chem.Mol]:
    """Add plane coordinates; also return a copy with single and double bonds if possible."""
    flat = Chem.Mol(molecule)
    with rdBase.BlockLogs():
        flat.UpdatePropertyCache(strict=False)
        if core is None or not core.place(flat):
            rdDepictor.Compute2DCoords(flat, canonOrient=True)
        kekulised = Chem.Mol(flat)
        Chem.WedgeMolBonds(flat, flat.GetConformer())
        try:
            Chem.Kekulize(kekulised, clearAromaticFlags=True)
        except (ValueError, RuntimeError):  # rings that RDKit cannot kekulise
            kekulised = flat
    return flat, kekulised


def _order(bond: Any) -> float:
    return _ORDERS.get(bond.GetBondType(), 0.0)


def _leans_left(points: Points, atom: Any) -> bool:
    """Whether an atom's bonds go to the right, so that its hydrogens are written on the left."""
    near = [other.GetIdx() for other in atom.GetNeighbors()]
    return bool(near) and float((points[near] - points[atom.GetIdx()])[:, 0].sum()) > 0.1


def _label(atom: Any, left: bool) -> tuple[str, str, str] | None:
    symbol, charge = atom.GetSymbol(), atom.GetFormalCharge()
    isotope, hydrogens = atom.GetIsotope(), atom.GetTotalNumHs()
    if symbol == "C" and not charge and not isotope and atom.GetDegree():
        return None
    many = "" if hydrogens < 2 else str(hydrogens).translate(_SMALL)
    sign = "" if not charge else ("⁺" if charge > 0 else "⁻")
    size = "" if abs(charge) < 2 else str(abs(charge)).translate(_RAISED)
    mark = str(isotope).translate(_RAISED) if isotope else ""
    shell = f"H{many}" if hydrogens else ""
    return (shell + mark, symbol, size + sign) if left else (mark, symbol, shell + size + sign)


_ORDERS = {
    Chem.BondType.SINGLE: 1.0,
    Chem.BondType.AROMATIC: 1.5,
    Chem.BondType.DOUBLE: 2.0,
    Chem.BondType.TRIPLE: 3.0,
}
_SMALL = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
