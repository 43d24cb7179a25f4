import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
import torch
from safetensors.torch import load_file, save_file

from cell_attention import CellComplex, Limits, lift, load_dataset
from cell_attention.errors import CellAttentionError, DataError, LimitError, SourceNotFoundError
from cell_attention.topology import storage

Same = Callable[[CellComplex, CellComplex], None]


def test_what_is_saved_is_loaded_bit_for_bit(tmp_path: Path, assert_equal: Same) -> None:
    complexes = load_dataset("MUTAG")
    for number, one in enumerate((complexes, complexes[[]], lift(nx.empty_graph(3)), complexes[5])):
        path = tmp_path / f"{number}.safetensors"
        one.save(path)
        assert_equal(CellComplex.load(path), one)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{n}.safetensors" for n in range(4)]


def test_saving_twice_replaces_the_file_and_a_loaded_complex_can_be_saved_over_itself(
    tmp_path: Path, assert_equal: Same
) -> None:
    path = tmp_path / "set.safetensors"
    complexes = load_dataset("MUTAG")
    lift(nx.cycle_graph(3)).save(path)
    complexes.save(path)
    loaded = CellComplex.load(path)
    loaded.save(path)
    assert_equal(CellComplex.load(path), complexes)
    assert_equal(loaded, complexes)


def damaged(
    tmp_path: Path, change: Callable[[dict[str, torch.Tensor], dict[str, str]], None]
) -> Path:
    path = tmp_path / "damaged.safetensors"
    lift([nx.complete_graph(4), nx.cycle_graph(5)]).save(path)
    tensors = {name: value.clone() for name, value in load_file(path).items()}
    metadata = {"format": storage.FORMAT, "version": "1", "num_complexes": "2"}
    change(tensors, metadata)
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata)
    return path


DAMAGE: dict[str, Callable[[dict[str, torch.Tensor], dict[str, str]], object]] = {
    "no format": lambda t, m: m.pop("format"),
    "newer": lambda t, m: m.update(version="3"),
    "no number": lambda t, m: m.update(version="one"),
    "huge count": lambda t, m: m.update(num_complexes="9" * 18),
    "small count": lambda t, m: m.update(num_complexes="1"),
    "missing": lambda t, m: t.pop("edge_nodes"),
    "node out of range": lambda t, m: t["edge_nodes"].fill_(2**40),
    "negative node": lambda t, m: t["edge_nodes"].neg_(),
    "edge order": lambda t, m: t.update(edge_nodes=t["edge_nodes"].flip(1)),
    "edge in the wrong complex": lambda t, m: t["edge_complex"].fill_(0),
    "membership order": lambda t, m: t.update(node_complex=t["node_complex"].flip(0)),
    "edge out of range": lambda t, m: t["polygon_edges"][0].fill_(10**6),
    "polygon out of range": lambda t, m: t["polygon_edges"][1].fill_(10**6),
    "open polygon": lambda t, m: t["polygon_edges"][0].fill_(0),
    "wrong sign": lambda t, m: t["polygon_signs"].neg_()[:2].neg_(),
    "sign 0": lambda t, m: t["polygon_signs"].zero_(),
    "signs in a column": lambda t, m: t.update(polygon_signs=t["polygon_signs"].unsqueeze(1)),
    "long number": lambda t, m: m.update(num_complexes="9" * 5_000),
    "there and back": lambda t, m: t.update(
        polygon_edges=torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]]),
        polygon_signs=torch.tensor([1, -1, 1, -1], dtype=torch.int8),
        polygon_complex=torch.tensor([0]),
    ),
    "polygons out of order": lambda t, m: t.update(
        polygon_edges=torch.stack([t["polygon_edges"][0, [3, 4, 5, 0, 1, 2, *range(6, 17)]],
                                   t["polygon_edges"][1]]),
        polygon_signs=t["polygon_signs"][[3, 4, 5, 0, 1, 2, *range(6, 17)]],
    ),
    "polygon twice": lambda t, m: t.update(
        polygon_edges=torch.stack([t["polygon_edges"][0, [0, 1, 2, *range(3), *range(6, 17)]],
                                   t["polygon_edges"][1]]),
        polygon_signs=t["polygon_signs"][[0, 1, 2, *range(3), *range(6, 17)]],
    ),
    "wrong dtype": lambda t, m: t.update(edge_nodes=t["edge_nodes"].int()),
    "wrong shape": lambda t, m: t.update(edge_nodes=t["edge_nodes"][:, :3]),
    "short features": lambda t, m: t.update(node_features=t["node_features"][:3]),
    "flat indices": lambda t, m: t.update(polygon_edges=t["polygon_edges"].flatten()),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_refused_by_name_and_never_crashes(kind: str, tmp_path: Path) -> None:
    path = damaged(tmp_path, DAMAGE[kind])  # type: ignore[arg-type]
    with pytest.raises(CellAttentionError) as caught:
        CellComplex.load(path)
    assert str(path) in str(caught.value)


def test_the_undamaged_file_is_accepted(tmp_path: Path) -> None:
    assert CellComplex.load(damaged(tmp_path, lambda t, m: None)).num_polygons == 5


def test_a_newer_version_is_refused_with_a_clear_message(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"format version 3 is newer than 2.*upgrade"):
        CellComplex.load(damaged(tmp_path, lambda t, m: m.update(version="3")))


def test_a_file_that_is_absent_cut_off_or_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no such file"):
        CellComplex.load(tmp_path / "nothing")
    path = tmp_path / "cut"
    load_dataset("MUTAG").save(path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(DataError, match="not a complete safetensors file"):
        CellComplex.load(path)
    path.write_text("hello")
    with pytest.raises(DataError, match="not a complete safetensors file"):
        CellComplex.load(path)


def test_limits_hold_for_files_too(tmp_path: Path) -> None:
    path = tmp_path / "star"
    lift(nx.star_graph(50)).save(path)
    with pytest.raises(LimitError, match="2,450 lower pairs"):
        CellComplex.load(path, limits=Limits(pairs=1000))


def test_a_disk_that_fills_up_leaves_the_old_file_whole(tmp_path: Path, assert_equal: Same) -> None:
    path = tmp_path / "set"
    small = lift(nx.cycle_graph(3))
    small.save(path)
    load_dataset("MUTAG")  # so that the child finds the kernels compiled and writes nothing else

    def no_large_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    command = [sys.executable, "-m", "cell_attention", "lift", "MUTAG", "--out", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, preexec_fn=no_large_files)
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.count("\n") == 1
    assert f"{path}: cannot be written" in ended.stderr
    assert_equal(CellComplex.load(path), small)
    assert [p.name for p in tmp_path.iterdir()] == ["set"]


def test_a_saved_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    lift(nx.cycle_graph(3)).save(tmp_path / "ours")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode
