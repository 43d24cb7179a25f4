"""Ctrl-C ends the command within a second, also while it starts and where a library swallows it.

Imports nothing that takes time: an interruption while the other modules are imported is one too.
"""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

GRACE = 0.8
"""Seconds for tidying up. Files are written completely or not at all, so that nothing is lost."""
GRACE_OF_RAY = 15.0
"""The same where Ray runs, which has processes of its own to end."""
INTERRUPTED = 128 + signal.SIGINT


def main(words: Sequence[str] | None = None) -> None:
    """Run `cell-attention` and end the process with its exit code."""
    handled = threading.Event()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is not for us
        signal.signal(signal.SIGINT, partial(_interrupt, handled))
    try:
        from cell_attention.cli.entry import main as start

        start(words)
    except KeyboardInterrupt:
        _say_interrupted()
    except SystemExit as end:
        if end.code != INTERRUPTED:
            raise
        if "ray" in sys.modules:  # which has processes of its own to end
            handled.set()
            raise
    # Without taking the interpreter and its libraries down, which can take seconds.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(INTERRUPTED)


def _interrupt(handled: threading.Event, number: int, frame: Any) -> None:
    threading.Thread(target=_end_late, args=(handled,), daemon=True).start()
    raise KeyboardInterrupt


def _end_late(handled: threading.Event) -> None:
    """End a process that still runs: something has swallowed the interruption, or takes long."""
    if not handled.wait(GRACE_OF_RAY if "ray" in sys.modules else GRACE):
        _say_interrupted()
        os._exit(INTERRUPTED)


def _say_interrupted() -> None:
    with suppress(OSError):  # a closed stream
        os.write(2, b"cell-attention: interrupted\n")
