"""`main`: parse the words, run the verb, and end every expected failure in one line."""

import errno
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro

from cell_attention import __version__
from cell_attention.cli import console
from cell_attention.cli.ablate import Ablate
from cell_attention.cli.archive import Pack, Unpack
from cell_attention.cli.benchmark import Benchmark
from cell_attention.cli.crossval import Crossval
from cell_attention.cli.demo import Demo
from cell_attention.cli.doctor import Doctor
from cell_attention.cli.explain import Explain
from cell_attention.cli.fingerprint import Fingerprint
from cell_attention.cli.lift import Lift
from cell_attention.cli.predict import Predict
from cell_attention.cli.report import Report
from cell_attention.cli.search import Search
from cell_attention.cli.train import Train
from cell_attention.errors import (
    CellAttentionError,
    CellAttentionWarning,
    InputError,
    WorkError,
)
from cell_attention.plugins import load_plugins

Verb = (
    Annotated[Lift, tyro.conf.subcommand("lift")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Predict, tyro.conf.subcommand("predict")]
    | Annotated[Fingerprint, tyro.conf.subcommand("fingerprint")]
    | Annotated[Explain, tyro.conf.subcommand("explain")]
    | Annotated[Crossval, tyro.conf.subcommand("crossval")]
    | Annotated[Ablate, tyro.conf.subcommand("ablate")]
    | Annotated[Search, tyro.conf.subcommand("search")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Pack, tyro.conf.subcommand("pack")]
    | Annotated[Unpack, tyro.conf.subcommand("unpack")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Doctor, tyro.conf.subcommand("doctor")]
    | Annotated[Benchmark, tyro.conf.subcommand("benchmark")]
)

_USERS_WORD = (errno.ENAMETOOLONG, errno.EACCES, errno.EISDIR, errno.ENOTDIR, errno.ENOENT)
"""What the system says of a path that the user gave, rather than of the work."""

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 128 + signal.SIGINT


def main(words: Sequence[str] | None = None) -> None:
    """Run `cell-attention` and leave the process with its exit code."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:  # closed by the caller (>&-)
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):  # a terminal that has no sign for a character
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = partial(_warn, warnings.showwarning)
    sys.exit(run(sys.argv[1:] if words is None else words))


def _warn(
    default: Callable[..., None], message: Warning | str, category: type[Warning], *rest: Any
) -> None:
    """A warning of ours is for people: one line, without the place in the code."""
    if issubclass(category, CellAttentionWarning):
        console.note(str(message))
    else:
        default(message, category, *rest)


def run(words: Sequence[str]) -> int:
    """The exit code of `cell-attention WORDS`: 0 done, 2 bad input or usage, 1 failure, 130
    interrupted.
    """
    if list(words) == ["--version"]:
        print(f"cell-attention {__version__}")
        return DONE
    try:
        if any(word.startswith("--plugin") for word in words):
            words = load_named_plugins(list(words))
        _parse(words or ["--help"]).run()
        sys.stdout.flush()
    except CellAttentionError as error:
        return _say(error, FAILED if isinstance(error, WorkError) else BAD_INPUT)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): not our failure, and nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        return _say(error, BAD_INPUT if error.errno in _USERS_WORD else FAILED)
    except MemoryError as error:
        return _say(str(error) or "out of memory", FAILED)
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):  # torch has no error of its own for that
            raise
        return _say("out of memory: make the network or the batches smaller", FAILED)
    return DONE


def load_named_plugins(words: list[str]) -> list[str]:
    """The words without `--plugin FILE`, after these files were loaded: they may add models and
    parts, whose names the other words may hold.
    """
    left: list[str] = []
    given = iter(words)
    for word in given:
        if word == "--plugin":
            file = next(given, None)
            if file is None:
                raise InputError("--plugin needs the name of a Python file")
            load_plugins([file])
        elif word.startswith("--plugin="):
            load_plugins([word.removeprefix("--plugin=")])
        else:
            left.append(word)
    return left


def _parse(words: Sequence[str]) -> Any:
    """The verb with its flags; a misspelt one is refused in one line."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(
                Verb,
                config=(tyro.conf.FlagCreatePairsOff,),
                prog="cell-attention",
                description="Cell Attention Networks: graphs and molecules in, "
                "predictions and the bonds and rings that carried them out. "
                "--plugin FILE.py loads models and parts of your own.",
                args=list(words),
            )
    except SystemExit as end:
        if end.code in (0, None):
            raise
        raise InputError(_in_one_line(said.getvalue())) from None


def _in_one_line(box: str) -> str:
    """What the parser says in a box of many lines, in one sentence."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip("│╭╮╰╯─ \t") for line in plain.splitlines()]
    said = [line for line in lines if line and not line.startswith(("Parsing error", "For full"))]
    text = " ".join(" ".join(said).split())
    known = text.find("Unrecognized options: ")
    if known >= 0:
        words = text[known:].split(" Perhaps you meant")[0].split(" Full helptext")[0]
        hint = re.search(r"(--[a-z][\w-]*)", text[known + len(words) :])
        words = words.replace("Unrecognized options:", "unknown option").strip()
        return words + (f"; did you mean {hint[1]}?" if hint else "") + "; --help lists all"
    return text or "wrong arguments; --help lists them"


def _say(message: object, code: int) -> int:
    text = " ".join(str(message).split())
    print(f"cell-attention: {text}", file=sys.stderr)
    return code
