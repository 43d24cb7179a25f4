"""Pictures and records of explanations: every cell drawn once, colours even, nothing unescaped."""

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
import torch
from rdkit import Chem

from cell_attention import CellAttentionNetwork, Model, NetworkConfig, lift, load_dataset
from cell_attention.data.molecules.features import Featuriser
from cell_attention.errors import InputError
from cell_attention.explanation import Picture, draw, explain
from cell_attention.explanation.drawing import cycles, drawing_of
from cell_attention.explanation.layout import laid_out
from cell_attention.explanation.picture import Paint, panel, whole
from cell_attention.explanation.scale import SIZES, colour, scale
from cell_attention.explanation.subjects import molecules_behind

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def made(ratio: float = 0.6) -> Model:
    torch.manual_seed(0)
    config = NetworkConfig.edges(
        lift_heads=4, hidden=(4, 4), heads=(2, 2), ratio=ratio, node_readout=3
    )
    network = CellAttentionNetwork(config, *Featuriser().widths, 2).eval()
    return Model((network,), "classes", ("no", "yes"), Featuriser().record, {}, ("active",))


def parsed(svg: str) -> Any:
    return ElementTree.fromstring(svg)  # noqa: S314 - our own text


def oklab(text: str) -> np.ndarray[Any, Any]:
    """From #rrggbb, by the published matrices (Ottosson 2020), the other way round than ours."""
    levels = np.array([int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    cones = np.array([[0.4122214708, 0.5363325363, 0.0514459929],
                      [0.2119034982, 0.6806995451, 0.1073969566],
                      [0.0883024619, 0.2817188376, 0.6299787005]]) @ linear  # fmt: skip
    return np.array([[0.2104542553, 0.7936177850, -0.0040720468],
                     [1.9779984951, -2.4285922050, 0.4505937099],
                     [0.0259040371, 0.7827717662, -0.8086757660]]) @ np.cbrt(cones)  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_scale_is_even_and_its_halves_mirror_each_other_in_lightness(theme: str) -> None:
    found = np.array([oklab(shade) for shade in scale(theme)])
    steps = np.linalg.norm(np.diff(found, axis=0), axis=1)
    half = len(steps) // 2
    for side in (steps[:half], steps[half:]):
        # Eight bits per channel round every colour: single steps scatter, runs of eight do not.
        runs = side.reshape(-1, 8).sum(1)
        assert runs.max() / runs.min() < 1.1
    assert np.abs(found[:, 0] - found[::-1, 0]).max() < 0.01
    assert colour(0.0, theme) == scale(theme)[half]
    assert colour(-7.0, theme) == scale(theme)[0]


# Machado, Oliveira and Fernandes (2009), full strength, in linear RGB.
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def seen_by(matrix: list[list[float]], text: str) -> np.ndarray[Any, Any]:
    levels = np.array([int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    changed = np.clip(np.array(matrix) @ linear, 0, 1)
    bent = np.where(changed <= 0.0031308, 12.92 * changed, 1.055 * changed ** (1 / 2.4) - 0.055)
    return oklab("#" + "".join(f"{round(255 * value):02x}" for value in bent))


@pytest.mark.parametrize("kind", BLIND)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_ends_and_the_middle_are_told_apart_by_the_colour_blind(kind: str, theme: str) -> None:
    first, middle, last = (seen_by(BLIND[kind], colour(v, theme)) for v in (-1.0, 0.0, 1.0))
    for one, other in ((first, middle), (middle, last), (first, last)):
        assert np.linalg.norm(one - other) > 0.15


def test_sizes_have_colours_of_their_own() -> None:
    assert len(set(SIZES)) == len(SIZES)


GRAPHS = {
    "path": nx.path_graph(7),
    "ring": nx.cycle_graph(12),
    "grid": nx.grid_2d_graph(4, 5),
    "star": nx.star_graph(9),
    "complete": nx.complete_graph(6),
    "karate": nx.karate_club_graph(),
    "parts": nx.disjoint_union_all([nx.cycle_graph(5), nx.path_graph(3), nx.empty_graph(2)]),
    "one": nx.empty_graph(1),
    "two": nx.path_graph(2),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_layouts_keep_nodes_apart_and_distances_in_proportion(name: str) -> None:
    graph = nx.convert_node_labels_to_integers(GRAPHS[name])
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2).T
    points = laid_out(len(graph), edges)
    assert points.shape == (len(graph), 2)
    assert np.isfinite(points).all()
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert apart[~np.eye(len(graph), dtype=bool)].min(initial=1.0) > 0.1
    assert np.array_equal(points, laid_out(len(graph), edges)), "always the same"
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    pairs = [(apart[u, v], d) for u in hops for v, d in hops[u].items() if d > 0]
    if pairs:
        drawn, stated = np.array(pairs).T
        assert (((drawn - stated) / stated) ** 2).mean() < 0.12  # stress per pair


def test_layouts_of_components_do_not_lie_on_each_other() -> None:
    rings = nx.disjoint_union_all([nx.cycle_graph(6) for _ in range(5)])
    points = laid_out(30, np.array(rings.edges).T)
    boxes = [points[6 * k : 6 * k + 6] for k in range(5)]
    for k, one in enumerate(boxes):
        for other in boxes[:k]:
            low = np.maximum(one.min(0), other.min(0))
            high = np.minimum(one.max(0), other.max(0))
            assert (high - low).min() < 0


def test_a_large_graph_is_laid_out_from_its_pivots() -> None:
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(45, 45))
    points = laid_out(len(grid), np.array(grid.edges).T)
    ends = points[np.array(grid.edges)]
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    assert np.isfinite(points).all()
    assert lengths.max() < 0.2 * np.ptp(points, axis=0).max()


def test_polygons_are_walked_round() -> None:
    for graph in (lift(nx.wheel_graph(7)), lift("C1CC2CCC1C2c1ccc2ccccc2c1")):
        edges = {frozenset(pair) for pair in graph.edge_nodes.T.tolist()}
        found = cycles(graph)
        assert [len(nodes) for nodes in found] == graph.polygon_sizes.tolist()
        for nodes in found:
            assert len(set(nodes)) == len(nodes)
            assert all(
                frozenset(step) in edges for step in zip(nodes, [*nodes[1:], nodes[0]], strict=True)
            )


@pytest.mark.parametrize(
    "smiles, labels",
    [
        ("C", [("", "C", "H₄")]),
        ("[NH4+].[Cl-]", [("", "N", "H₄⁺"), ("", "Cl", "⁻")]),
        ("[Ca+2]", [("", "Ca", "²⁺")]),
        ("*C", [("", "*", ""), None]),
    ],
)
def test_atoms_are_labelled_as_chemists_write_them(smiles: str, labels: list[Any]) -> None:
    assert list(drawing_of(lift(smiles), Chem.MolFromSmiles(smiles)).labels) == labels


@pytest.mark.parametrize("smiles", ["CCO", "OCC", "CC[NH3+]", "[13CH3]O", "Nc1ccc(O)cc1"])
def test_hydrogens_are_written_on_the_side_without_a_bond(smiles: str) -> None:
    molecule = Chem.MolFromSmiles(smiles)
    drawing = drawing_of(lift(smiles), molecule)
    for atom, label in zip(molecule.GetAtoms(), drawing.labels, strict=True):
        if label is None or not atom.GetTotalNumHs():
            continue
        before, symbol, after = label
        assert symbol == atom.GetSymbol()
        (other,) = (near.GetIdx() for near in atom.GetNeighbors())
        right = drawing.points[other, 0] - drawing.points[atom.GetIdx(), 0] > 0.1
        assert ("H" in before, "H" in after) == (right, not right)
        assert ("⁺" in after) == (atom.GetFormalCharge() > 0)
        assert ("¹³" in before) == (atom.GetIsotope() == 13)


def test_bonds_have_their_orders_and_are_about_one_long() -> None:
    molecule = Chem.MolFromSmiles("C#CC=Cc1ccccc1->[Fe]")
    drawing = drawing_of(lift(molecule), molecule)
    kekulised = Chem.Mol(molecule)
    Chem.Kekulize(kekulised, clearAromaticFlags=True)
    for (u, v), order in zip(drawing.edges.tolist(), drawing.orders, strict=True):
        bond = kekulised.GetBondBetweenAtoms(u, v)
        dative = bond.GetBondType() == Chem.BondType.DATIVE
        assert order == (0.0 if dative else bond.GetBondTypeAsDouble())
    ends = drawing.points[drawing.edges]
    assert np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1) == pytest.approx(1.0, abs=0.2)


def test_a_molecule_is_drawn_under_its_bonds() -> None:
    model = made()
    (one,) = explain(model, ASPIRIN, measure=False)
    picture = one.picture()
    tree = parsed(picture.svg)
    drawing = drawing_of(one.complexes, one.molecule)
    assert len(tree.findall("{*}polygon")) == one.complexes.num_polygons
    lines = tree.findall("{*}line")
    assert len(lines) == one.complexes.num_edges
    assert len(tree.findall("{*}path")) > one.complexes.num_edges  # RDKit's bonds and letters
    most = max(lines, key=lambda line: float(line.get("stroke-width")))
    carried = torch.cat([one.edges, one.polygons])
    top = float(one.edges[one.edges.abs().argmax()]) / float(carried.abs().max())
    assert most.get("stroke") == colour(top)
    # The widest line joins the atoms of the edge that carries most: RDKit keeps the proportions.
    u, v = drawing.edges[int(one.edges.abs().argmax())]
    drawn = np.array([float(most.get(name)) for name in ("x1", "y1", "x2", "y2")]).reshape(2, 2)
    direction = drawing.points[v] - drawing.points[u]
    across = drawn[1] - drawn[0]
    cosine = abs(direction @ across) / np.linalg.norm(direction) / np.linalg.norm(across)
    assert cosine == pytest.approx(1.0, abs=1e-3)
    assert picture.svg == one.picture().svg
    assert one._repr_svg_() == picture.svg


def test_notebooks_show_numbers_and_faithfulness() -> None:
    (one,) = explain(made(), ASPIRIN)
    assert one.faithfulness is not None
    shown = one._repr_html_()
    assert "not a cause" in shown
    assert f"{float(one.faithfulness.ours.fidelity_plus):.3f}" in shown
    assert "active = " in shown
    (silent,) = explain(made(), ASPIRIN, measure=False)
    assert "was not measured" in silent._repr_html_()


def test_graphs_that_are_not_molecules_are_drawn_too() -> None:
    graph = lift(nx.wheel_graph(7))
    tree = parsed(draw(graph).svg)
    assert len(tree.findall("{*}polygon")) == graph.num_polygons == 7
    assert len(tree.findall("{*}line")) == graph.num_edges
    assert len(tree.findall("{*}circle")) == 7
    said = [text.text for text in tree.findall("{*}text")]
    assert said == ["6 of 3 edges", "1 of 6 edges"]
    assert len(parsed(draw(ASPIRIN).svg).findall("{*}polygon")) == 1
    with pytest.raises(InputError, match="expected one graph, got 2"):
        draw(lift(["CC", "CO"]))
    assert len(parsed(draw(nx.Graph()).svg).findall("{*}circle")) == 0
    rings = nx.disjoint_union_all([nx.cycle_graph(size) for size in range(3, 16)])
    words = [text.text for text in parsed(draw(rings, max_polygon=16).svg).findall("{*}text")]
    assert words[-1] == "6 of 10 or more edges"
    assert len(words) == 8


def test_pictures_are_saved_as_svg_and_nothing_else(tmp_path: Path) -> None:
    picture = draw("c1ccccc1")
    assert isinstance(picture, Picture)
    picture.save(tmp_path / "ring.svg")
    assert (tmp_path / "ring.svg").read_text(encoding="utf-8") == picture._repr_svg_()
    with pytest.raises(InputError, match=r"must end in \.svg"):
        picture.save(tmp_path / "ring.png")
    with pytest.raises(InputError, match="does not exist"):
        picture.save(tmp_path / "nowhere" / "ring.svg")


def test_titles_cannot_break_out_of_a_picture() -> None:
    tree = parsed(whole("", "</title><script>alert('1')</script> \x01 & \"more\"").svg)
    assert tree.find("{*}script") is None
    assert "alert('1')" in tree.find("{*}title").text


def test_a_strip_shows_what_is_left_after_every_layer() -> None:
    (one,) = explain(made(), ASPIRIN, measure=False)
    tree = parsed(one.strip().svg)
    panels = tree.findall("{*}g")
    assert len(panels) == 3
    for panel_, left in zip(
        panels, [13, *(layer.survivors.numel() for layer in one.layers)], strict=True
    ):
        dashed = [line for line in panel_.iter() if line.get("stroke-dasharray")]
        assert len(dashed) == 13 - left
    said = [text.text for text in tree.findall("{*}text")]
    steps = ["input", "after layer 1: 8 of 13 edges", "after layer 2: 5 of 13 edges"]
    assert said == [*steps, "low", "high pooling score of its layer"]
    # Bonds look the same in all panels: two lines for each of the doubles that are left.
    whole_, *later = [len(p.findall("{*}line")) for p in panels]
    assert whole_ > max(later)


def test_edges_that_are_gone_are_not_coloured() -> None:
    drawing = drawing_of(lift(nx.cycle_graph(4)))
    paint = Paint(("#111111",) * 4, (2.0,) * 4, (None,), frozenset({1}))
    tree = parsed(whole(panel(drawing, paint), "").svg)
    assert len([line for line in tree.findall("{*}line") if line.get("stroke") == "#111111"]) == 3


def test_molecules_of_tu_sets_are_rebuilt_even_where_rdkit_disagrees() -> None:
    mutag = load_dataset("MUTAG")[[0, 82, 187]]
    record = {
        "elements": ["C", "N", "O", "F", "I", "Cl", "Br"],
        "bonds": ["aromatic", "single", "double", "triple"],
    }
    network = CellAttentionNetwork(NetworkConfig.edges(hidden=(4,), heads=(1,)), 7, 4, 2).eval()
    model = Model((network,), "classes", (), record, {})
    molecules = molecules_behind(model, mutag)
    for graph, molecule in zip(mutag, molecules, strict=True):
        assert molecule is not None
        assert molecule.GetNumAtoms() == graph.num_nodes
        tree = parsed(explain(model, graph, measure=False)[0].picture().svg)
        assert len(tree.findall("{*}line")) == graph.num_edges
    assert molecules_behind(network, mutag) == (None, None, None)


def test_records_hold_everything_and_tables_every_cell() -> None:
    (one,) = explain(made(), ASPIRIN)
    record = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert record["edges"] == one.edges.tolist()
    assert record["explained"] == one.name
    assert record["polygon_nodes"] == cycles(one.complexes)
    assert [layer["survivors"] for layer in record["layers"]] == [
        layer.survivors.tolist() for layer in one.layers
    ]
    assert len(record["faithfulness"]["deletion"]["ours"]) == 11
    rows = list(csv.DictReader(io.StringIO(one.to_csv())))
    kinds = [row["cell"] for row in rows]
    graph = one.complexes
    assert [kinds.count(k) for k in ("edge", "polygon", "node")] == [
        graph.num_edges, graph.num_polygons, graph.num_nodes,
    ]  # fmt: skip
    for row, value in zip(rows, one.edges.tolist(), strict=False):
        assert float(row["importance"]) == pytest.approx(value, rel=1e-5)
        survived = sum(int(row["number"]) in layer.survivors.tolist() for layer in one.layers)
        assert int(row["survives"]) == survived
        seen = [layer for layer in one.layers if int(row["number"]) in layer.edges.tolist()]
        assert len(row["scores"].split()) == len(seen)
