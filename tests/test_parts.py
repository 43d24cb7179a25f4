"""Mistakes in parts and models of the user's own: one sentence with the class and the rule."""

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cell_attention import (
    CellAttentionNetwork,
    CellComplex,
    NetworkConfig,
    crossvalidate,
    load_dataset,
    load_plugins,
    predict,
    register_attention,
    register_model,
    register_pooling,
    register_readout,
    train,
)
from cell_attention.cli.entry import run as run_words
from cell_attention.errors import DataError, InputError
from cell_attention.models.entries import MODELS
from cell_attention.models.registered import code_digests, registering_modules
from cell_attention.nn.attention import Attended, CellAttention
from cell_attention.nn.parts import PARTS
from cell_attention.nn.pooling import EdgePooling, Pooled
from cell_attention.parallel.engine import Work
from learning import refused

SMALL: dict[str, Any] = {"lift_heads": 2, "hidden": (4, 4), "heads": (2, 2)}


@pytest.fixture(scope="module")
def mutag() -> CellComplex:
    return load_dataset("MUTAG")


@pytest.fixture(autouse=True)
def only_here() -> Iterator[None]:
    """Forget what a test registers."""
    models, parts = dict(MODELS), {slot: dict(known) for slot, known in PARTS.items()}
    yield
    MODELS.clear()
    MODELS.update(models)
    for slot, known in parts.items():
        PARTS[slot].clear()
        PARTS[slot].update(known)


def pooling_that_returns(result: Callable[[Tensor, Tensor, Tensor], Any]) -> type:
    """A pooling layer that keeps all edges, and returns what the function makes of it."""

    class Wrong(nn.Module):
        @classmethod
        def from_config(cls, config: NetworkConfig, in_channels: int, kernel: str) -> "Wrong":
            return cls()

        def forward(self, edges: Tensor, edge_complex: Tensor, num_complexes: int) -> Any:
            return result(edges, torch.arange(edges.size(0)), edges.sum(1))

    return Wrong


