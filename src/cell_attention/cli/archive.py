"""`cell-attention pack` and `unpack`: a RUN_DIR as one file to keep or to send, and back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cell_attention._files import check_writable
from cell_attention.cli import console as show
from cell_attention.errors import InputError


@dataclass(frozen=True)
class Pack:
    """Write the folder of a crossval, ablate or search as one JSON file.

    Pictures, checkpoints and copies of the data are left out; `report` reads the file.
    """

    run_dir: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_DIR")]
    """Folder of `crossval`, `ablate` or `search`, finished or not."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE.json")]
    """Where the file goes; what is there is replaced."""

    def run(self) -> None:
        """Read, write."""
        if self.out.suffix != ".json":
            raise InputError(f"--out {self.out} must end in .json")
        check_writable(self.out, "")
        from cell_attention.evaluation.archive import pack

        pack(self.run_dir, self.out)
        show.note(f"written to {self.out}")


@dataclass(frozen=True)
class Unpack:
    """Write the folder that was packed; the command that began the run continues it there."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.json")]
    """What `pack` wrote."""
    out: Annotated[Path, tyro.conf.arg(metavar="RUN_DIR")]
    """A new or an empty folder."""

    def run(self) -> None:
        """Read, write."""
        from cell_attention.evaluation.archive import unpack

        unpack(self.file, self.out)
        show.note(f"written to {self.out}")
