"""docs/paper.md against the source: names exist, deviations are listed, tables are whole."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
import torch

from cell_attention import CellAttentionNetwork, NetworkConfig, lift

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cell_attention"
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"`([\w/]+\.py)(?:: ([\w.]+))?`")


def named(body: list[ast.stmt], outer: str = "", start: int = 0) -> Iterator[tuple[str, int, int]]:
    """Functions, classes and their fields, with first and last line: the comment above a field and
    the sentence below it are its own.
    """
    last, latest = start, ""
    for node in body:
        end = node.end_lineno or node.lineno
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                yield f"{outer}{node.name}", node.lineno, end
                if isinstance(node, ast.ClassDef):
                    yield from named(node.body, f"{outer}{node.name}.", node.lineno)
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                within = (part for target in targets for part in ast.walk(target))
                for name in [part.id for part in within if isinstance(part, ast.Name)]:
                    latest = f"{outer}{name}"
                    yield latest, last + 1, end
            case ast.Expr(value=ast.Constant()) if latest:
                yield latest, node.lineno, end
        last = end


def names_in(path: str) -> list[tuple[str, int, int]]:
    return list(named(ast.parse((SOURCE / path).read_text(encoding="utf-8")).body))


def owner(line: int, names: list[tuple[str, int, int]]) -> str:
    """The innermost name whose lines include this one; empty for the module's own docstring."""
    around = [(end - first, name) for name, first, end in names if first <= line <= end]
    return min(around)[1] if around else ""


def tags() -> Counter[tuple[str, str]]:
    """(file, name) of every `Deviation:` in the source."""
    found: Counter[tuple[str, str]] = Counter()
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE).as_posix()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if "Deviation:" in line:
                found[path, owner(number, names_in(path))] += line.count("Deviation:")
    return found


def section(number: int) -> str:
    """One chapter of the page."""
    (found,) = re.findall(rf"^## {number}\. .*?(?=^## |\Z)", PAGE, re.M | re.S)
    return str(found)


def rows(text: str) -> list[list[str]]:
    """The cells of every table, without heads and rules."""
    lines = text.splitlines()
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for before, line in pairwise(["", *lines])
        if line.startswith("|") and before.startswith("|") and not line.startswith("| ---")
    ]


@pytest.mark.parametrize("path, name", sorted(set(REFERENCE.findall(PAGE))))
def test_every_name_on_the_page_is_in_the_source(path: str, name: str) -> None:
    assert (SOURCE / path).is_file(), f"{path} does not exist"
    assert not name or name in {known for known, _, _ in names_in(path)}, f"{path} has no {name}"


def test_every_deviation_has_one_row_and_every_row_a_deviation() -> None:
    listed: Counter[tuple[str, str]] = Counter()
    for cells in rows(section(3)):
        (reference,) = REFERENCE.findall(cells[-1])
        listed[reference] += 1
    tagged = tags()
    assert tagged - listed == Counter(), "tagged in the source, not on the page"
    assert listed - tagged == Counter(), "on the page, not tagged in the source"


def test_every_field_on_the_page_is_one_of_the_network() -> None:
    fields = set(NetworkConfig.__dataclass_fields__)
    for cells in rows(section(2)):
        for name in re.findall(r"`(\w+)`", cells[-1]):
            assert name in fields, name


def test_every_equation_definition_and_table_of_the_paper_is_there() -> None:
    places = " ".join(cells[0] for cells in rows(section(1)))
    for kind, count in (("Def", 6), ("Eq", 18)):
        numbers = set(re.findall(rf"{kind}\. (\d+)", places))
        assert numbers == {str(number) for number in range(1, count + 1)}
    assert set(re.findall(r"Table (\d)", places)) == {"1", "2", "3", "4"}
    assert "Theorem 1" in places


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    width = 0
    for line in PAGE.splitlines():
        cells = len(re.split(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (width and cells) or cells == width, line
        width = cells


def test_two_triangles_and_a_hexagon_are_one_graph_to_the_network() -> None:
    torch.manual_seed(0)
    network = CellAttentionNetwork(NetworkConfig.edges(), 1, 0, 2).double().eval()
    triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    outputs = []
    for graph in (triangles, nx.cycle_graph(6)):
        nx.set_node_attributes(graph, [1.0], "x")
        complexes = lift(graph)
        assert complexes.node_features.shape == (6, 1)
        outputs.append(network(complexes))
    torch.testing.assert_close(outputs[0], outputs[1], rtol=0.0, atol=1e-12)