POOLINGS: list[tuple[Callable[[Tensor, Tensor, Tensor], Any], str]] = [
    (lambda e, k, s: (e, k, s), "forward must return Pooled, got tuple"),
    (lambda e, k, s: None, "forward must return Pooled, got NoneType"),
    (lambda e, k, s: Pooled(e, k.flip(0), s), "forward: kept must be increasing, each row once"),
    (lambda e, k, s: Pooled(e, k * 0, s), "forward: kept must be increasing"),
    (lambda e, k, s: Pooled(e, k + 1, s), r"forward: kept must lie in 0…\d+, got 1…\d+"),
    (lambda e, k, s: Pooled(e, k - 1, s), r"forward: kept must lie in 0…\d+, got -1…\d+"),
    (
        lambda e, k, s: Pooled(e, k.float(), s),
        r"kept must be \(K,\) row numbers of type int64, got",
    ),
    (lambda e, k, s: Pooled(e, k > 0, s), r"of type int64, got \(\d+,\) of torch.bool"),
    (lambda e, k, s: Pooled(e, k[:, None], s), r"kept must be \(K,\) row numbers"),
    (lambda e, k, s: Pooled(e, k.tolist(), s), "row numbers of type int64, got list"),
    (lambda e, k, s: Pooled(e, k[1:], s), r"forward: edges must be \(\d+, 8\), got"),
    (lambda e, k, s: Pooled(e[:, :3], k, s), r"forward: edges must be \(\d+, 8\), got \(\d+, 3\)"),
    (lambda e, k, s: Pooled(e.double(), k, s), "edges must be torch.float32 on cpu, got torch.fl"),
    (lambda e, k, s: Pooled(e, k, s[1:]), r"forward: score must be \(\d+,\), got"),
    (lambda e, k, s: Pooled(e, k, None), "score must be .*, got NoneType"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("result", "rule"), POOLINGS)
def test_a_wrong_result_of_a_pooling_layer_is_one_sentence(
    result: Callable[[Tensor, Tensor, Tensor], Any], rule: str, mutag: CellComplex
) -> None:
    register_pooling("wrong")(pooling_that_returns(result))
    network = CellAttentionNetwork(NetworkConfig.edges(**SMALL, pooling_layer="wrong"), 7, 4, 2)
    with pytest.raises(InputError, match=rf"^pooling_layer 'wrong' \(.*Wrong\): .*{rule}"):
        network(mutag[:3])


ATTENTIONS: list[tuple[Callable[[Tensor, Tensor, Tensor], Any], str]] = [
    (lambda e, low, up: e, "forward must return Attended, got Tensor"),
    (lambda e, low, up: Attended(e[:, :5], low, up), r"edges must be \(\d+, 8\), got \(\d+, 5\)"),
    (lambda e, low, up: Attended(e[1:], low, up), r"edges must be \(\d+, 8\), got"),
    (lambda e, low, up: Attended(e, low[1:], up), r"lower must be \(\d+, 2\), got"),
    (lambda e, low, up: Attended(e, low, up[1:]), r"upper must be \(\d+, 2\), got"),
    (lambda e, low, up: Attended(e, low, up[:, :1]), r"upper must be \(\d+, 2\), got"),
    (lambda e, low, up: Attended(e, low[:, :0], up[:, :0]), r"lower must be \(\d+, 1\), got"),
    (lambda e, low, up: Attended(e, low.sum(1), up), r"lower must be \(\d+, 1\), got"),
]


@pytest.mark.parametrize(("result", "rule"), ATTENTIONS)
def test_a_wrong_result_of_an_attention_layer_is_one_sentence(
    result: Callable[[Tensor, Tensor, Tensor], Any], rule: str, mutag: CellComplex
) -> None:
    class Wrong(CellAttention):
        def forward(self, *given: Any) -> Any:
            right = super().forward(*given)
            return result(right.edges, right.lower, right.upper)

    register_attention("wrong")(Wrong)
    network = CellAttentionNetwork(NetworkConfig.edges(**SMALL, attention_layer="wrong"), 7, 4, 2)
    with pytest.raises(InputError, match=rf"^attention_layer 'wrong' \(.*Wrong\): .*{rule}"):
        network(mutag[:3])


@pytest.mark.parametrize("rows", [0, 2])
def test_a_readout_of_the_wrong_shape_is_one_sentence(rows: int, mutag: CellComplex) -> None:
    def wrong(values: Tensor, group: Tensor, num_groups: int) -> Tensor:
        return values.sum(rows % 2, keepdim=True)[:rows]

    register_readout("wrong")(wrong)
    network = CellAttentionNetwork(NetworkConfig.edges(**SMALL, readout="wrong"), 7, 4, 2)
    with pytest.raises(
        InputError, match=r"readout 'wrong' \(.*wrong\): the result must be \(3, 8\)"
    ):
        network(mutag[:3])


def test_right_parts_of_ones_own_give_the_numbers_of_the_built_in_ones(mutag: CellComplex) -> None:
    """Networks of checked parts can be copied and saved, and have the same names of weights."""
    register_pooling("mine")(type("Mine", (EdgePooling,), {}))
    register_attention("mine")(type("Ours", (CellAttention,), {}))

    @register_readout("mine")
    class Sum(nn.Module):
        @classmethod
        def from_config(cls, config: NetworkConfig, in_channels: int) -> "Sum":
            return cls()

        def forward(self, values: Tensor, group: Tensor, num_groups: int) -> Tensor:
            return values.new_zeros(num_groups, values.size(1)).index_add(0, group, values)

    torch.manual_seed(0)
    theirs = CellAttentionNetwork(NetworkConfig.edges(**SMALL), 7, 4, 2)
    named = {"pooling_layer": "mine", "attention_layer": "mine", "readout": "mine"}
    mine = CellAttentionNetwork(NetworkConfig.edges(**SMALL, **named), 7, 4, 2)
    mine.load_state_dict(theirs.state_dict())
    assert torch.equal(copy.deepcopy(mine)(mutag[:9]), theirs(mutag[:9]))
    assert not any(module._forward_hooks for module in theirs.modules()), "no cost without need"


class Complete(nn.Module):
    """Every method of a part, with any arguments."""

    @classmethod
    def from_config(cls, *given: Any) -> Any:
        return cls()

    def forward(self, *given: Any) -> Any:
        return None


def with_methods(**methods: Any) -> type:
    return type("Wrong", (Complete,), methods)


@pytest.mark.parametrize(
    ("register", "part", "rule"),
    [
        (register_pooling, nn.Identity, "must have from_config, a class method that takes "),
        (register_pooling, with_methods(forward=nn.Module.forward), "must have forward, a method"),
        (
            register_pooling,
            with_methods(from_config=lambda config, in_channels: None),
            r"from_config must be a class method that takes \(config, in_channels, kernel\), but",
        ),
        (
            register_pooling,
            with_methods(forward=lambda self, edges: None),
            r"forward must be a method that takes \(edges, edge_complex, num_complexes\), but it "
            r"takes \(edges\)",
        ),
        (register_pooling, lambda edges: edges, "must be a class with from_config and forward"),
        (register_pooling, nn.Identity(), "must be a class or a function"),
        (
            register_attention,
            with_methods(from_config=lambda config, in_channels, kernel: None),
            r"takes \(config, layer, in_channels, kernel\), but it takes",
        ),
        (register_readout, lambda values: values, r"takes \(values, group, num_groups\), but it"),
        (register_readout, nn.Identity, "must have from_config"),
    ],
)
def test_a_part_with_another_signature_is_refused_when_it_is_registered(
    register: Any, part: Any, rule: str
) -> None:
    with pytest.raises(InputError, match=f"'wrong' .*{rule}"):
        register("wrong")(part)
    assert not any("wrong" in known for known in PARTS.values())


def test_a_layer_that_is_no_module_is_one_sentence() -> None:
    register_pooling("wrong")(with_methods(from_config=classmethod(lambda *given: 3)))
    with pytest.raises(InputError, match=r"'wrong' \(Wrong\): from_config must return a torch mod"):
        CellAttentionNetwork(NetworkConfig.edges(**SMALL, pooling_layer="wrong"), 7, 4, 2)


@pytest.mark.parametrize(
    ("reads", "rule"),
    [
        (("hiden",), "reads must name fields of NetworkConfig, got 'hiden'"),
        ("hidden", "reads must be a tuple of names, got 'hidden'"),
    ],
)
def test_reads_must_name_fields(reads: Any, rule: str) -> None:
    for register in (register_pooling, register_attention, register_readout):
        with pytest.raises(InputError, match=rf"'wrong' \(Complete\): {rule}"):
            register("wrong", reads=reads)(Complete)
    with pytest.raises(InputError, match=rf"model 'wrong' \(Net\): {rule}"):
        register_model("wrong", reads=reads)(Net)


class Net(nn.Module):
    """A model that is right: a linear map of summed node features."""

    def __init__(self, config: Any, node_features: int, edge_features: int, outputs: int) -> None:
        super().__init__()
        self.map = nn.Linear(node_features, outputs)

    def forward(self, complexes: CellComplex) -> Tensor:
        nodes = complexes.node_features
        sums = nodes.new_zeros(len(complexes), nodes.size(1))
        found: Tensor = self.map(sums.index_add(0, complexes.node_complex, nodes))
        return found


class Fits:
    """A fitter that is right."""

    def __init__(self, name: str) -> None:
        self.name = name

    def require(self, settings: Any, complexes: CellComplex) -> None:
        """Accept everything."""

    def fit_fold(self, task: Any) -> Any:
        return {"score": [50.0]}


def build_of_other_names(config: Any, nodes: int, edges: int, outputs: int) -> nn.Module:
    return nn.Identity()


@pytest.mark.parametrize(
    ("made", "more", "rule"),
    [
        (
            type("Short", (Net,), {"__init__": lambda self, config: None}),
            {},
            r"must be built with \(config, node_features, edge_features, outputs\), but it takes "
            r"\(config\)",
        ),
        (build_of_other_names, {}, r"but it takes \(config, nodes, edges, outputs\)"),
        (
            type("Wrong", (Net,), {"forward": lambda self: None}),
            {},
            r"forward must be a method that takes \(complexes\), but it takes \(\)",
        ),
        (type("Wrong", (Net,), {"forward": nn.Module.forward}), {}, "must have forward, a method"),
        (Net, {"network": {"hiden": 3}}, "network must name fields of NetworkConfig, got 'hiden'"),
        (Net, {"packages": ("no-such-package",)}, "packages must be installed packages, got 'no"),
        (Net(None, 1, 0, 1), {}, "must be a class or a function"),
        (
            type("Wrong", (Fits,), {"__init__": lambda self: None}),
            {},
            r"must be built with \(name\), but it takes \(\)",
        ),
        (
            type("Wrong", (Fits,), {"require": lambda self, settings: None}),
            {},
            r"require must be a method that takes \(settings, complexes\), but",
        ),
        (
            type("Wrong", (Fits,), {"fit_fold": lambda self: None}),
            {},
            r"fit_fold must be a method that takes \(task\), but",
        ),
        (type("Wrong", (), {"fit_fold": Fits.fit_fold}), {}, r"must be built with \(name\)"),
        (
            type("Wrong", (), {"fit_fold": Fits.fit_fold, "__init__": Fits.__init__}),
            {},
            r"must have require, a method that takes \(settings, complexes\)",
        ),
    ],
)
def test_a_model_with_another_signature_is_refused_when_it_is_registered(
    made: Any, more: dict[str, Any], rule: str
) -> None:
    with pytest.raises(InputError, match=f"model 'wrong' .*{rule}"):
        register_model("wrong", **more)(made)
    assert "wrong" not in MODELS


def wrong_outputs(result: Callable[[Tensor], Any]) -> type:
    return type("Wrong", (Net,), {"forward": lambda self, c: result(Net.forward(self, c))})


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        (
            wrong_outputs(lambda out: out[:, :1]),
            r"result of forward must be \(2, 2\), got \(2, 1\)",
        ),
        (wrong_outputs(lambda out: out[:1]), r"result of forward must be \(2, 2\), got \(1, 2\)"),
        (wrong_outputs(lambda out: (out, out)), r"must be \(2, 2\), got tuple"),
        (wrong_outputs(lambda out: out.argmax(1)), r"got \(2,\) of torch.int64"),
        (wrong_outputs(lambda out: out.detach()), "result of forward must depend on its param"),
        (
            type("Wrong", (Net,), {"__init__": lambda self, *a, **k: nn.Module.__init__(self)}),
            "must have parameters that can be trained, got none",
        ),
        (
            lambda config, node_features, edge_features, outputs: 3,
            "must be a torch module, got int",
        ),
    ],
)
def test_a_model_with_wrong_outputs_is_one_sentence(
    made: Any, rule: str, mutag: CellComplex
) -> None:
    register_model("wrong")(made)
    with pytest.raises(InputError, match=rf"^model 'wrong' \(.*\).*{rule}"):
        train(mutag, "wrong", training={"epochs": 1})


