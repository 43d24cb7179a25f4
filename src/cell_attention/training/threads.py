"""How a process works: one torch thread, because batches of molecules are too small to be divided
among threads, and on a busy machine threads that wait for each other make the same work many times
slower; and freed memory that is kept.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread within this block; restore the number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def settle_process() -> None:
    """Use one torch thread from now on, and keep freed memory for the next step, in a process that
    does nothing else.
    """
    torch.set_num_threads(1)
    keep_freed_memory()


def keep_freed_memory() -> bool:
    """Have the C library keep what is freed; return whether it can be told so (glibc can).

    By default it returns large arrays to the system at once, and gets them back page by page: in
    training steps on PROTEINS, a tenth of the time.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return False
    # In malloc.h: M_MMAP_THRESHOLD is -3, at most 32 MiB; M_TRIM_THRESHOLD is -1.
    return bool(library.mallopt(-3, 32 << 20)) and bool(library.mallopt(-1, 256 << 20))
