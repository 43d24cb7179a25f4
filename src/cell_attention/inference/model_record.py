"""What `config.json` says of a model, held against itself and against the file of the weights."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor, nn

from cell_attention.errors import DataError, SourceNotFoundError

MOST_HEADER = 2**25
"""Bytes of the header of a safetensors file; that of a thousand networks is shorter."""
_FLOATS = ("F64", "F32", "F16", "BF16")
_WHOLE = {torch.int64: "I64", torch.int32: "I32", torch.bool: "BOOL"}


def require_consistent(path: Path, record: dict[str, Any]) -> None:
    """Refuse entries that contradict each other: predictions would get wrong names."""
    task, outputs = record["task"], record["sizes"]["outputs"]
    labels, names, limits = record["labels"], record["target_names"], record["thresholds"]
    for name in ("labels", "target_names"):
        texts = record[name]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise DataError(f"{path}: {name} must be a list of texts")
        if len(set(texts)) < len(texts):
            raise DataError(f"{path}: {name} must differ from each other")
    counts = {
        "labels": (len(labels), {0, outputs} if task == "classes" else {0}),
        "target_names": (len(names), {0, 1 if task == "classes" else outputs}),
        "thresholds": (
            len(limits) if isinstance(limits, list) else -1,
            {0, *([1] if task == "classes" and outputs == 2 else [])}
            if task != "labels"
            else {0, outputs},
        ),
    }
    warmth = record["temperatures"]
    known = {"classes": {0, 1}, "labels": {0, outputs}}.get(task, {0})
    counts["temperatures"] = len(warmth) if isinstance(warmth, list) else -1, known
    for name, (count, allowed) in counts.items():
        if count not in allowed:
            raise DataError(f"{path}: {name} do not fit {outputs} outputs of task {task!r}")
    if not all(type(limit) in (int, float) and 0.0 <= limit <= 1.0 for limit in limits):
        raise DataError(f"{path}: thresholds must lie in [0, 1], got {limits}")
    if not all(type(number) in (int, float) and 1e-3 <= number <= 1e3 for number in warmth):
        raise DataError(f"{path}: temperatures must lie in [0.001, 1000], got {warmth}")


def weights_path(folder: Path, name: Any) -> Path:
    """Return the file of the weights, which must be in the folder itself."""
    if not isinstance(name, str) or name != Path(name).name or name in ("", ".", "..") or "\\" in name:  # fmt: skip # noqa: E501
        raise DataError(f"{folder}/config.json: weights must be a file in the folder, got {name!r}")
    if not (folder / name).is_file():
        raise SourceNotFoundError(f"{folder} is not a MODEL_DIR: {name} is missing")
    if (folder / name).resolve().parent != folder.resolve():
        raise DataError(f"{folder / name}: this link leaves the folder; copy the file there")
    return folder / name


def read_weights(
    path: Path, sha256: str, build: Callable[[], nn.Module], *, members: int, own_code: bool
) -> dict[str, Tensor]:
    """Read the weights of some networks; refuse other names, types and shapes before memory is
    taken for them, another SHA-256, and weights that are not finite.

    build: makes one network; this is done on the meta device, which holds no numbers, unless the
    network has code of the user's own, which may not work there.
    """
    with torch.device("cpu" if own_code else "meta"):
        network = build()
    prefixes = [f"{member}." for member in range(members)] if members > 1 else [""]
    state, modules = network.state_dict(), dict(network.named_modules())
    _require_entries(
        path,
        {prefix + name: value for prefix in prefixes for name, value in state.items()},
        former={
            f"{prefix}{place}.{name}"
            for prefix in prefixes
            for place, module in modules.items()
            for name in getattr(module, "former", ())
        },
    )
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DataError(f"{path}: the SHA-256 differs from weights_sha256 in config.json")
    tensors = load(data)
    for name, value in tensors.items():
        if not bool(value.isfinite().all()):
            raise DataError(f"{path}: {name} holds a value that is not a finite number")
    return tensors


def _require_entries(path: Path, expected: dict[str, Tensor], *, former: set[str]) -> None:
    """Compare the header of a safetensors file with tensors of the same types and shapes.

    former: names that models of earlier versions have beside these.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MOST_HEADER:
            rule = f"its header must have at most {MOST_HEADER:,} bytes"
            raise _misfit(path, f"{rule}, got {length:,}")
        text = file.read(length)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise _misfit(path, "its header is not complete") from None
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise _misfit(path, "its header must hold one object for each entry")
    found.pop("__metadata__", None)
    for name, value in expected.items():
        if name not in found:
            raise _misfit(path, f"there is no {name!r}")
        shape, kind = found[name].get("shape"), found[name].get("dtype")
        if shape != list(value.shape):
            raise _misfit(path, f"{name} must be {list(value.shape)}, got {shape!s:.80}")
        kinds = _FLOATS if value.is_floating_point() else (_WHOLE.get(value.dtype, ""),)
        if kind not in kinds:
            raise _misfit(path, f"{name} must be {' or '.join(kinds)}, got {kind!s:.20}")
    if more := found.keys() - expected.keys() - former:
        raise _misfit(path, f"the network has no {min(more)!r}")


def _misfit(path: Path, why: str) -> DataError:
    return DataError(f"{path}: the weights do not fit config.json ({why})")
