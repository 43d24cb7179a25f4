"""What `config.json` says of a model, held against itself and against the files beside it."""

import hashlib
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from cell_attention.errors import DataError, SourceNotFoundError

MOST_HEADER = 2**25
"""Bytes of the header of a safetensors file; that of a thousand networks is shorter."""
_FLOATS = ("F64", "F32", "F16", "BF16")
_WHOLE = {torch.int64: "I64", torch.int32: "I32", torch.bool: "BOOL"}

Range = tuple[float, float] | None
"""The least and the largest value of a column; None if there are no two different ones."""

Margin = float | None
"""Half of the width of an interval; None if there are too few validation graphs for one."""

LISTS = {
    "elements": (0, 999), "bonds": (0, 999), "charges": (-10_000, 10_000),
    "atom_charges": (-999, 999), "radicals": (0, 10_000), "nodes": (0, 2**40), "rings": (0, 2**40),
}  # fmt: skip
"""The lists of whole numbers in `seen`, and between which numbers they lie: elements and bond types
by RDKit's numbers, net charges, charges of atoms, unpaired electrons, and, as lists of one number,
the most nodes of a graph and the most atoms of a ring."""


def file_of(folder: Path, name: Any) -> Path:
    """Return the file that a record names, which must be in the folder itself."""
    plain = isinstance(name, str) and name == Path(name).name and "\\" not in name
    if not plain or name in ("", ".", ".."):
        record = folder / "config.json"
        raise DataError(f"{record}: weights must be a file in the folder, got {name!r}")
    path: Path = folder / name
    if not path.is_file():
        raise SourceNotFoundError(f"{folder} is not a MODEL_DIR: {name} is missing")
    if path.resolve().parent != folder.resolve():
        raise DataError(f"{path}: this link leaves the folder; copy the file there")
    return path


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


def seen_from(path: Path, record: Any) -> dict[str, tuple[int, ...]]:
    """Read the entry `seen`; refuse what is not a known list of whole numbers."""
    for name, numbers in record.items():
        if name not in LISTS or not isinstance(numbers, list):
            raise DataError(f"{path}: seen must hold lists of {', '.join(LISTS)}")
        least, most = LISTS[name]
        if not all(type(number) is int and least <= number <= most for number in numbers):
            raise DataError(f"{path}: seen {name} must be whole numbers in {least}…{most}")
        if name in ("nodes", "rings") and len(numbers) != 1:
            raise DataError(f"{path}: seen {name} must hold one number, got {len(numbers)}")
    return {str(name): tuple(numbers) for name, numbers in record.items()}


def values_from(
    path: Path, record: dict[str, Any], columns: int
) -> tuple[tuple[Range, ...], tuple[Margin, ...]]:
    """Read the entries `ranges` and `margins`: each has a range or a margin, or null, for each
    column of values, or nothing at all.
    """
    ranges, margins, most = record["ranges"], record["margins"], sys.float_info.max
    for name, entries in (("ranges", ranges), ("margins", margins)):
        if not isinstance(entries, list) or len(entries) not in {0, columns}:
            raise DataError(f"{path}: {name} must be a list with an entry per column of values")
    for entry in ranges:
        if entry is None:
            continue
        if (
            not isinstance(entry, list)
            or len(entry) != 2
            or not all(type(number) in (int, float) and abs(number) <= most for number in entry)
        ):
            raise DataError(f"{path}: ranges must hold two finite numbers each, got {entry!r:.60}")
        if entry[0] >= entry[1]:
            raise DataError(f"{path}: ranges must increase, got {entry}")
    for entry in margins:
        if entry is not None and not (type(entry) in (int, float) and 0 <= entry <= most):
            raise DataError(f"{path}: margins must be finite and at least 0, got {entry!r:.60}")
    return (
        tuple(None if entry is None else (float(entry[0]), float(entry[1])) for entry in ranges),
        tuple(None if entry is None else float(entry) for entry in margins),
    )


class _Unfilled(TorchFunctionMode):
    """Leaves out `normal_`, which on the meta device imports torch's compiler: that takes longer
    than all of a prediction, for numbers that do not exist.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if getattr(function, "__name__", "") == "normal_":
            return args[0] if args else given["tensor"]
        return function(*args, **given)


def read_weights(
    path: Path, sha256: str, build: Callable[[], nn.Module], *, members: int, own_code: bool
) -> dict[str, Tensor]:
    """Read the weights of some networks; refuse other names, types and shapes before memory is
    taken for them, another SHA-256, and weights that are not finite.

    build: makes one network; this is done on the meta device, which holds no numbers, unless the
    network has code of the user's own, which may not work there.
    """
    with nullcontext() if own_code else _Unfilled(), torch.device("cpu" if own_code else "meta"):
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
