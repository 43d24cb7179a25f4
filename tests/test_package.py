"""The package as a whole: its public names, its version, and the wheel that carries it."""

import ast
import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import cell_attention
from cell_attention.cli.entry import run as run_words
from cell_attention.evaluation.ablation import folder_of
from cell_attention.evaluation.archive import run_folder
from cell_attention.evaluation.protocols import paper_protocol, per_fold_best

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
THREE_FOLDS = ("NCI1-ablation", "PROTEINS-ablation")
"""Ablations of three folds; every other run has ten."""
BY_POSITION = {
    "nn/attend.py:attend": "the symbols of the equation, in its order",
    "nn/attention.py:CellAttention.from_config": "called like the layers that users register",
    "nn/attention.py:CellAttention.forward": "called like the layers that users register",
    "arguments.py:require": "reads like a sentence: what, the rule, its words, the value",
    "nn/kernels/rows.py:_Row.__init__": "writes machine code, beside functions that numba calls",
    "inference/model_record.py:_Unfilled.__torch_function__": "as torch calls it",
}
"""Functions that may take more than three arguments by position, with the reason."""
needs_results = pytest.mark.skipif(
    not (ROOT / ".git").exists() and not RESULTS.is_dir(), reason="the sdist has no results/"
)


def test_every_public_name_can_be_imported() -> None:
    for module in (
        "cell_attention",
        "cell_attention.topology",
        "cell_attention.data",
        "cell_attention.nn",
        "cell_attention.explanation",
    ):
        package = importlib.import_module(module)
        for name in package.__all__:
            assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = cell_attention.Nothing  # type: ignore[attr-defined]


