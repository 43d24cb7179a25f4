"""Folders in TU format: what is read, what is repaired, and how each kind of damage is named."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
import torch

from cell_attention import (
    CellAttentionNetwork,
    CellAttentionWarning,
    CellComplex,
    NetworkConfig,
    lift,
    load_dataset,
)
from cell_attention.cli.entry import run
from cell_attention.data.sources import read_source
from cell_attention.errors import DataError

Same = Callable[[CellComplex, CellComplex], None]

# A triangle with a tail (class 7) and an edge (class -1): nodes 1…4 and 5…6.
FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n3, 4\n4, 3\n5, 6\n6, 5\n",
    "graph_indicator": "1\n1\n1\n1\n2\n2\n",
    "graph_labels": "7\n-1\n",
    "node_labels": "5\n5\n9\n2\n2\n9\n",
    "edge_labels": "0\n0\n1\n1\n0\n0\n1\n1\n3\n3\n",
}


def write(folder: Path, files: dict[str, str | bytes | None], name: str = "TOY") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for stem, text in files.items():
        if text is not None:
            path = folder / f"{name}_{stem}.txt"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_labels_become_columns_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    complexes = load_dataset(write(tmp_path, FILES))
    assert (complexes.num_complexes, complexes.num_nodes, complexes.num_edges) == (2, 6, 5)
    assert complexes.node_features.argmax(1).tolist() == [1, 1, 2, 0, 0, 2]
    assert complexes.edge_features is not None
    assert complexes.edge_nodes.T.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3], [4, 5]]
    assert complexes.edge_features.argmax(1).tolist() == [0, 0, 1, 1, 2]
    assert complexes.targets is not None
    assert complexes.targets.tolist() == [1, 0]
    assert read_source(tmp_path).class_names == ("-1", "7")
    assert complexes.polygon_sizes.tolist() == [3]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"A": FILES["A"].replace(", ", ","), "graph_labels": "7\r\n-1\r\n"},
        {"A": "\ufeff" + FILES["A"].rstrip() + "\n\n\n"},
        {"A": " 1 ,2\n 2, 1\n" + FILES["A"][10:]},
    ],
)
def test_spaces_line_ends_and_a_byte_order_mark_do_not_matter(
    changes: dict[str, str], tmp_path: Path, assert_equal: Same
) -> None:
    plain = load_dataset(write(tmp_path / "plain", FILES))
    assert_equal(load_dataset(write(tmp_path / "other", FILES | changes)), plain)


def test_edges_listed_once_or_twice_each_way_are_read_right(
    tmp_path: Path, assert_equal: Same
) -> None:
    plain = load_dataset(write(tmp_path / "plain", FILES))
    once = {
        "A": "1, 2\n2, 3\n1, 3\n3, 4\n5, 6\n",
        "edge_labels": "0\n1\n0\n1\n3\n",
    }
    with pytest.warns(CellAttentionWarning, match="TOY: 5 one-way edges taken as undirected"):
        assert_equal(load_dataset(write(tmp_path / "once", FILES | once)), plain)
    twice = {"A": 2 * FILES["A"], "edge_labels": 2 * FILES["edge_labels"]}
    with pytest.warns(CellAttentionWarning, match="10 repeated edges merged"):
        assert_equal(load_dataset(write(tmp_path / "twice", FILES | twice)), plain)
    loop = {"A": FILES["A"] + "6, 6\n", "edge_labels": FILES["edge_labels"] + "3\n"}
    with pytest.warns(CellAttentionWarning, match="1 self-loops dropped"):
        assert_equal(load_dataset(write(tmp_path / "loop", FILES | loop)), plain)


def test_attributes_follow_labels_where_they_are_asked_for(tmp_path: Path) -> None:
    extra = {
        "node_attributes": "\n".join(f"{n}.5, -{n}" for n in range(6)),
        "edge_attributes": "\n".join(str(n // 2) for n in range(10)),
    }
    write(tmp_path, FILES | extra)
    without, complexes = load_dataset(tmp_path), load_dataset(tmp_path, node_attributes=True)
    assert without.node_features.size(1) == 3
    assert complexes.node_features.size(1) == 5
    assert complexes.node_features[3].tolist() == [1.0, 0.0, 0.0, 3.5, -3.0]
    assert complexes.edge_features is not None
    assert complexes.edge_features[:, 3].tolist() == [0.0, 2.0, 1.0, 3.0, 4.0]


def test_attributes_that_are_left_out_are_named_and_alone_they_are_used(tmp_path: Path) -> None:
    attributes = {"node_attributes": "\n".join(f"{n}.5, -{n}" for n in range(6))}
    both = read_source(write(tmp_path / "both", FILES | attributes))
    assert both.remarks == (
        "node attributes are left out; node_attributes=True appends them to the labels",
    )
    assert read_source(tmp_path / "both", node_attributes=True).remarks == ()
    alone = read_source(write(tmp_path / "alone", FILES | attributes | {"node_labels": None}))
    assert alone.graphs.node_features.tolist() == [[n + 0.5, -n] for n in range(6)]
    assert (alone.notes, alone.remarks) == ((), ())


def test_graphs_without_nodes_are_read_as_pyg_reads_them(tmp_path: Path) -> None:
    from torch_geometric.data.separate import separate
    from torch_geometric.io.tu import read_tu_data

    files = FILES | {"graph_indicator": "2\n2\n2\n2\n5\n5\n", "graph_labels": "7\n-1\n3\n3\n7\n"}
    folder = write(tmp_path, files)
    with pytest.warns(CellAttentionWarning, match="TOY: 3 graphs have no nodes"):
        complexes = load_dataset(folder)
    data, slices, _ = read_tu_data(str(folder), "TOY")
    assert len(complexes) == 5
    assert complexes.targets is not None
    for number in range(5):
        graph = separate(type(data), data, number, slices, decrement=False)
        ours = complexes[number]
        assert ours.num_nodes == graph.num_nodes
        assert complexes.targets[number] == graph.y.item()
        theirs = {tuple(sorted(pair)) for pair in graph.edge_index.T.tolist()}
        assert {tuple(pair) for pair in ours.edge_nodes.T.tolist()} == theirs


def test_a_network_answers_for_graphs_without_nodes(tmp_path: Path) -> None:
    files = FILES | {"graph_indicator": "2\n2\n2\n2\n4\n4\n", "graph_labels": "7\n-1\n3\n3\n"}
    with pytest.warns(CellAttentionWarning, match="2 graphs have no nodes"):
        complexes = load_dataset(write(tmp_path, files))
    network = CellAttentionNetwork(NetworkConfig(hidden=(4,), heads=(2,)), 3, 3, 2).eval()
    logits = network(complexes)
    assert logits.shape == (4, 2)
    assert bool(logits.isfinite().all())


def test_several_columns_of_labels_are_encoded_one_after_another(tmp_path: Path) -> None:
    write(tmp_path, FILES | {"node_labels": "0,1\n0,2\n1,3\n0,1\n0,1\n1,2\n"})
    complexes = load_dataset(tmp_path)
    assert complexes.node_features.tolist()[2] == [0.0, 1.0, 0.0, 0.0, 1.0]


def test_a_set_without_node_labels_gets_degrees_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, FILES | {"node_labels": None})
    with pytest.warns(CellAttentionWarning, match="node features are one-hot degrees"):
        complexes = load_dataset(tmp_path)
    assert complexes.node_features.argmax(1).tolist() == [2, 2, 3, 1, 1, 1]
    hub = "".join(f"1, {n}\n{n}, 1\n" for n in range(2, 202))
    star = {"A": hub, "graph_indicator": "1\n" * 201, "graph_labels": "0\n"}
    with pytest.warns(CellAttentionWarning, match="63 and more as one"):
        assert load_dataset(write(tmp_path / "star", star)).node_features.shape == (201, 64)


def test_regression_values_any_number_of_classes_and_no_targets_at_all(tmp_path: Path) -> None:
    values = load_dataset(
        write(tmp_path / "v", FILES | {"graph_labels": None, "graph_attributes": "1.5,2\n-3e2,4\n"})
    )
    assert values.targets is not None
    assert values.targets.tolist() == [[1.5, 2.0], [-300.0, 4.0]]
    many = {
        "A": "", "graph_indicator": "".join(f"{n}\n" for n in range(1, 31)),
        "graph_labels": "".join(f"{n * n}\n" for n in range(30)), "node_labels": "0\n" * 30,
    }  # fmt: skip
    classes = load_dataset(write(tmp_path / "c", many))
    assert classes.targets is not None
    assert classes.targets.tolist() == list(range(30))
    with pytest.warns(CellAttentionWarning, match="there are no targets"):
        assert load_dataset(write(tmp_path / "n", FILES | {"graph_labels": None})).targets is None


DAMAGE: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    "no edges file": ({"A": None, "edge_labels": None}, "no file that ends in _A.txt"),
    "no indicator": ({"graph_indicator": None}, "TOY_graph_indicator.txt is missing"),
    "empty indicator": ({"graph_indicator": ""}, "TOY_graph_indicator.txt has no lines"),
    "text in edges": ({"A": FILES["A"] + "5, x\n"}, "TOY_A.txt, line 11: 'x' is not a whole number"),
    "float in edges": ({"A": "1, 2.5\n"}, "TOY_A.txt, line 1: '2.5' is not a whole number"),
    "three columns": ({"A": FILES["A"] + "5, 6, 1\n"}, "TOY_A.txt, line 11: 2 values are expected, got 3"),
    "one column": ({"A": "1\n" + FILES["A"]}, "TOY_A.txt, line 1: 2 values are expected, got 1"),
    "blank line": ({"A": "1, 2\n\n2, 1\n"}, "TOY_A.txt, line 2: the line is empty"),
    "node too large": ({"A": FILES["A"] + "6, 7\n"}, r"TOY_A.txt, line 11: edge \(6, 7\) names a node outside 1…6"),
    "node zero": ({"A": "0, 1\n" + FILES["A"]}, r"TOY_A.txt, line 1: edge \(0, 1\) names a node outside"),
    "huge number": ({"A": FILES["A"] + f"1, {10**30}\n"}, "TOY_A.txt, line 11: '10+' is not a whole number"),
    "between graphs": ({"A": FILES["A"] + "4, 5\n"}, r"line 11: edge \(4, 5\) joins graph 1 to graph 2"),
    "indicator falls": ({"graph_indicator": "1\n1\n2\n1\n2\n2\n"}, "graph_indicator.txt, line 4: graph 2 or 3 is expected, got 1"),
    "indicator skips": ({"graph_indicator": "1\n1\n1\n1\n3\n3\n"}, "graph_indicator.txt, line 5: graph 1 or 2 is expected, got 3"),
    "indicator from 0": ({"graph_indicator": "0\n0\n0\n0\n1\n1\n"}, "graph_indicator.txt, line 1: graph 1 is expected, got 0"),
    "too few graph labels": ({"graph_labels": "7\n"}, "graph_labels.txt has 1 lines, but the number of graphs is 2"),
    "too many graph labels": ({"graph_labels": "7\n1\n1\n"}, "graph_labels.txt has 3 lines"),
    "class is a word": ({"graph_labels": "7\nyes\n"}, "graph_labels.txt, line 2: 'yes' is not a whole number"),
    "too few node labels": ({"node_labels": "1\n2\n"}, "node_labels.txt has 2 lines, but the number of nodes is 6"),
    "too few edge labels": ({"edge_labels": "1\n"}, "edge_labels.txt has 1 lines, but the number of listed edges is 10"),
    "ragged labels": ({"node_labels": "1\n1\n1,2\n1\n1\n1\n"}, "node_labels.txt, line 3: 1 values are expected, got 2"),
    "contradiction": ({"edge_labels": FILES["edge_labels"][:-2] + "0\n"}, r"TOY_A.txt, line 10: edge \(6, 5\) was listed before"),
    "not a number": ({"edge_attributes": "1.0\n" * 9 + "nan\n"}, "edge_attributes.txt, line 10: every value must be finite"),
    "endless number": ({"A": FILES["A"] + "1, " + "1" * 5000 + "\n"}, "TOY_A.txt, line 11: '1+' is not a whole number"),
    "too large for 32 bits": ({"edge_attributes": "1.0\n" * 9 + "1e39\n"}, "edge_attributes.txt, line 10: every value must be finite"),
    "binary": ({"A": b"\xff\xfe1, 2\n"}, "TOY_A.txt: not a text file"),
    "shifted node count": ({"graph_indicator": "1\n1\n1\n2\n2\n"}, r"TOY_A.txt, line 9: edge \(5, 6\) names a node outside 1…5"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_every_kind_of_damage_gives_one_line_and_exit_code_2(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, message = DAMAGE[kind]
    folder = write(tmp_path / "TOY", FILES | changes)
    with pytest.raises(DataError, match=message):
        load_dataset(folder)
    assert run(["lift", str(folder)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "Traceback" not in shown.err


def test_identifiers_are_not_mistaken_for_labels(tmp_path: Path) -> None:
    count = 5_000
    files = {
        "A": "", "graph_indicator": "1\n" * count, "graph_labels": "0\n",
        "node_labels": "".join(f"{n}\n" for n in range(count)),
    }  # fmt: skip
    with pytest.raises(DataError, match=r"node_labels.txt has 5,000 distinct labels"):
        load_dataset(write(tmp_path, files))


def test_a_folder_with_raw_inside_a_zip_and_a_name_below_the_data_folder_are_found(
    tmp_path: Path, assert_equal: Same, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = load_dataset(write(tmp_path / "plain", FILES))
    write(tmp_path / "a" / "TUDataset" / "TOY" / "raw", FILES)
    write(tmp_path / "b" / "TOY" / "raw", FILES)
    write(tmp_path / "c" / "TOY", FILES)
    for place in "abc":
        assert_equal(load_dataset("TOY", data_dir=tmp_path / place), plain)
    monkeypatch.setenv("CELL_ATTENTION_DATA", str(tmp_path / "b"))
    assert_equal(load_dataset("TOY"), plain)
    monkeypatch.delenv("CELL_ATTENTION_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path / "cache" / "cell-attention" / "TOY", FILES)
    assert_equal(load_dataset("TOY"), plain)
    assert_equal(load_dataset(tmp_path / "b" / "TOY"), plain)
    packed = tmp_path / "TOY.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for stem, text in FILES.items():
            archive.writestr(f"TOY/TOY_{stem}.txt", text)
    assert_equal(load_dataset(packed), plain)
    whole = packed.read_bytes()
    packed.write_bytes(whole.replace(FILES["A"].encode(), b"x" * len(FILES["A"])))
    with pytest.raises(DataError, match=r"TOY_A.txt: cannot be read"):
        load_dataset(packed)
    packed.write_bytes(whole[:300])
    with pytest.raises(DataError, match=r"TOY.zip"):
        load_dataset(packed)


def test_a_folder_with_two_sets_is_refused(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    write(tmp_path, FILES, name="OTHER")
    with pytest.raises(DataError, match="several sets: OTHER, TOY"):
        load_dataset(tmp_path)


def test_the_reader_agrees_with_networkx_on_a_written_set(tmp_path: Path) -> None:
    graphs = [nx.petersen_graph(), nx.complete_graph(4), nx.path_graph(3)]
    union = nx.disjoint_union_all(graphs)
    files = {
        "A": "".join(f"{u + 1},{v + 1}\n{v + 1},{u + 1}\n" for u, v in union.edges),
        "graph_indicator": "".join(f"{n}\n" * len(g) for n, g in enumerate(graphs, 1)),
        "graph_labels": "0\n1\n0\n",
        "node_labels": "0\n" * len(union),
    }
    complexes, expected = load_dataset(write(tmp_path, files)), lift(graphs)
    assert torch.equal(complexes.edge_nodes, expected.edge_nodes)
    assert torch.equal(complexes.polygon_edges, expected.polygon_edges)
