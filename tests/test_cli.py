import json
import os
import shlex
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from cell_attention import CellComplex, __version__, load_dataset
from cell_attention.benchmark import memory
from cell_attention.cli import console, entry
from cell_attention.cli.demo import Demo
from cell_attention.cli.short_help import FIRST
from cell_attention.cli.usage import options_in
from cell_attention.inference.model_folder import load_model
from cell_attention.models.registry import MODELS


def cell_attention(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cell_attention", *words], capture_output=True, text=True
    )


@pytest.fixture(scope="module", autouse=True)
def compiled_kernels() -> None:
    """Compile before anything is read from standard error, where the first call says so."""
    load_dataset("MUTAG").upper_pairs.size()


@pytest.mark.long
def test_the_first_call_on_a_machine_says_that_it_compiles_and_the_second_is_silent(
    tmp_path: Path,
) -> None:
    fresh = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "cell_attention", "lift", "MUTAG"]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, env=fresh) for _ in range(2)
    )
    assert first.stderr.startswith("note: compiling")
    assert first.stderr.count("\n") == 1
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_without_any_folder_for_the_cache_the_kernels_still_run(tmp_path: Path) -> None:
    # A cache folder below a file can never be made: what a read-only container looks like.
    (tmp_path / "file").touch()
    nowhere = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "file" / "cache")}
    command = [sys.executable, "-m", "cell_attention", "lift", "MUTAG", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, env=nowhere)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["num_polygons"] == 538


def test_help_needs_none_of_the_heavy_packages() -> None:
    code = (
        "import sys\n"
        "from cell_attention.cli.entry import run\n"
        "try: run(['lift', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numba', 'numpy', 'scipy', 'rdkit'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "--max-polygon" in ended.stdout


def test_lift_prints_a_table_of_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["lift", "MUTAG"]) == 0
    lines = {line[:33].strip(): line[33:].split() for line in capsys.readouterr().out.splitlines()}
    assert lines["graphs"] == ["188"]
    assert lines["polygons"] == ["538", "2.86"]
    assert lines["of 6 edges"] == ["470", "2.50"]
    assert lines["upper pairs"] == ["15,460", "82.23"]
    assert lines["edges without an upper neighbour"] == ["992", "5.28"]


