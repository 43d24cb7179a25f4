"""`main`: parse the arguments, run the command, and report every expected error in one line."""

import errno
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cell_attention import __version__
from cell_attention.cli import console
from cell_attention.cli.verbs import parse
from cell_attention.errors import (
    CellAttentionError,
    CellAttentionWarning,
    InputError,
    WorkError,
    printable,
)
from cell_attention.plugins import load_plugins, plugin_line

_USERS_WORD = (errno.ENAMETOOLONG, errno.EACCES, errno.EISDIR, errno.ENOTDIR, errno.ENOENT)
"""Error numbers that mean a wrong path from the user, rather than a failure."""

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 128 + signal.SIGINT


def main(words: Sequence[str] | None = None) -> None:
    """Run `cell-attention` and end the process with its exit code."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:  # closed by the caller (>&-)
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):  # a terminal may lack a character
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = partial(_warn, warnings.showwarning)
    logging.getLogger("cell_attention").addHandler(console.LogNotes())
    sys.exit(run(sys.argv[1:] if words is None else words))


def _warn(
    default: Callable[..., None], message: Warning | str, category: type[Warning], *rest: Any
) -> None:
    """Print a warning of ours as one line, without its location in the code."""
    if issubclass(category, CellAttentionWarning):
        console.note(console.with_flags(str(message)))
    else:
        default(message, category, *rest)


def run(words: Sequence[str]) -> int:
    """Run `cell-attention WORDS` and return the exit code: 0 success, 1 failure, 2 bad input or
    usage, 130 interrupted.
    """
    if list(words) == ["--version"]:
        print(f"cell-attention {__version__}")
        return DONE
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
