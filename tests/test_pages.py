"""The pages for people: README.md, docs/ and its notebooks are true, run, and are easy to read."""

import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from cell_attention.data.sources import BUNDLED

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), *NOTEBOOKS]
SHORT = re.compile(r"\b(App|Def|Eq|al|cf|vs|e\.g|i\.e)\.")
needs_results = pytest.mark.skipif(
    not (ROOT / ".git").exists() and not RESULTS.is_dir(), reason="the sdist has no results/"
)


def script(name: str) -> ModuleType:
    """A program of scripts/, imported."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "scripts"))


EXAMPLES = {
    "README.md": 1,
    "docs/crossval.md": 1,
    "docs/data.md": 2,
    "docs/examples.md": 3,
    "docs/explain.md": 1,
    "docs/gallery.md": 1,
    "docs/molecules.md": 2,
    "docs/scaling.md": 2,
    "docs/serve.md": 1,
    "docs/training.md": 3,
}
"""How many blocks of Python each page has; `test_extending.py` runs those of docs/extending.md."""


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text_of(path), re.DOTALL)


def test_every_page_with_examples_is_run() -> None:
    found = {str(path.relative_to(ROOT)) for path in PAGES if python_blocks(path)}
    assert found == {*EXAMPLES, "docs/extending.md"}


@pytest.mark.parametrize(("name", "count"), EXAMPLES.items())
def test_the_examples_of_the_documentation_run(name: str, count: int, tmp_path: Path) -> None:
    blocks = python_blocks(ROOT / name)
    assert len(blocks) == count
    with zipfile.ZipFile(BUNDLED["MUTAG"]) as bundle:  # what PyG would have downloaded
        raw = tmp_path / "data" / "MUTAG" / "raw"
        raw.mkdir(parents=True)
        for name in bundle.namelist():
            (raw / Path(name).name).write_bytes(bundle.read(name))
    for block in blocks:
        ended = subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr


def test_the_readme_has_at_most_nine_hundred_words() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


def test_the_readme_installs_a_torch_that_the_package_takes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (torch,) = [one for one in project["dependencies"] if re.match("torch[<>=]", one)]
    assert f'pip install "{torch}"' in (ROOT / "README.md").read_text()


def shape(line: str) -> str:
    """Return what a line looks like: other machines round differently, and may decide otherwise."""
    plain = re.sub(r",(yes|no),", ",CLASS,", re.sub(r" +|-+", " ", line))
    return re.sub(r"\d+", "0", plain).strip()


def test_the_commands_of_the_readme_print_what_it_shows(tmp_path: Path) -> None:
    (block,) = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    shutil.copytree(ROOT / "docs" / "notebooks", tmp_path / "docs" / "notebooks")
    told: list[str] = []
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        words = line.removeprefix("$ cell-attention ").split()
        ended = subprocess.run(
            [sys.executable, "-m", "cell_attention", *words],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        told += [line, *ended.stdout.splitlines()]
    assert [shape(line) for line in told] == [shape(line) for line in block.splitlines()]


def text_of(path: Path) -> str:
    """The text of a page; of a notebook that of its cells of text."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return "\n\n".join(texts)


