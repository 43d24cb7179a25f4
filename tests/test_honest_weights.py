"""Weights of a MODEL_DIR are held against its configuration before memory is taken for them."""

import hashlib
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from cell_attention import NetworkConfig, load_dataset
from cell_attention.errors import DataError
from cell_attention.inference.model_folder import Model, load_model
from cell_attention.models.entries import MODELS
from cell_attention.models.registry import build_network, defaults, sizes_of

MUTAG = load_dataset("MUTAG")
SMALL = {"hidden": (2, 2), "heads": (1, 1), "head_hidden": 4, "counts": 0}
NETWORKS = [name for name, entry in MODELS.items() if entry.epochs and name != "chemprop"]


def made(folder: Path, name: str = "can", config: NetworkConfig | None = None) -> Path:
    """Save an untrained network of the registry."""
    config = config or (NetworkConfig(**SMALL) if name == "can" else defaults(name, "MUTAG")[0])
    sizes = sizes_of(name, MUTAG, 2)
    network = build_network(name, config, sizes)
    Model((network.eval(),), "classes", (), {}, {}, name=name, config=config, sizes=sizes).save_pretrained(folder)  # fmt: skip # noqa: E501
    return folder


def changed(folder: Path, **entries: Any) -> None:
    record = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**record, **entries}))


