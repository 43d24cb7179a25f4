"""`main`: parse the arguments, run the command, and report every expected error in one line."""

import difflib
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
from typing import Annotated, Any, get_args

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
from cell_attention.cli.pretrain import Pretrain
from cell_attention.cli.report import Report
from cell_attention.cli.search import Search
from cell_attention.cli.serve import Serve
from cell_attention.cli.train import Train
from cell_attention.errors import (
    CellAttentionError,
    CellAttentionWarning,
    InputError,
    WorkError,
    printable,
)
from cell_attention.plugins import load_plugins, plugin_line

Verb = (
    Annotated[Lift, tyro.conf.subcommand("lift")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Pretrain, tyro.conf.subcommand("pretrain")]
    | Annotated[Predict, tyro.conf.subcommand("predict")]
    | Annotated[Fingerprint, tyro.conf.subcommand("fingerprint")]
    | Annotated[Explain, tyro.conf.subcommand("explain")]
    | Annotated[Crossval, tyro.conf.subcommand("crossval")]
    | Annotated[Ablate, tyro.conf.subcommand("ablate")]
    | Annotated[Search, tyro.conf.subcommand("search")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Pack, tyro.conf.subcommand("pack")]
    | Annotated[Unpack, tyro.conf.subcommand("unpack")]
    | Annotated[Serve, tyro.conf.subcommand("serve")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Doctor, tyro.conf.subcommand("doctor")]
    | Annotated[Benchmark, tyro.conf.subcommand("benchmark")]
)

_VERBS = tuple(verb.__metadata__[0].name for verb in get_args(Verb))
"""The names of all commands, for a hint."""

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
        _parse(words or ["--help"]).run()
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


def _parse(words: Sequence[str]) -> Any:
    """Parse the command and its flags; report a wrong one in one line."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(
                Verb,
                config=(tyro.conf.FlagCreatePairsOff,),
                prog="cell-attention",
                description="Cell Attention Networks: predict properties of graphs and molecules, "
                "and show the bonds and rings that the predictions depend on. "
                "--plugin FILE.py loads models and layers of your own.",
                args=list(words),
            )
    except SystemExit as end:
        if end.code in (0, None):
            raise
        raise InputError(_in_one_line(said.getvalue())) from None


def _in_one_line(box: str) -> str:
    """Shorten the parser's box of many lines to one sentence."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    inside = [re.sub(r"^[│|]|[│|]$", "", line).strip() for line in plain.splitlines()]
    frame = re.compile(r"[╭╰+─-]{2}[^\w-].*|[─-]+")  # with the title in it, or as a line between
    text = " ".join(" ".join(line for line in inside if not frame.fullmatch(line)).split())
    title = "(Unrecognized( or misplaced)?|Required) options (?=[A-Z])"
    text = re.sub(f"^({title}|(Value error|Invalid choice) )", "", text)
    text = re.split(r" ?(?:Argument helptext|For full helptext|Available subcommands):?", text)[0]
    if found := re.match(r"Unrecognized (?:or misplaced )?options: ([^ ,]+)", text):
        word, meant = found[1], re.search(r"Perhaps you meant: (--[\w-]+)", text)
        if not word.startswith("-"):
            close = difflib.get_close_matches(word, _VERBS, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; it has {', '.join(_VERBS)}"
            return f"there is no verb or argument {word!r}{hint}"
        if meant and meant[1] == word:
            return f"this verb has no option {word}; --help lists those that it has"
        return f"there is no option {word}" + (f"; did you mean {meant[1]}?" if meant else "")
    if found := re.match(r"Missing from (.+?): (\S+)", text):
        return f"{found[2]} is missing; {found[1]} --help says what it is"
    if found := re.match(r"Error parsing (\S+): .*instantiated from (\[.*?\])", text):
        kind = _kind_of("int" if "'int'" in text else "float" if "'float'" in text else "")
        return f"{found[1]} must be {kind}, got {found[2].strip('[]')}"
    if found := re.search(r"Error parsing (\S+): .*?\b(int|float)\b.*?: ('.*')$", text):
        return f"{found[1]} must be {_kind_of(found[2])}, got {found[3]}"
    if found := re.search(r"Missing value for argument '(\S+)'", text):
        return f"{found[1]} needs a value; --help says which"
    if found := re.search(
        r"[Ii]nvalid choice ('.*?') for argument '(\S+)'.* one of \((.*)\)", text
    ):
        choices = sorted({*found[3].split(", ")} - {"'None'"})
        return f"{found[2]} must be one of {', '.join(choices)}, got {found[1]}"
    return text or "wrong arguments; --help lists them"


def _kind_of(name: str) -> str:
    return {"int": "a whole number", "float": "a number"}.get(name, "numbers")


def _say(message: object, code: int) -> int:
    text = " ".join(str(message).split())
    print(printable(f"cell-attention: {text}"), file=sys.stderr)
    return code
