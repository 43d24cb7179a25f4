"""`main`: run a command from the first moment to its exit code.

Every expected error is one line. Ctrl-C ends the command within a second, also while it starts and
where a library swallows it; therefore this module imports nothing that takes time before `main`.
"""

import errno
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from cell_attention import __version__
from cell_attention.cli import console
from cell_attention.errors import (
    CellAttentionError,
    CellAttentionWarning,
    InputError,
    WorkError,
    printable,
)

_USERS_WORD = (errno.ENAMETOOLONG, errno.EACCES, errno.EISDIR, errno.ENOTDIR, errno.ENOENT)
"""Error numbers that mean a wrong path from the user, rather than a failure."""

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 128 + signal.SIGINT

GRACE = 0.8
"""Seconds for tidying up. Files are written completely or not at all, so that nothing is lost."""
GRACE_OF_RAY = 15.0
"""The same where Ray runs, which has processes of its own to end."""


def main(words: Sequence[str] | None = None) -> None:
    """Run `cell-attention` and end the process with its exit code."""
    handled = threading.Event()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is not for us
        signal.signal(signal.SIGINT, partial(_interrupt, handled))
    try:
        for name in ("stdout", "stderr"):
            stream: Any = getattr(sys, name)
            if stream is None:  # closed by the caller (>&-)
                setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
            elif hasattr(stream, "reconfigure"):  # a terminal may lack a character
                stream.reconfigure(errors="backslashreplace")
        warnings.showwarning = partial(_warn, warnings.showwarning)
        logging.getLogger("cell_attention").addHandler(console.LogNotes())
        sys.exit(run(sys.argv[1:] if words is None else words))
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


def _warn(
    default: Callable[..., None], message: Warning | str, category: type[Warning], *rest: Any
) -> None:
    """Print a warning of ours as one line, without its location in the code."""
    if issubclass(category, CellAttentionWarning):
        console.note(console.with_flags(str(message)))
    else:
        default(message, category, *rest)


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


def run(words: Sequence[str]) -> int:
    """Run `cell-attention WORDS` and return the exit code: 0 success, 1 failure, 2 bad input or
    usage, 130 interrupted.
    """
    if list(words) == ["--version"]:
        print(f"cell-attention {__version__}")
        return DONE
    from cell_attention.cli.verbs import parse

    try:
        if any(word.startswith("--plugin") for word in words):
            words = load_named_plugins(list(words))
        parse(words or ["--help"]).run()
        sys.stdout.flush()
    except CellAttentionError as error:
        code = FAILED if isinstance(error, WorkError) else BAD_INPUT
        return _say(console.with_flags(str(error)), code)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has ended (`| head`), which is not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        return _say(error, BAD_INPUT if error.errno in _USERS_WORD else FAILED)
    except MemoryError as error:
        return _say(str(error) or "out of memory", FAILED)
    except Exception as error:
        from cell_attention.plugins import plugin_line

        if "can't allocate memory" in str(error):  # torch has no error class for it
            return _say("out of memory; use a smaller network or a smaller --batch-size", FAILED)
        if not (place := plugin_line(error)):
            raise
        return _say(f"{place}{type(error).__name__}: {error}", BAD_INPUT)
    return DONE


def load_named_plugins(words: list[str]) -> list[str]:
    """Load the files of `--plugin FILE` and return the other words; first, because the other words
    may name models and layers that these files register.
    """
    from cell_attention.plugins import load_plugins

    left: list[str] = []
    given = iter(words)
    for word in given:
        if word == "--plugin":
            file = next(given, None)
            if file is None:
                raise InputError("--plugin needs a Python file: --plugin FILE.py")
            load_plugins([file])
        elif word.startswith("--plugin="):
            load_plugins([word.removeprefix("--plugin=")])
        else:
            left.append(word)
    return left


def _say(message: object, code: int) -> int:
    text = " ".join(str(message).split())
    print(printable(f"cell-attention: {text}"), file=sys.stderr)
    return code