@pytest.mark.parametrize(
    "found", [None, 0.5, {}, {"score": 0.5}, {"score": [1.0, 2.0]}, {"score": [torch.ones(())]}]
)
def test_a_fitter_with_a_wrong_record_is_one_sentence(found: Any, mutag: CellComplex) -> None:
    register_model("wrong")(type("Wrong", (Fits,), {"fit_fold": lambda self, task: found}))
    rule = r"fit_fold must return a dictionary with score, a list with one number, got"
    with pytest.raises(InputError, match=rf"model 'wrong' \(Wrong\): {rule}"):
        crossvalidate(mutag, "wrong", folds=3)


def test_a_fitter_may_keep_only_what_json_can_hold(mutag: CellComplex) -> None:
    kept = {"score": [1.0], "weights": torch.ones(2)}
    register_model("wrong")(type("Wrong", (Fits,), {"fit_fold": lambda self, task: kept}))
    with pytest.raises(InputError, match=r"all that JSON can hold; Object of type Tensor"):
        crossvalidate(mutag, "wrong", folds=3)


def test_a_fitter_and_a_network_that_are_right_run(mutag: CellComplex) -> None:
    register_model("fits")(Fits)
    result = crossvalidate(mutag, "fits", folds=3)
    assert result.protocols["paper"] is not None
    assert result.protocols["paper"].mean == 50.0
    register_model("net")(Net)
    assert predict(train(mutag, "net", training={"epochs": 1}), mutag).counts["predicted"] == 188


