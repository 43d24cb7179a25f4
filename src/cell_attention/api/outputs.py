"""The files that verbs write: which are allowed, and tables as .csv."""

import csv
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from cell_attention._files import check_writable, replacing
from cell_attention.errors import InputError
from cell_attention.inference.computed import harmless
from cell_attention.inference.model_folder import FILES, Model

AnyModel = Model | str | Path
"""A trained model, or its MODEL_DIR."""


def is_folder(out: str | Path, endings: Sequence[str]) -> bool:
    """Whether an output is a folder of shards: one that exists, ends in a slash or has no
    ending.
    """
    path = Path(out)
    if path.suffix.lower() in endings and not str(out).endswith("/"):
        return False
    return path.is_dir() or str(out).endswith("/") or not path.suffix


def require_output(out: Path, endings: tuple[str, ...], *, model: AnyModel, source: object) -> None:
    """Refuse an output with another ending, or one that would replace the model or a source."""
    if out.suffix.lower() not in endings:
        raise InputError(f"out must end in {', '.join(endings)}, got {out}")
    sources = source if isinstance(source, list | tuple) else [source]
    for one in sources:
        check_writable(out, str(one) if isinstance(one, str | Path) else "")
    folder = None if not isinstance(model, str | Path) else Path(model)
    if folder is not None and out.name in FILES and out.resolve().parent == folder.resolve():
        raise InputError(f"out {out} would replace a file of the model; name another file")


def write_table(
    out: Path | None, header: Sequence[str], rows: Iterable[Sequence[str]], *, safe: bool = False
) -> None:
    """Write a header and rows to a .csv file that appears only when it is complete, or to stdout.

    safe: whether cells that a spreadsheet would run get an apostrophe.
    """
    lines: Iterable[Sequence[str]] = chain([header], rows)
    lines = map(harmless, lines) if safe else lines
    if out is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
    with (
        replacing(out) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="") as file,
    ):
        csv.writer(file, lineterminator="\n").writerows(lines)