def test_one_version_stands_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == cell_attention.__version__
    assert f"version: {cell_attention.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {cell_attention.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_wheel_alone_lifts_the_bundled_set(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "cell_attention/explanation/assets/report.html" in archive.namelist()
        assert not [name for name in archive.namelist() if name.endswith((".nbi", ".nbc", ".pyc"))]
        archive.extractall(tmp_path / "alone")  # noqa: S202 - the wheel that was just built
    code = (
        "import cell_attention, sys\n"
        "print(cell_attention.__file__, file=sys.stderr)\n"
        "from cell_attention.cli import main\n"
        "main(['lift', 'MUTAG', '--json'])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "alone"), "HOME": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert str(tmp_path / "alone") in ended.stderr
    assert json.loads(ended.stdout)["num_polygons"] == 538


def test_no_pickle_and_no_eval_in_the_package() -> None:
    forbidden = re.compile(
        r"\b(pickle|joblib)\.|(?<![.\w])(eval|exec)\(|torch\.load|weights_only=False"
    )
    for path in (ROOT / "src").rglob("*.py"):
        assert not forbidden.search(path.read_text()), path


def functions(node: ast.AST, name: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield every function below a node that neither torch nor numba calls: its name after those
    around it, and what it takes by position.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            if "torch.autograd.Function" not in map(ast.unparse, child.bases):
                yield from functions(child, f"{name}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = {ast.unparse(mark) for mark in child.decorator_list}
            if marks & {"compiled", "compiled_sums", "intrinsic"}:
                continue  # numba calls these by position
            taken = [entry.arg for entry in (*child.args.posonlyargs, *child.args.args)]
            yield f"{name}{child.name}", [word for word in taken if word not in ("self", "cls")]
            yield from functions(child, f"{name}{child.name}.")
        else:
            yield from functions(child, name)


def test_messages_below_the_command_line_name_arguments_and_not_flags() -> None:
    """A caller in Python has no flags; the command line writes them where it prints a message."""
    package = ROOT / "src" / "cell_attention"
    commands = {"cli", "benchmark"}  # and a call of Ray's own command
    for path in package.rglob("*.py"):
        if path.relative_to(package).parts[0] in commands or path.name == "ray_tasks.py":
            continue
        tree = ast.parse(path.read_text())
        pages = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                stored = node.value.replace("search --nested", "")  # stands in finished results
                flags = re.findall(r"(?:^|[\s(])--[a-z]", stored)
                assert not flags or id(node) in pages, f"{path}:{node.lineno}: {node.value}"


STEPS = """
import pathlib, sys
import cell_attention
from cell_attention.cli import main

ROOT = str(pathlib.Path(cell_attention.__file__).parent)
steps = set()


def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(ROOT) and code.co_name[0] != "<":
        steps.add((code.co_filename, code.co_name))


sys.setprofile(note)
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0, end.code
sys.setprofile(None)
print(len({file for file, _ in steps}), len(steps))
"""
"""Counts the files and the functions that a command enters, class bodies included."""


def test_one_molecule_passes_through_few_functions(tmp_path: Path) -> None:
    """Table, features, polygons, network, warnings, cells: each module one idea."""
    table, model = tmp_path / "new.csv", tmp_path / "model"
    rows = [f"{'C' * n}{end},{n + len(end)}" for n in range(1, 9) for end in ("O", "N", "c1ccccc1")]
    table.write_text("\n".join(["smiles,y", *rows]), encoding="utf-8")
    cell_attention.train(table, training={"epochs": 1}, folder=model)
    table.write_text("smiles\nCCO\n", encoding="utf-8")
    words = [sys.executable, "-c", STEPS, "predict", model, table, "--out", tmp_path / "out.csv"]
    for _ in range(3):  # the first may have to compile
        ended = subprocess.run(words, capture_output=True, text=True, check=True)
        if "compiling" not in ended.stderr:
            break
    files, functions = map(int, ended.stdout.split())
    assert files <= 52
    assert functions <= 276


def test_more_than_three_arguments_are_keywords() -> None:
    network = ["config", "node_features", "edge_features", "outputs"]  # as users register theirs
    package = ROOT / "src" / "cell_attention"
    found = {
        f"{path.relative_to(package).as_posix()}:{name}"
        for path in package.rglob("*.py")
        for name, taken in functions(ast.parse(path.read_text(encoding="utf-8")))
        if len(taken) > 3 and taken != network
    }
    known = BY_POSITION.keys()
    assert sorted(found - known) == [], "write * before the arguments that a call should name"
    assert sorted(known - found) == [], "these take at most three now: remove them from the lists"


@needs_results
def test_the_results_are_those_of_their_folds(tmp_path: Path) -> None:
    found = []
    for file in sorted([*RESULTS.glob("*.json"), *RESULTS.glob("molecules/*.json")]):
        folder = tmp_path / file.stem
        with run_folder(file) as unpacked:
            shutil.copytree(unpacked, folder)
        results = sorted(folder.rglob("result.json"))
        ablation, variants = folder / "ablation.json", 1
        if ablation.is_file():
            variants += len(json.loads(ablation.read_text(encoding="utf-8"))["removed"])
        assert len(results) == (0 if file.stem.endswith("-search") else variants), file
        found += results
    assert len(found) >= 66
    for path in found:
        record = json.loads(path.read_text(encoding="utf-8"))
        folds = [
            json.loads(fold.read_text(encoding="utf-8"))["score"]
            for fold in sorted(path.parent.glob("fold-*.json"))
        ]
        outcomes = {"paper": paper_protocol(folds), "per_fold_best": per_fold_best(folds)}
        assert len(folds) == (3 if path.parents[1].name in THREE_FOLDS else 10)
        for name, outcome in outcomes.items():
            assert record["protocols"][name]["mean"] == outcome.mean
            assert record["protocols"][name]["std"] == outcome.std
            assert record["protocols"][name]["folds"] == list(outcome.folds)
        for fold, choice in enumerate(record["choices"]):
            reruns = sorted(path.parent.glob(f"fair-{fold:02}-rerun-*.json"))
            records = [json.loads(rerun.read_text(encoding="utf-8")) for rerun in reruns]
            assert choice["tests"] == [rerun["test"] for rerun in records]
            assert choice["epochs"] == [rerun["epoch"] for rerun in records]


@needs_results
def test_report_reads_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("MUTAG", "MUTAG-gin")
    words = [str(RESULTS / f"{name}.json") for name in names]
    assert run_words(["report", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["runs"]
    for name, entry in zip(names, told, strict=True):
        with run_folder(RESULTS / f"{name}.json") as folder:
            record = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        assert entry["paper_mean"] == record["protocols"]["paper"]["mean"]
    assert run_words(["report", str(RESULTS / "MUTAG-ablation.json")]) == 2
    assert "run.json is missing" in capsys.readouterr().err


@needs_results
def test_the_ablations_are_those_of_their_variants() -> None:
    for file in sorted(RESULTS.glob("*-ablation.json")):
        with run_folder(file) as folder:
            record = json.loads((folder / "ablation.json").read_text(encoding="utf-8"))
            reached = {
                path.parent.name: json.loads(path.read_text(encoding="utf-8"))["protocols"]
                for path in folder.glob("*/result.json")
            }
        assert record["full"] == reached.pop("full")
        for entry in record["removed"]:
            there = reached.pop(folder_of(entry["name"]))
            for protocol, pair in entry["protocols"].items():
                assert (None if pair is None else pair[0]) == there[protocol]
        assert not reached


def test_the_sdist_comes_without_the_results(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        folders = {Path(name).parts[1] for name in archive.getnames() if len(Path(name).parts) > 1}
    assert {"src", "tests", "docs"} <= folders
    assert "results" not in folders


@pytest.mark.parametrize(
    "path",
    sorted([*ROOT.glob("scripts/*.py"), *ROOT.glob("benchmarks/*.py")]),
    ids=lambda p: p.name,
)
def test_what_a_script_imports_from_the_package_is_there(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cell_attention"):
            module = importlib.import_module(str(node.module))
            for name in node.names:
                found = hasattr(module, name.name) or importlib.util.find_spec(
                    f"{node.module}.{name.name}"
                )
                assert found, f"{path.name}: {node.module} has no {name.name}"