def test_lift_as_json_has_the_names_of_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["lift", "MUTAG", "--json", "--max-polygon", "5"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["num_complexes"] == 188
    assert report["polygon_sizes"] == {"3": 0, "4": 0, "5": 68}
    assert report["lower_pairs"] == 10_856
    assert report["classes"] == {"-1": 63, "1": 125}


def test_lift_saves_what_load_reads(tmp_path: Path) -> None:
    path = tmp_path / "mutag.safetensors"
    assert entry.run(["lift", "MUTAG", "--out", str(path)]) == 0
    assert CellComplex.load(path).num_polygons == load_dataset("MUTAG").num_polygons


@pytest.mark.long
def test_demo_agrees_with_the_paper_and_leaves_a_run_and_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["demo", "--epochs", "1", "--jobs", "1", "--out", str(tmp_path / "demo")]
    assert entry.run([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ours"] == report["paper"]
    assert len(report["crossval"]["protocols"]["paper"]["folds"]) == 10
    assert load_model(tmp_path / "demo" / "MUTAG-model").provenance == report["model"]
    assert (tmp_path / "demo" / "MUTAG-crossval" / "curves.svg").is_file()
    assert report["report"] == str(tmp_path / "demo" / "MUTAG-explained.html")
    assert Path(report["report"]).stat().st_size > 100_000
    assert entry.run(words) == 0  # finds everything done
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.endswith("  yes") for line in lines) == len(report["paper"])
    assert any(line.split()[-3:] == ["94.1", "±", "4.8"] for line in lines)


def test_doctor_lists_versions_devices_and_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["versions"]["torch"]
    assert "MUTAG" in report["data"]
    assert entry.run(["doctor"]) == 0
    assert "Data sets found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lift", "MUTAG", "--max-polygon", "2"], "max_polygon must be an integer of at least 3"),
        (["lift", "no/such/folder"], "no/such/folder: no such file or folder"),
        (["lift", "MUTAG", "--limits.pairs", "5"], "--limits.pairs"),
        (["lift", "MUTAG", "--out", "no/such/folder/file"], "does not exist; create it first"),
        (["lift", "MUTAG", "--out", "/dev/null"], "is not a regular file"),
        (["lift", "MUTAG", "--out", "."], "is not a regular file"),
        (["lift", "MUTAG", "--node-attributes"], "MUTAG_node_attributes.txt is missing"),
        (["lift", "MUTAG", "--data-dir", "no/such"], "data_dir no/such: no such folder"),
        (["lift", "MUTAG", "--limits.pairs", "-1"], "Limits.pairs must be an integer"),
        (["lift", "A" * 300], "File name too long"),
        (["lift", ""], "the name of the source is empty"),
        (["benchmark", "--molecules", "no/such"], "no such file"),
        (["benchmark", "--presets", "NCI2"], "NCI109, got 'NCI2'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(words) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.startswith("cell-attention: ")
    assert shown.err.count("\n") == 1
    assert shown.out == ""


@pytest.mark.parametrize(
    "words", ["lift", "lfit MUTAG", "lift MUTAG --max-poligon 5", "lift MUTAG --max-polygon x"]
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("cell-attention: ")
    assert not set("│╭╰─") & set(line)


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (MemoryError(), 1, "out of memory"),
    ],
)
def test_interruption_and_failure_have_their_own_codes(
    raised: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(self: object) -> None:
        raise raised

    monkeypatch.setattr(Demo, "run", fail)
    assert entry.run(["demo"]) == code
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1


SWALLOWED = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from cell_attention.cli import main
from cell_attention.cli.demo import Demo

def run(self):
    while True:
        try:
            print("running", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass

Demo.run = run
main(["demo"])
"""

WHILE_STARTING = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "cell_attention.cli.verbs":
            print("running", flush=True)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from cell_attention.cli import main
main(["demo"])
"""


@pytest.mark.parametrize("code", [SWALLOWED, WHILE_STARTING])
def test_an_interruption_ends_at_once_whatever_hears_it(code: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    began = time.monotonic()
    if code is SWALLOWED:
        process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[1]
    assert time.monotonic() - began < 3  # 0.8 seconds, on a machine that has other things to do
    assert said == "cell-attention: interrupted\n"
    assert process.returncode == 130


def test_an_interrupted_training_does_not_speak_of_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cell_attention.api.train.train", interrupted)
    for saved in (False, True):
        folder = tmp_path / str(saved)
        folder.mkdir()
        if saved:
            (folder / "checkpoint.safetensors").touch()
        assert entry.run(["train", "MUTAG", "--out", str(folder)]) == 130
        assert ("progress is saved in" in capsys.readouterr().err) == saved


def test_a_reader_that_goes_away_is_no_failure() -> None:
    command = f"{shlex.quote(sys.executable)} -m cell_attention lift MUTAG"
    pipeline = f"{command} | head -n 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["/bin/bash", "-c", pipeline], capture_output=True, text=True)
    assert ended.stdout == "MUTAG, polygons of up to 6 edges\n"
    assert ended.stderr == ""
    assert ended.returncode == 0


def test_the_output_never_replaces_the_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "mols.csv"
    table.write_text("smiles,y\nCC,1\n")
    assert entry.run(["lift", str(table), "--out", str(table)]) == 2
    assert "is the source and would be replaced" in capsys.readouterr().err
    assert table.read_text() == "smiles,y\nCC,1\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_closed_streams_are_no_failure(closed: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m cell_attention lift MUTAG --json {closed}"
    ended = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True)
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr


def test_names_beyond_ascii_are_printed_where_only_ascii_can_be(tmp_path: Path) -> None:
    table = tmp_path / "naïve ☃.csv"
    table.write_text("smiles,y\nCC,1\n")
    plain = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "cell_attention", "lift", str(table)]
    ended = subprocess.run(command, capture_output=True, text=True, env=plain)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("na\\xefve \\u2603.csv")


def test_brackets_in_a_name_are_not_taken_for_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "a[bold]b[nothing].csv"
    table.write_text("smiles,y\nCC,1\n")
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    assert entry.run(["lift", str(table)]) == 0
    assert "a[bold]b[nothing].csv" in capsys.readouterr().out


def test_the_version_is_told() -> None:
    assert cell_attention("--version").stdout == f"cell-attention {__version__}\n"


def test_a_bare_call_shows_the_help() -> None:
    ended = cell_attention()
    assert ended.returncode == 0
    verbs = (
        "lift", "train", "explain", "crossval", "ablate", "search", "report", "pack",
        "unpack", "serve", "demo", "doctor",
    )  # fmt: skip
    for verb in (*verbs, "benchmark"):
        assert verb in ended.stdout


def shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The options that a help text lists."""
    with pytest.raises(SystemExit) as ended:
        entry.run(words)
    assert not ended.value.code
    return [name.removeprefix("--") for name in options_in(capsys.readouterr().out)]


@pytest.mark.parametrize("verb", FIRST)
def test_help_shows_what_most_people_need_and_help_all_shows_the_rest(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, every = shown([verb, "--help"], capsys), shown([verb, "--help-all"], capsys)
    others = {"from_model": "from", "explained_class": "class", "filters": "filter"}
    names = {others.get(name, name.replace("_", "-")) for name in FIRST[verb]}
    assert {*first} == {"help", *names}
    assert len(names) <= 10
    assert {*first} < {*every}
    assert shown([verb, "MUTAG", "-h"], capsys) == first
    if verb in ("train", "crossval", "ablate", "search", "pretrain"):
        assert {"hidden", "learning-rate", "max-bytes"} <= {*every} - {*first}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_verbs_and_flags(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        entry.run(["--tyro-print-completion", shell])
    assert not ended.value.code
    script = capsys.readouterr().out
    assert "crossval" in script
    if shell != "bash":
        return
    (tmp_path / "complete").write_text(script)
    ask = (
        f"source {shlex.quote(str(tmp_path / 'complete'))}; "
        "COMP_WORDS=(cell-attention train MUTAG --ep); COMP_CWORD=3; "
        "found=$(complete -p cell-attention); found=${found#*-F }; "
        "${found%% *} cell-attention --ep MUTAG; "
        'echo "${COMPREPLY[@]}"'
    )
    ended = subprocess.run(["/bin/bash", "-c", ask], capture_output=True, text=True)
    assert ended.stdout.split() == ["--epsilon", "--epochs"]


BENCHED = ("can", "cin", "gin", "gps", "bag")
"""Enough networks to see every kind of measurement."""


@pytest.mark.long
def test_benchmark_measures_on_the_bundled_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cell_attention.benchmark.training.PIECE_SECONDS", 0.2)
    monkeypatch.setattr("cell_attention.benchmark.serving.SECONDS", 0.5)
    monkeypatch.setattr("cell_attention.benchmark.serving.REQUESTS", 200)
    installed = find_spec("fastapi") is not None and find_spec("uvicorn") is not None
    measured = memory.peak_megabytes  # in a process of its own, so one model is enough here

    def peak(name: str, contender: str, data_dir: str | None) -> float | None:
        return measured(name, contender, data_dir) if contender == "gin" else 1.0

    monkeypatch.setattr("cell_attention.benchmark.models.peak_megabytes", peak)
    monkeypatch.setattr("cell_attention.benchmark.ranks.peak_megabytes", peak)
    few = {name: about for name, about in MODELS.items() if not about.epochs or name in BENCHED}
    monkeypatch.setattr("cell_attention.benchmark.models.MODELS", few)
    molecules = tmp_path / "few.csv"  # not the forty thousand of HIV
    rows = [f"{'C' * n}{end}" for n in range(1, 33) for end in ("O", "c1ccccc1")]
    molecules.write_text("\n".join(["smiles", *rows]))
    words = ["benchmark", "--source", "MUTAG", "--presets", "MUTAG", "--json"]
    words += ["--molecules", str(molecules)]
    assert entry.run(words) == 0
    names = [line["name"] for line in json.loads(capsys.readouterr().out)["measurements"]]
    for part in (
        "networkx", "matrix products", "bookkeeping", "two processes against one",
        "CAN ÷ cin, time", "CAN ÷ gin, memory", "CAN ÷ bag, parameters", "÷ wl, all pairs",
        "÷ random-walk, all pairs", "few.csv: from the file to predictions",
    ):  # fmt: skip
        assert any(part in name for name in names)
    for part in ("serve for 64 clients", "memory of serve"):
        assert installed == any(part in name for name in names)


WRONG_OPTIONS = [
    (["predict", "model", "a.csv", "--folds", "3"], "predict has no option --folds; --help-all"),
    (["train", "MUTAG", "--target", "y"], "train has no option --target; did you mean --target-c"),
    (["crossval", "MUTAG", "--foldz=3"], "crossval has no option --foldz; did you mean --folds?"),
    # The nearest one of this verb, although serve has --port and crossval has --protocol.
    (["serve", "m", "--prot", "3"], "serve has no option --prot; did you mean --port?"),
    (["crossval", "m", "--prot", "3"], "crossval has no option --prot; did you mean --protocol?"),
    # Before what the parser finds missing because of it.
    (["train", "--smile_column", "x", "f.csv"], "--smile_column; did you mean --smiles-column?"),
    (["train", "MUTAG", "--columns", "y"], "--columns; did you mean --target-columns?"),
    (["train", "MUTAG", "--xyzzy"], "train has no option --xyzzy; --help-all lists those"),
    (["train", "MUTAG", "more"], "'more' is one argument too many; train --help says which there"),
    (["trian", "MUTAG"], "there is no verb 'trian'; did you mean train?"),
    (["crossval", "MUTAG", "--folds", "x"], "--folds must be a whole number, got 'x'"),
    (["crossval", "MUTAG", "--folds"], "--folds needs a value; --help-all says which"),
    (
        ["crossval", "MUTAG", "--hidden", "3", "3", "--heads", "2"],
        ": the command: hidden and heads must have one entry per layer, got 2 and 1",
    ),
    (["train", "MUTAG", "--learning-rate", "z"], "--learning-rate must be a number, got 'z'"),
    (["train", "MUTAG", "--hidden", "a", "b"], "--hidden must be numbers, got 'a', 'b'"),
    (
        ["train", "MUTAG", "--design", "foo"],
        "--design must be one of 'paper', 'ranks', got 'foo'",
    ),
]


def test_messages_have_flags_for_arguments_but_not_for_names_of_files() -> None:
    for written, shown in (
        ("m.csv, line 3: RDKit cannot read 'C1'; on_error=report lists such rows and leaves them "
         "out, on_error=skip leaves them out",
         "m.csv, line 3: RDKit cannot read 'C1'; --on-error report lists such rows and leaves them "
         "out, --on-error skip leaves them out"),
        ("values of 'y'; task=classification would take classes",
         "values of 'y'; --task classification would take classes"),
        ("folder runs/a has a run with other settings; name another, or use fresh to start over",
         "--out runs/a has a run with other settings; name another, or use --fresh to start over"),
        ("b.csv: smiles_column 'x' is not a column; it has task=tox, target_columns",
         "b.csv: --smiles-column 'x' is not a column; it has task=tox, target_columns"),
        ("lower max_polygon or raise Limits.steps",
         "lower max_polygon or raise Limits.steps (lift --limits.steps)"),
        ("its process died twice; use fewer jobs", "its process died twice; use fewer --jobs"),
        ("out 9.csv: no such file", "out 9.csv: no such file"),
        ("task=tox/jobs=4/none.csv: no such file", "task=tox/jobs=4/none.csv: no such file"),
    ):  # fmt: skip
        assert console.with_flags(written) == shown


@pytest.mark.parametrize(("words", "line"), WRONG_OPTIONS)
def test_wrong_options_of_every_kind_are_one_sentence(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(words) == 2
    said = capsys.readouterr().err.strip()
    assert line in said
    assert "\n" not in said
    assert len(said) < 150
