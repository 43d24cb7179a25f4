"""The verbs of the command line, and the parser of their flags."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from pkgutil import resolve_name
from typing import Annotated, Any, Union

import tyro

from cell_attention.cli.short_help import FIRST, shortened
from cell_attention.cli.usage import in_one_line, options_in
from cell_attention.errors import InputError

VERBS = {
    "lift": "cell_attention.cli.lift:Lift",
    "train": "cell_attention.cli.train:Train",
    "pretrain": "cell_attention.cli.pretrain:Pretrain",
    "predict": "cell_attention.cli.predict:Predict",
    "fingerprint": "cell_attention.cli.fingerprint:Fingerprint",
    "explain": "cell_attention.cli.explain:Explain",
    "crossval": "cell_attention.cli.crossval:Crossval",
    "ablate": "cell_attention.cli.ablate:Ablate",
    "search": "cell_attention.cli.search:Search",
    "report": "cell_attention.cli.report:Report",
    "pack": "cell_attention.cli.archive:Pack",
    "unpack": "cell_attention.cli.archive:Unpack",
    "serve": "cell_attention.cli.serve:Serve",
    "demo": "cell_attention.cli.demo:Demo",
    "doctor": "cell_attention.cli.doctor:Doctor",
    "benchmark": "cell_attention.cli.benchmark:Benchmark",
}
"""Every verb, and where its class is: only that of the verb that is called is imported."""

PROGRAM = "cell-attention"
ABOUT = (
    "Cell Attention Networks: predict properties of graphs and molecules, and show the bonds and "
    "rings that the predictions depend on. --plugin FILE.py loads models and layers of your own."
)

_PARSE: Any = partial(tyro.cli, config=(tyro.conf.FlagCreatePairsOff,))
"""Reads words into an object of a class of flags."""


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
                return _PARSE(resolve_name(VERBS[verb]), prog=f"{PROGRAM} {verb}", args=words[1:])
            every = (
                Annotated[resolve_name(home), tyro.conf.subcommand(name)]
                for name, home in VERBS.items()
            )
            kinds: Any = Union[tuple(every)]  # noqa: UP007 - known at run time
            return _PARSE(kinds, prog=PROGRAM, description=ABOUT, args=words)
    except SystemExit as end:
        if end.code in (0, None):
            raise
        options = options_in(_all_help(verb)) if verb else ()
        raise InputError(
            in_one_line(said.getvalue(), words, verbs=[*VERBS], options=options)
        ) from None


def _all_help(verb: str) -> str:
    """Return what the parser prints for all flags of a verb."""
    said = io.StringIO()
    with redirect_stdout(said), suppress(SystemExit):
        _PARSE(resolve_name(VERBS[verb]), prog=PROGRAM, args=["--help"])
    return said.getvalue()


def _print_short_help(verb: str) -> None:
    short = shortened(resolve_name(VERBS[verb]), FIRST[verb])
    with suppress(SystemExit):
        _PARSE(short, prog=f"{PROGRAM} {verb}", args=["--help"])
    print(f"{PROGRAM} {verb} --help-all lists all options.")
