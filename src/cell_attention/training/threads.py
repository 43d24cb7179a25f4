"""One torch thread: batches of molecules are too small to share, and threads that wait for each
other on a busy machine make the same work many times slower.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """While this lasts; afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def use_one_thread() -> None:
    """From here on, for processes that do nothing else."""
    torch.set_num_threads(1)
