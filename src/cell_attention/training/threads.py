"""One torch thread: batches of molecules are too small to be divided among threads, and on a busy
machine threads that wait for each other make the same work many times slower.
"""

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


def use_one_thread() -> None:
    """Use one torch thread from now on, in a process that does nothing else."""
    torch.set_num_threads(1)
