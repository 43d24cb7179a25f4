"""Parts of your own in a network: what they return is checked whenever they run.

Each mistake is one sentence that names the class and the rule. Built-in parts are not checked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from cell_attention.errors import InputError
from cell_attention.nn.parts import Slot, title_of


def build_checked(slot: Slot, name: str, part: Any, *arguments: Any, width: int) -> Any:
    """Build a part of the user's own as `build_part` does, with a check of all that it returns."""
    title = title_of(slot, name, part)
    check = _PartCheck(slot, title, width)
    if not isinstance(part, type):
        return _CheckedFunction(part, check)
    made = part.from_config(*arguments)  # type: ignore[attr-defined]
    if not isinstance(made, nn.Module):
        raise InputError(
            f"{title}: from_config must return a torch module, got {type(made).__name__}"
        )
    made.register_forward_hook(check)
    return made


@dataclass(frozen=True)
class _PartCheck:
    """A forward hook that refuses a wrong result; an object, so that networks can be copied."""

    slot: Slot
    title: str
    width: int

    def __call__(self, module: Any, given: tuple[Any, ...], result: Any) -> None:
        _CHECKS[self.slot](f"{self.title}: forward", self.width, given, result=result)


@dataclass(frozen=True)
class _CheckedFunction:
    """A readout that is a plain function."""

    function: Callable[..., Tensor]
    check: _PartCheck

    def __call__(self, *given: Any) -> Tensor:
        result = self.function(*given)
        _check_readout(self.check.title, self.check.width, given, result=result)
        return result


def _check_attended(title: str, width: int, given: tuple[Any, ...], *, result: Any) -> None:
    from cell_attention.nn.attention import Attended

    edges, lower, upper = given[:3]
    if not isinstance(result, Attended):
        raise InputError(f"{title} must return Attended, got {type(result).__name__}")
    require_tensor(f"{title}: edges", result.edges, (edges.size(0), width), like=edges)
    heads = result.lower.size(1) if _is_table(result.lower) else 1
    for side, pairs in (("lower", lower), ("upper", upper)):
        weights = getattr(result, side)
        require_tensor(f"{title}: {side}", weights, (pairs.size(1), max(heads, 1)))


def _check_pooled(title: str, width: int, given: tuple[Any, ...], *, result: Any) -> None:
    from cell_attention.nn.pooling import Pooled

    edges = given[0]
    if not isinstance(result, Pooled):
        raise InputError(f"{title} must return Pooled, got {type(result).__name__}")
    kept, count = result.kept, edges.size(0)
    if not isinstance(kept, Tensor) or kept.dim() != 1 or kept.dtype != torch.int64:
        raise InputError(f"{title}: kept must be (K,) row numbers of type int64, got {_form(kept)}")
    if kept.numel() and (int(kept.min()) < 0 or int(kept.max()) >= count):
        got = f"{int(kept.min())}…{int(kept.max())}"
        raise InputError(f"{title}: kept must lie in 0…{count - 1}, got {got}")
    if bool((kept[1:] <= kept[:-1]).any()):
        raise InputError(f"{title}: kept must be increasing, each row once; sort it")
    require_tensor(f"{title}: edges", result.edges, (kept.size(0), width), like=edges)
    require_tensor(f"{title}: score", result.score, (count,))


def _check_readout(title: str, width: int, given: tuple[Any, ...], *, result: Any) -> None:
    values, _, groups = given
    require_tensor(f"{title}: the result", result, (groups, values.size(1)), like=values)


_CHECKS = {
    "attention_layer": _check_attended,
    "pooling_layer": _check_pooled,
    "readout": _check_readout,
}


def require_tensor(
    title: str, value: Any, shape: tuple[int, ...], *, like: Tensor | None = None
) -> None:
    """Refuse anything but a floating-point tensor of this shape, and of the type of `like`."""
    if not isinstance(value, Tensor) or tuple(value.shape) != shape:
        raise InputError(f"{title} must be {shape}, got {_form(value)}")
    if not value.is_floating_point():
        raise InputError(f"{title} must be floating point, got {value.dtype}")
    if like is None or torch.is_autocast_enabled(value.device.type):
        return
    if (value.dtype, value.device) != (like.dtype, like.device):
        got = f"{value.dtype} on {value.device}"
        raise InputError(f"{title} must be {like.dtype} on {like.device}, got {got}")


def _is_table(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() == 2


def _form(value: Any) -> str:
    """Say what a value is: type and shape of a tensor, else its class."""
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} of {value.dtype}"
    return type(value).__name__
