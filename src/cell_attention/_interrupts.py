"""Processes that never hear Ctrl-C: it reaches all of a group, and only the first handles it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Let a process that starts in this block never hear Ctrl-C, also before its first line."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Its start would end the block for all processes that start after it.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
