"""What the labels of TU sets of molecules mean, as the sets' own descriptions list it.

The codes differ from set to set.
"""

from typing import Any

_TRIPLE_DOUBLE = ("triple", "double", "single", "aromatic")
CODES: dict[str, tuple[str, tuple[str, ...]]] = {
    "MUTAG": ("C N O F I Cl Br", ("aromatic", "single", "double", "triple")),
    "PTC_MM": ("In P O N Na C Cl S Br F As K B Cu Zn I Ba Sn Pb Ca", _TRIPLE_DOUBLE),
    "PTC_MR": ("In P O N Na C Cl S Br F K Cu Zn I Ba Sn Pb Ca", _TRIPLE_DOUBLE),
    "PTC_FM": (
        "In P C O N Cl S Br Na F As K Cu I Ba Sn Pb Ca", ("triple", "single", "double", "aromatic")
    ),
    "PTC_FR": ("In P O N Na C Cl S Br F As K Cu Zn I Sn Pb Te Ca", _TRIPLE_DOUBLE),
}  # fmt: skip
"""Element of node label 0, 1, …; type of edge label 0, 1, …"""


def codes_of(name: str, columns: dict[str, Any]) -> dict[str, Any]:
    """Return `elements` and `bonds`: the meaning of a set's one-hot columns; empty if unknown.

    columns: the labels that have a column, as `read_tu` records them.
    """
    if name not in CODES or "node_labels" not in columns or "edge_labels" not in columns:
        return {}
    elements, bonds = CODES[name][0].split(), CODES[name][1]
    (nodes, *more_nodes), (edges, *more_edges) = columns["node_labels"], columns["edge_labels"]
    if more_nodes or more_edges or max(nodes) >= len(elements) or max(edges) >= len(bonds):
        return {}  # another set of the same name
    return {
        "elements": [elements[code] for code in nodes],
        "bonds": [bonds[code] for code in edges],
    }
