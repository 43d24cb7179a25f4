"""Compiled kernels: numba, with the machine code kept on disk where that is possible."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_KERNELS: list[Any] = []


def compiled(kernel: Kernel) -> Kernel:
    """Compile `kernel` at its first call; later processes read the result from numba's cache."""
    try:
        dispatcher = numba.njit(kernel, cache=True, nogil=True)
    except RuntimeError:
        # Neither the package's folder nor the user's cache can be written (a read-only
        # container): compile in every process rather than fail at import.
        dispatcher = numba.njit(kernel, nogil=True)
    _KERNELS.append(dispatcher)
    return dispatcher  # type: ignore[no-any-return]


def compiles_first() -> bool:
    """Whether some imported kernel has neither run in this process nor been cached by another."""
    for dispatcher in _KERNELS:
        folder, kernel = dispatcher.stats.cache_path, dispatcher.py_func
        index = f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}-*.nbi"
        cached = folder is not None and any(Path(folder).glob(index))
        if not cached and not dispatcher.signatures:
            return True
    return False


def as_array(tensor: Tensor) -> NDArray[Any]:
    """A tensor of any device as the contiguous array that kernels and scipy take."""
    return np.ascontiguousarray(tensor.detach().cpu().numpy())