def test_a_change_that_the_chosen_layer_ignores_is_refused(
    mutag: CellComplex, capsys: pytest.CaptureFixture[str]
) -> None:
    every: Any = type("Every", (EdgePooling,), {})
    register_pooling("every", reads=("ratio",))(every)
    rule = "pooling_layer 'every' does not use pool_activation, which must keep its default"
    words = ["train", "MUTAG", "--pooling-layer", "every", "--pool-activation", "relu"]
    assert "pooling 'none' does not use pooling_layer" in refused(words, capsys)
    assert rule in refused([*words, "--pooling", "global"], capsys)
    with pytest.raises(InputError, match=rule):
        train(mutag, network=NetworkConfig.edges(pooling_layer="every", pool_activation="relu"))
    once = {"epochs": 1}
    pools = {"hidden": (4,), "heads": (1,), "pooling": "global"}
    train(mutag, network={"pooling_layer": "every", "ratio": 0.5, **pools}, training=once)
    register_pooling("silent")(type("Silent", (EdgePooling,), {}))
    changed = {"pooling_layer": "silent", "pool_activation": "relu"}
    train(mutag, network={**changed, **pools}, training=once)
    register_pooling("none", reads=())(type("Nothing", (EdgePooling,), {}))
    # The preset of MUTAG has a ratio of 1, the default is 0.75: neither was asked for.
    assert run_words(["lift", "MUTAG"]) == 0
    preset = {"design": "paper", "pooling_layer": "none"}
    for config in (preset, NetworkConfig.edges(pooling_layer="none")):
        train("MUTAG", network=config, training=once)
    register_attention("plain", reads=("hidden",))(type("Plain", (CellAttention,), {}))
    with pytest.raises(InputError, match="attention_layer 'plain' does not use score"):
        train(mutag, network={"design": "paper", "attention_layer": "plain", "score": "gatv2"})