def prose(text: str) -> list[str]:
    """The lines of a page without code, tables, headings and generated blocks, which become empty
    lines.
    """
    text = re.sub(r"^<!-- results: .*?<!-- end -->$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    left_out = ("|", "#", "!", "<!--", "    ")
    return ["" if line.startswith(left_out) else line for line in text.splitlines()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_line_of_a_page_is_one_whole_sentence(path: Path) -> None:
    lines = prose(text_of(path))
    for line, following in pairwise([*lines, ""]):
        words = re.sub(r"^ *(-|\d+\.) ", "", line)
        plain = SHORT.sub(r"\1", re.sub(r"`[^`]*`|\]\([^)]*\)", "code", words))
        assert not re.search(r"[.!?] +\S", plain), f"more than one sentence: {line}"
        goes_on = words and following.strip() and not re.match(r" *(-|\d+\.) ", following)
        assert not goes_on or plain.endswith((".", ":", "?", "!")), f"not a whole sentence: {line}"


@needs_results
def test_the_tables_of_the_documentation_are_those_of_the_results() -> None:
    tables = script("tables")
    for name in tables.FILES:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert tables.BLOCK.search(text)
        assert tables.rendered(text) == text, f"{name}: run make tables"


@needs_results
def test_the_pictures_of_the_results_are_those_of_the_results() -> None:
    plots = script("result_plots")
    pictures = ROOT / "docs" / "pictures"
    shown = {
        "comparison.svg": plots.compared_numbers(),
        "curves.svg": json.dumps(plots.curves(plots.shown_run())),
    }
    for name, numbers in shown.items():
        text = (pictures / name).read_text(encoding="utf-8")
        assert text.endswith(plots.mark(numbers)), f"{name}: run make tables"


@needs_results
def test_a_picture_of_the_results_is_drawn_anew_from_them(tmp_path: Path) -> None:
    plots = script("result_plots")
    plots.comparison_plot(tmp_path / "comparison.svg")
    text = (tmp_path / "comparison.svg").read_text(encoding="utf-8")
    assert all(name in text for name in ("MUTAG", "NCI109", "WL kernel", "the paper prints"))
    assert text.endswith(plots.mark(plots.compared_numbers()))


def test_a_cell_that_fails_fails_its_notebook(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"cells": [{**cell, "source": "1 / 0"}], "metadata": {}}
    path = tmp_path / "failing.ipynb"
    path.write_text(json.dumps({**notebook, "nbformat": 4, "nbformat_minor": 5}))
    with pytest.raises(Exception, match="ZeroDivisionError"):
        script("notebooks").executed(path)


def test_every_public_name_is_in_the_reference_and_has_a_docstring() -> None:
    pages = script("site_pages")
    assert list(pages.faults(pages.entries())) == []
    missing = set(pages.entries()) - {"cell_attention.train"}
    assert list(pages.faults(sorted(missing))) == [
        "cell_attention.train has no entry in docs/reference"
    ]


def test_a_name_without_a_docstring_is_found(tmp_path: Path) -> None:
    pages = script("site_pages")
    (tmp_path / "bare.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass\nclass Row:\n"
        '    """A row."""\n    told: int\n    """Told."""\n    untold: int\n'
        "    def act(self): ...\n"
    )
    import griffe

    bare = griffe.load("bare", search_paths=[tmp_path])
    assert list(pages.undocumented(bare["Row"])) == ["bare.Row.untold", "bare.Row.act"]


def test_a_function_of_another_module_is_a_method_of_the_reference(tmp_path: Path) -> None:
    package = tmp_path / "whole"
    package.mkdir()
    (package / "__init__.py").write_text('"""A package."""')
    (package / "parts.py").write_text('def count(whole, rank):\n    """Count."""\n')
    (package / "one.py").write_text(
        "from whole.parts import count\n\nclass One:\n    count = count\n    size = 3\n"
    )
    import griffe

    extensions = griffe.load_extensions(script("site_arguments").Arguments)
    one = griffe.load("whole", search_paths=[tmp_path], extensions=extensions)["one.One"]
    assert [parameter.name for parameter in one["count"].parameters] == ["rank"]
    assert one["count"].docstring.value == "Count."
    assert one["size"].is_attribute


def test_arguments_in_docstrings_become_a_list(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(
        'def act(one, two, three):\n    """Act: as told.\n\n    one, two: numbers\n'
        '        to act on.\n    three: a name.\n    """\n'
    )
    import griffe

    extensions = griffe.load_extensions(script("site_arguments").Arguments)
    told = griffe.load("told", search_paths=[tmp_path], extensions=extensions)
    assert told["act"].docstring.value.splitlines() == [
        "Act: as told.", "", "", "- `one`, `two`: numbers", "    to act on.", "- `three`: a name.",
    ]  # fmt: skip


def test_what_a_site_loads_from_elsewhere_and_dead_links_are_found(tmp_path: Path) -> None:
    offline = script("site_offline")
    page = (
        '<a href="https://example.org/">far</a> <a href="b.html#here">there</a>'
        '<a href="b.html#nowhere">x</a> <a href="c.html">y</a>'
    )
    (tmp_path / "index.html").write_text(page)
    (tmp_path / "b.html").write_text(
        '<p id="here"></p><script src="https://example.org/x.js"></script>'
        '<p style="background: url(//example.org/z.png)"></p>'
    )
    (tmp_path / "s.css").write_text("@import 'https://example.org/s.css';")
    assert list(offline.faults(tmp_path)) == [
        "b.html: loads https://example.org/x.js",
        "b.html: loads //example.org/z.png",
        "index.html: b.html#nowhere leads nowhere",
        "index.html: c.html leads nowhere",
        "s.css: loads https://example.org/s.css",
    ]


def test_a_page_of_the_root_leads_to_pages_of_the_site() -> None:
    moved = script("site_pages").moved
    assert moved("[a](docs/data.md#x), [b](SECURITY.md)") == "[a](data.md#x), [b](security.md)"
    assert moved("[q](docs/notebooks/chemist.ipynb)") == "[q](chemist.md)"
    assert moved("[t](docs/notebooks/new.csv)") == "[t](notebooks/new.csv)"


def test_a_notebook_leads_to_pages_of_the_site_which_lie_one_folder_higher() -> None:
    moved_up = script("site_pages").moved_up
    assert moved_up("[a](../data.md#x), [t](new.csv)") == "[a](data.md#x), [t](notebooks/new.csv)"
    assert moved_up("[i](../../README.md#install)") == "[i](index.md#install)"


def test_the_reference_has_the_arguments_of_a_class() -> None:
    import yaml

    plan = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    (strings,) = [one["mkdocstrings"] for one in plan["plugins"] if isinstance(one, dict)]
    options = strings["handlers"]["python"]["options"]
    left_out = re.compile(options["filters"][0].removeprefix("!"))
    assert options["merge_init_into_class"]
    assert not left_out.search("__init__")
    assert left_out.search("_private")
    assert left_out.search("__repr__")


def test_a_link_shows_the_title_of_its_page() -> None:
    config = {"nav": [{"Home": "index.md"}, {"Guides": [{"Data in": "data.md"}]}]}
    shown = script("site_pages").on_page_markdown(
        "[data.md](../data.md#x) and [these](data.md)", None, config, None
    )
    assert shown == "[Data in](../data.md#x) and [these](data.md)"


@pytest.mark.parametrize(
    "path", [*sorted(ROOT.glob("*.md")), *NOTEBOOKS], ids=lambda path: path.name
)
def test_a_page_outside_of_docs_links_to_files_that_exist(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)", text):
        if not target.startswith("https://"):
            assert (path.parent / target).is_file(), target


def test_the_workflow_runs_everything_on_every_supported_python() -> None:
    import yaml

    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    job = flow["jobs"]["everything"]
    assert {"run": ".ci/run", "env": {"PYTHON": "python"}} in job["steps"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [entry.rpartition(" ")[2] for entry in project["classifiers"] if "Python ::" in entry]
    assert job["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"
    for target in ("test", "docs", "test-browser"):
        assert f"\nmake {target}\n" in (ROOT / ".ci" / "run").read_text()


def test_what_contributors_fill_in_can_be_read() -> None:
    import yaml

    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    for form in forms:
        assert isinstance(yaml.safe_load(form.read_text()), dict), form
    checks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {check["language"] for check in checks} == {"system"}
    sentences = next(check for check in checks if check["id"] == "sentences")["entry"].split()
    assert (ROOT / sentences[4]).is_file()
    assert "whole_sentence" in sentences[-1]


def test_the_words_of_the_glossary_are_sorted_and_stand_once() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \|$", (ROOT / "docs" / "glossary.md").read_text(), re.M
    )
    words = [row.lower() for row in rows if row not in ("word", "---")]
    assert words == sorted(set(words))
    wanted = {"cell", "polygon", "lower neighbour", "upper neighbour", "lift", "fold", "protocol"}
    assert wanted <= set(words)
