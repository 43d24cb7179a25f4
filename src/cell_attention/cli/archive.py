"""`cell-attention pack` and `unpack`: convert a RUN_DIR to one file, and back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cell_attention._files import check_writable
from cell_attention.cli import console as show
from cell_attention.errors import InputError


@dataclass(frozen=True)
class Pack:
    """Write a folder of `crossval`, `ablate` or `search` as one JSON file.

    Pictures, checkpoints and copies of the data are left out; `report` reads the file.
    """

    run_dir: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_DIR")]
    """Folder of `crossval`, `ablate` or `search`, finished or not."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE.json")]
    """The file to write; an existing file is replaced."""

    def run(self) -> None:
        """Pack the folder."""
        if self.out.suffix != ".json":
            raise InputError(f"--out must end in .json, got {self.out}")
        check_writable(self.out, "")
        from cell_attention.evaluation.archive import pack

        pack(self.run_dir, self.out)
        show.note(f"written to {self.out}")


@dataclass(frozen=True)
class Unpack:
    """Restore a packed folder; the command that started the run can resume it there."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.json")]
    """A file written by `pack`."""
    out: Annotated[Path, tyro.conf.arg(metavar="RUN_DIR")]
    """The folder to write; it must be new or empty."""

    def run(self) -> None:
        """Unpack the file."""
        from cell_attention.evaluation.archive import unpack

        unpack(self.file, self.out)
        show.note(f"written to {self.out}")
