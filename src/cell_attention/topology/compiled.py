"""Compiled kernels: numba, with the machine code kept on disk where that is possible."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import event
from numpy.typing import NDArray
from torch import Tensor

from cell_attention.errors import InputError

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(kernel: Kernel, **options: Any) -> Kernel:
    """Compile `kernel` at its first call; later processes read the result from numba's cache."""
    try:
        dispatcher = numba.njit(kernel, cache=True, nogil=True, **options)
    except RuntimeError:
        # Neither the package's folder nor the user's cache can be written (a read-only
        # container): compile in every process rather than fail at import.
        dispatcher = numba.njit(kernel, nogil=True, **options)
    return dispatcher  # type: ignore[no-any-return]


def compiled_sums(kernel: Kernel) -> Kernel:
    """Like `compiled`, but with sums in any fixed order, and x / 0 is inf instead of an error:
    both let loops use vector instructions.
    """
    return compiled(kernel, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


@dataclass(eq=False)
class _Announcer(event.Listener):  # type: ignore[misc]
    """Logs that kernels of ours are compiled because the cache lacks them: once per process and
    precision, since each precision has kernels of its own.
    """

    said: set[str] = field(default_factory=set)

    def on_start(self, event: Any) -> None:
        found = event.data["dispatcher"].py_func.__module__ or ""
        names = {str(getattr(one, "dtype", "")) for one in event.data["args"]}
        precision = "float64" if "float64" in names and "float32" not in names else ""
        if not found.startswith("cell_attention.") or precision in self.said:
            return
        self.said.add(precision)
        what = f" for {precision}" if precision else ""
        logging.getLogger("cell_attention").warning(
            f"compiling kernels{what}; this happens once per machine and takes some seconds"
        )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())


def index_array(name: str, indices: Tensor, bounds: tuple[int, ...]) -> NDArray[np.int64]:
    """Return (rows, ·) indices for a kernel; their range is checked here, not in the kernel."""
    array = as_array(indices)
    for row, bound in zip(array, bounds, strict=True):
        if row.size and (row.min() < 0 or row.max() >= bound):
            raise InputError(f"{name} must lie in 0…{bound - 1}, got {row.min()}…{row.max()}")
    return array


def as_array(tensor: Tensor) -> NDArray[Any]:
    """Convert a tensor on any device to a contiguous array for kernels and scipy."""
    return np.ascontiguousarray(tensor.detach().cpu().numpy())