def rewritten(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    weights = folder / "model.safetensors"
    save_file(tensors, weights)
    changed(folder, weights_sha256=hashlib.sha256(weights.read_bytes()).hexdigest())


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_of_the_registry_is_read_back(name: str, tmp_path: Path) -> None:
    loaded = load_model(made(tmp_path, name)).network.state_dict()
    written = load_file(tmp_path / "model.safetensors")
    assert loaded.keys() == written.keys()
    assert all(torch.equal(loaded[entry], value) for entry, value in written.items())


def test_a_network_with_a_part_of_the_users_own_is_read_back(tmp_path: Path) -> None:
    from cell_attention import register_readout

    @register_readout("first_and_sum")
    class FirstAndSum(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            # It reads a number when it is built, which no tensor without numbers has.
            self.first = torch.nn.Parameter(torch.full((width,), float(torch.ones(1))))

        @classmethod
        def from_config(cls, config: NetworkConfig, in_channels: int) -> "FirstAndSum":
            return cls(in_channels)

        def forward(self, values: Any, group: Any, num_groups: int) -> Any:
            return self.first * values.new_zeros(num_groups, values.size(1)).index_add(
                0, group, values
            )

    config = NetworkConfig(**SMALL, readout="first_and_sum")
    assert "readout.first" in load_model(made(tmp_path, config=config)).network.state_dict()


MEASURE = """
import resource, sys, time
from cell_attention.errors import DataError
from cell_attention.inference.model_folder import load_model
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
load_model(sys.argv[1])
before, began = peak(), time.monotonic()
try:
    load_model(sys.argv[2])
    sys.exit("it was loaded")
except DataError as error:
    print(error)
print(peak() - before)
print(time.monotonic() - began)
"""


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hidden": [3000] * 6, "heads": [1] * 6}, "start.nodes.weight must be [9000, 7], got"),
        ({"head_hidden": 10**6}, "head.0.weight must be [1000000, "),
        ({"hidden": [10**6] * 2, "heads": [10**6] * 2}, "weights do not fit config.json"),
        ({"hidden": [1] * 10**5, "heads": [1] * 10**5}, "hidden must have at most 1,000 layers"),
    ],
)
def test_sizes_that_the_weights_do_not_have_take_no_memory(
    changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    good, bad = made(tmp_path / "good"), made(tmp_path / "bad")
    network = asdict(NetworkConfig(**SMALL))
    changed(bad, network={**network, **changes})
    ended = subprocess.run(
        [sys.executable, "-c", MEASURE, str(good), str(bad)], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    message, megabytes, seconds = ended.stdout.splitlines()
    assert named in message
    assert float(megabytes) < 50
    assert float(seconds) < 10


def test_a_weight_is_refused_by_name(tmp_path: Path) -> None:
    name, odd = "head.1.weight", made(tmp_path)
    tensors = load_file(odd / "model.safetensors")

    def refused(message: str, **changes: torch.Tensor | None) -> None:
        new = {**tensors, **{key.replace("__", "."): value for key, value in changes.items()}}
        rewritten(odd, {key: value for key, value in new.items() if value is not None})
        with pytest.raises(DataError, match=message) as caught:
            load_model(odd)
        assert "\n" not in str(caught.value)

    right = tensors[name]
    refused(r"head.1.weight must be \[2, 4\], got \[4, 2\]", head__1__weight=right.T.contiguous())
    refused("head.1.weight must be F64 or .* got I32", head__1__weight=right.int())
    refused("there is no 'head.1.weight'", head__1__weight=None)
    refused("the network has no 'extra'", extra=right.clone())
    for value in (float("nan"), float("inf")):
        spoiled = right.clone()
        spoiled[1, 1] = value
        refused("head.1.weight holds a value that is not a finite number", head__1__weight=spoiled)


def test_weights_in_another_precision_are_read(tmp_path: Path) -> None:
    odd = made(tmp_path)
    tensors = load_file(odd / "model.safetensors")
    rewritten(odd, {k: v.double() if v.is_floating_point() else v for k, v in tensors.items()})
    loaded = load_model(odd).network.state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in tensors.items())


@pytest.mark.parametrize(
    ("bytes_", "message"),
    [
        (b"", "its header is not complete"),
        ((2**40).to_bytes(8, "little"), "its header must have at most 33,554,432 bytes"),
        ((2**20).to_bytes(8, "little") + b"[" * 2**20, "its header is not complete"),
        ((2).to_bytes(8, "little") + b"[]", "its header must hold one object for each entry"),
        ((2).to_bytes(8, "little") + b"{}", "there is no 'start.nodes.weight'"),
    ],
)
def test_a_damaged_header_is_one_line(bytes_: bytes, message: str, tmp_path: Path) -> None:
    odd = made(tmp_path)
    (odd / "model.safetensors").write_bytes(bytes_)
    changed(odd, weights_sha256=hashlib.sha256(bytes_).hexdigest())
    with pytest.raises(DataError, match=message):
        load_model(odd)


def gatv2(score: Any = "gatv2") -> Any:
    torch.manual_seed(0)
    config = NetworkConfig.edges(hidden=(2, 2), heads=(2, 2), score=score)
    return build_network("can", config, sizes_of("can", MUTAG, 2))


def test_every_weight_of_gatv2_learns() -> None:
    network = gatv2()
    network(MUTAG[:4]).sum().backward()
    fixed = {"attention.0.epsilon", "attention.1.epsilon"}
    learned = {name for name, value in network.named_parameters() if value.grad is not None}
    assert learned == {name for name, _ in network.named_parameters()} - fixed
    assert not any("sender" in name for name in network.state_dict())


def test_the_weights_of_gatv2_are_drawn_as_ever() -> None:
    plain, network = gatv2("gat").state_dict(), gatv2().state_dict()
    assert {name for name in plain if "sender" not in name} == network.keys()
    assert all(torch.equal(plain[name], value) for name, value in network.items())


def test_a_model_with_senders_that_never_learned_is_read(tmp_path: Path) -> None:
    network = gatv2().eval()
    Model((network,), "classes", (), {}, {}).save_pretrained(tmp_path)
    old = {name: value for name, value in gatv2("gat").state_dict().items() if "sender" in name}
    assert len(old) == 4
    rewritten(tmp_path, {**network.state_dict(), **old})
    with torch.no_grad():
        assert torch.equal(load_model(tmp_path).network(MUTAG), network(MUTAG))
    rewritten(tmp_path, {**network.state_dict(), "sender": torch.ones(1)})
    with pytest.raises(DataError, match="the network has no 'sender'"):
        load_model(tmp_path)


def test_a_default_network_is_read_without_the_compiler_of_torch(tmp_path: Path) -> None:
    folder = made(tmp_path, config=NetworkConfig(hidden=(2,), heads=(1,)))  # with counts
    code = (
        "import sys; from cell_attention import load_model;"
        "load_model(sys.argv[1]); print('torch._dynamo' in sys.modules)"
    )
    words = [sys.executable, "-c", code, str(folder)]
    told = subprocess.run(words, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
