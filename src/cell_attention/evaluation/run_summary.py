"""The state and result of a RUN_DIR, finished or not, as a folder or packed in one file."""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

from cell_attention.errors import SourceNotFoundError
from cell_attention.evaluation.archive import run_folder
from cell_attention.evaluation.jobs import Job
from cell_attention.evaluation.result import Result, read_result
from cell_attention.evaluation.run_folder import RunFolder
from cell_attention.models.settings import Settings


@dataclass(frozen=True, eq=False)
class RunSummary:
    """The state and result of one RUN_DIR."""

    folder: str
    """The folder, or the file of a packed run."""
    settings: Settings
    folds: int
    finished: int
    """Number of folds whose curve is finished."""
    result: Result | None
    """The content of `result.json`; None while the run is not finished."""
    held_out: str
    """Digest of the held-out graphs alone: runs with the same digest can be compared fold by fold,
    however they split the other graphs.
    """
    packed: bool = False
    """Whether it was read from a file."""

    @property
    def label(self) -> str:
        """The name of the folder, or of the file without its ending."""
        path = Path(self.folder).resolve()
        return path.stem if self.packed else path.name


def summary(path: Path) -> RunSummary:
    """Read a RUN_DIR, or a file of `pack`."""
    with run_folder(path) as folder:
        return replace(_summary(folder), folder=str(path), packed=folder != path)


def _summary(folder: Path) -> RunSummary:
    run = RunFolder(folder)
    if not run.asked.is_file():
        raise SourceNotFoundError(f"{folder} is not a RUN_DIR: run.json is missing")
    settings, folds = run.settings(), run.folds()
    digest, count = run.digest(), len(folds)
    finished = sum(run.finished(Job(n).stem, digest) is not None for n in range(count))
    result = read_result(run.result) if run.result.is_file() else None
    listed = json.dumps([sorted(fold.held_out) for fold in folds])
    held_out = hashlib.sha256(listed.encode()).hexdigest()
    return RunSummary(str(folder), settings, count, finished, result, held_out)


def markdown_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Format cells as a Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines
    )
