"""The verbs of the command line, and the parser of their flags."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from typing import Annotated, Any, Union

import tyro

from cell_attention.cli.short_help import FIRST, shortened
from cell_attention.cli.usage import in_one_line, options_in
from cell_attention.errors import InputError

VERBS = {
    "lift": "lift:Lift",
    "train": "train:Train",
    "pretrain": "pretrain:Pretrain",
    "predict": "predict:Predict",
    "fingerprint": "fingerprint:Fingerprint",
    "explain": "explain:Explain",
    "crossval": "crossval:Crossval",
    "ablate": "ablate:Ablate",
    "search": "search:Search",
    "report": "report:Report",
    "pack": "archive:Pack",
    "unpack": "archive:Unpack",
    "serve": "serve:Serve",
    "demo": "demo:Demo",
    "doctor": "doctor:Doctor",
    "benchmark": "benchmark:Benchmark",
}
"""Every verb, and its class as `module:name`: only that of the verb that is called is imported."""

PROGRAM = "cell-attention"
ABOUT = (
    "Cell Attention Networks: predict properties of graphs and molecules, and show the bonds and "
    "rings that the predictions depend on. --plugin FILE.py loads models and layers of your own."
)


def parse(words: Sequence[str]) -> Any:
    """Parse a verb and its flags; report a wrong one in one line.

    Of a verb with many flags, --help lists those that most people need, --help-all every one.
    """
    verb = words[0] if words and words[0] in VERBS else ""
    if "--help-all" in words:
        words = [verb, "--help"] if verb else ["--help"]
    elif verb in FIRST and {"-h", "--help"} & {*words}:
        _print_short_help(verb)
        raise SystemExit(0)
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            if verb:
                return _parsed(_class_of(verb), words[1:], program=f"{PROGRAM} {verb}")
            every = (Annotated[_class_of(name), tyro.conf.subcommand(name)] for name in VERBS)
            return _parsed(Union[tuple(every)], words, about=ABOUT)  # noqa: UP007 - known at run time
    except SystemExit as end:
        if end.code in (0, None):
            raise
        options = options_in(_all_help(verb)) if verb else ()
        raise InputError(
            in_one_line(said.getvalue(), words, verbs=[*VERBS], options=options)
        ) from None


def _class_of(verb: str) -> Any:
    module, _, name = VERBS[verb].partition(":")
    return getattr(import_module(f"cell_attention.cli.{module}"), name)


def _parsed(
    kind: Any, words: Sequence[str], *, about: str | None = None, program: str = PROGRAM
) -> Any:
    return tyro.cli(
        kind,
        config=(tyro.conf.FlagCreatePairsOff,),
        prog=program,
        description=about,
        args=list(words),
    )


def _all_help(verb: str) -> str:
    """Return what the parser prints for all flags of a verb."""
    said = io.StringIO()
    with redirect_stdout(said), suppress(SystemExit):
        _parsed(_class_of(verb), ["--help"])
    return said.getvalue()


def _print_short_help(verb: str) -> None:
    short = shortened(_class_of(verb), FIRST[verb])
    with suppress(SystemExit):
        _parsed(short, ["--help"], program=f"{PROGRAM} {verb}")
    print(f"{PROGRAM} {verb} --help-all lists all options.")
