"""The file of the weights, held against the network of `config.json` before memory is taken."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cell_attention.errors import DataError, SourceNotFoundError
from cell_attention.models.registry import find_model
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.parts import PARTS

MOST_LAYERS = 1000
MOST_HEADER = 2**25
"""Bytes of the header of a safetensors file; that of a thousand networks is shorter."""
_FLOATS = ("F64", "F32", "F16", "BF16")
_WHOLE = {torch.int64: "I64", torch.int32: "I32", torch.bool: "BOOL"}


def weights_path(folder: Path, name: Any) -> Path:
    """Return the file of the weights, which must be in the folder itself."""
    if not isinstance(name, str) or name != Path(name).name or name in ("", ".", "..") or "\\" in name:  # fmt: skip # noqa: E501
        raise DataError(f"{folder}/config.json: weights must be a file in the folder, got {name!r}")
    if not (folder / name).is_file():
        raise SourceNotFoundError(f"{folder} is not a MODEL_DIR: {name} is missing")
    if (folder / name).resolve().parent != folder.resolve():
        raise DataError(f"{folder / name}: this link leaves the folder; copy the file there")
    return folder / name


def read_fitting(
    path: Path,
    build: Callable[[], nn.Module],
    members: int,
    *,
    name: str,
    config: NetworkConfig,
) -> bytes:
    """Read a safetensors file; refuse one whose header does not name the weights of these networks,
    with their types and shapes.

    build: makes one network; this is done on the meta device, which holds no numbers. name, config:
    what it is in the registry. A network with code of the user's own is built as it is.
    """
    if len(config.hidden) > MOST_LAYERS:
        raise DataError(f"{path}: hidden must have at most {MOST_LAYERS:,} layers")
    own = [find_model(name).implementation]
    own += [entries[getattr(config, slot)].implementation for slot, entries in PARTS.items()]
    with torch.device("meta" if all(isinstance(code, str) for code in own) else "cpu"):
        state = build().state_dict()
    found = _header(path)
    expected = {
        f"{member}.{entry}" if members > 1 else entry: value
        for member in range(members)
        for entry, value in state.items()
    }
    for entry, value in expected.items():
        _require_entry(path, entry, value, found.pop(entry, None))
    if found:
        raise _misfit(path, f"the network has no {min(found)!r}")
    return path.read_bytes()


def require_finite(path: Path, tensors: dict[str, Tensor]) -> None:
    """Refuse weights that are not numbers."""
    for name, value in tensors.items():
        if not bool(value.isfinite().all()):
            raise DataError(f"{path}: {name} holds a value that is not a finite number")


def _header(path: Path) -> dict[str, Any]:
    """Return the entries of a safetensors file: their types and shapes by name."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MOST_HEADER:
            raise _misfit(
                path, f"its header must have at most {MOST_HEADER:,} bytes, got {length:,}"
            )
        text = file.read(length)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise _misfit(path, "its header is not complete") from None
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise _misfit(path, "its header must hold one object for each entry")
    found.pop("__metadata__", None)
    return found


def _require_entry(path: Path, name: str, value: Tensor, found: dict[str, Any] | None) -> None:
    if found is None:
        raise _misfit(path, f"there is no {name!r}")
    if found.get("shape") != list(value.shape):
        raise _misfit(path, f"{name} must be {list(value.shape)}, got {found.get('shape')!s:.80}")
    kinds = _FLOATS if value.is_floating_point() else (_WHOLE.get(value.dtype, ""),)
    if found.get("dtype") not in kinds:
        raise _misfit(path, f"{name} must be {' or '.join(kinds)}, got {found.get('dtype')!s:.20}")


def _misfit(path: Path, why: str) -> DataError:
    return DataError(f"{path}: the weights do not fit config.json ({why})")
