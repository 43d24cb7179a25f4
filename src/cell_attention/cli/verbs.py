"""The verbs of the command line, and the parser of their flags."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Annotated, Any, get_args

import tyro

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
from cell_attention.cli.short_help import FIRST, shortened
from cell_attention.cli.train import Train
from cell_attention.cli.usage import in_one_line, options_in
from cell_attention.errors import InputError

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

VERBS: dict[str, Any] = {
    verb.__metadata__[0].name: verb.__origin__ for verb in get_args(Verb)
}  # fmt: skip
"""The class of every verb, by its name."""

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
            return _parsed(Verb, words, ABOUT)
    except SystemExit as end:
        if end.code in (0, None):
            raise
        options = options_in(_all_help(verb)) if verb else ()
        raise InputError(in_one_line(said.getvalue(), words, [*VERBS], options)) from None


def _parsed(kind: Any, words: Sequence[str], about: str | None = None, program: str = "") -> Any:
    return tyro.cli(
        kind,
        config=(tyro.conf.FlagCreatePairsOff,),
        prog=program or PROGRAM,
        description=about,
        args=list(words),
    )


def _all_help(verb: str) -> str:
    """Return what the parser prints for all flags of a verb."""
    said = io.StringIO()
    with redirect_stdout(said), suppress(SystemExit):
        _parsed(VERBS[verb], ["--help"])
    return said.getvalue()


def _print_short_help(verb: str) -> None:
    short = shortened(VERBS[verb], FIRST[verb])
    with suppress(SystemExit):
        _parsed(short, ["--help"], program=f"{PROGRAM} {verb}")
    print(f"{PROGRAM} {verb} --help-all lists all options.")