def test_built_in_parts_state_every_field_that_they_read() -> None:
    source = {
        slot: (Path(sys.modules["cell_attention"].__path__[0]) / "nn" / f"{file}.py").read_text()
        for slot, file in (("attention_layer", "attention"), ("pooling_layer", "pooling"))
    }
    for slot, name in (("attention_layer", "cell"), ("pooling_layer", "top_k")):
        read = set(re.findall(r"\bconfig\.(\w+)", source[slot]))
        assert read == set(PARTS[slot][name].reads or ())  # type: ignore[index]


def plugin(folder: Path, name: str, model: str, more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    text = (
        "from cell_attention import register_model\n"
        f"@register_model({model!r})\n"
        "class Fits:\n"
        "    def __init__(self, name): pass\n"
        "    def require(self, settings, complexes): pass\n"
        f"    def fit_fold(self, task):\n        {more or 'pass'}\n"
        "        return {'score': [50.0]}\n"
    )
    (folder / name).write_text(text)
    return folder / name


def test_two_plugins_of_one_name_live_side_by_side(tmp_path: Path) -> None:
    load_plugins(
        [plugin(tmp_path / "a", "same.py", "one"), plugin(tmp_path / "b", "same.py", "two")]
    )
    one, two = (sys.modules[MODELS[name].load().__module__] for name in ("one", "two"))
    assert one is not two
    assert (one.Fits, two.Fits) == (MODELS["one"].load(), MODELS["two"].load())
    assert len(code_digests()["plugin same.py"].split()) == 2


def test_an_edited_plugin_is_told_when_it_continues_a_run(tmp_path: Path) -> None:
    path = plugin(tmp_path, "edited.py", "edited")
    words = [
        sys.executable, "-m", "cell_attention", "crossval", "MUTAG", "--plugin", str(path),
        "--model", "edited", "--folds", "3", "--out", str(tmp_path / "run"), "--jobs", "1",
    ]  # fmt: skip
    for edited in (False, True):
        if edited:
            path.write_text(path.read_text() + "\n# another thought\n")
            (tmp_path / "run" / "fold-01.json").unlink()
        ended = subprocess.run(words, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        assert ("started with other versions (plugin edited.py" in ended.stderr) == edited
    kept = json.loads((tmp_path / "run" / "run.json").read_text())["versions"]
    assert [len(maker["plugin edited.py"]) for maker in kept] == [64, 64]


def test_an_error_inside_a_plugin_is_one_line_with_its_place(tmp_path: Path) -> None:
    path = plugin(tmp_path, "broken.py", "broken", "task.nosuch")
    for jobs, code in (("1", 2), ("2", 1)):
        ended = subprocess.run(
            [
                sys.executable, "-m", "cell_attention", "crossval", "MUTAG", "--plugin", str(path),
                "--model", "broken", "--folds", "3", "--out", str(tmp_path / jobs), "--jobs", jobs,
            ],
            capture_output=True, text=True,
        )  # fmt: skip
        assert ended.returncode == code
        (line,) = [one for one in ended.stderr.splitlines() if one.startswith("cell-attention: ")]
        assert "broken.py, line 7: AttributeError: 'FoldTask' object has no" in line
        assert "Traceback" not in ended.stderr


def test_a_plugin_that_the_program_has_imported_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = plugin(tmp_path, "imported_before.py", "imported")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("imported_before")
    assert "imported_before" in registering_modules()
    load_plugins(path)
    assert "imported_before" in Work("job", print, ()).modules
    assert any(file == str(path) for file, _ in Work("job", print, ()).plugins)


IN_WORKERS = """
from cell_attention import crossvalidate, register_model
{first}
if __name__ == "__main__":
    found = crossvalidate("MUTAG", "fits", folds=3, jobs=2, engine={engine!r})
    print(found.protocols["paper"].mean)
"""


@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_workers_know_models_of_imported_modules(tmp_path: Path, engine: str) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    plugin(tmp_path, "mine.py", "fits")
    (tmp_path / "script.py").write_text(IN_WORKERS.format(first="import mine", engine=engine))
    ended = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.stdout.strip() == "50.0", ended.stderr


def test_a_class_of_a_notebook_that_workers_need_is_one_clear_line(tmp_path: Path) -> None:
    """A program without a file, which worker processes cannot run again."""
    text = plugin(tmp_path, "mine.py", "fits").read_text()
    ended = subprocess.run(
        [sys.executable, "-c", IN_WORKERS.format(first=text, engine="processes")],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    last = ended.stderr.strip().splitlines()[-1]
    assert "workers do not know classes of a notebook" in last
    assert "load_plugins([FILE])" in last


def test_a_module_that_workers_cannot_import_is_named(tmp_path: Path) -> None:
    plugin(tmp_path, "mine.py", "fits")
    first = "import sys; sys.path.insert(0, 'sub'); import mine; sys.path.remove('sub')"
    (tmp_path / "sub").mkdir()
    (tmp_path / "mine.py").rename(tmp_path / "sub" / "mine.py")
    (tmp_path / "script.py").write_text(
        IN_WORKERS.format(first=f"if __name__ == '__main__':\n    {first}", engine="processes")
    )
    ended = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True
    )
    last = ended.stderr.strip().splitlines()[-1]
    assert "a worker cannot import mine (ModuleNotFoundError" in last
    assert "load its file with load_plugins" in last


def test_a_plugin_that_changes_while_workers_run_is_refused(tmp_path: Path) -> None:
    from cell_attention.plugins import load_same

    path = plugin(tmp_path, "changing.py", "changing")
    load_plugins(path)
    with pytest.raises(DataError, match="has changed since the command was started"):
        load_same([(str(path), "0" * 64)], [])
