"""The result of a cross-validation, for people and as `result.json`."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cell_attention._files import read_versioned
from cell_attention.errors import DataError
from cell_attention.evaluation.columns import ColumnOutcome
from cell_attention.evaluation.protocols import Outcome

FORMAT = 1

PROTOCOLS = {
    "paper": "best mean epoch (paper)",
    "per_fold_best": "each fold's best epoch",
    "fair": "fair (inner validation)",
}


@dataclass(frozen=True)
class Leakage:
    """Numbers of graphs that 1-WL with node labels cannot tell from another one."""

    graphs: int
    with_twin: int
    held_out_with_twin_in_training: int
    """Summed over the folds."""

    def sentence(self) -> str:
        """Format it for people."""
        return (
            f"Of {self.graphs} graphs, {self.with_twin} have a twin that 1-WL cannot tell from "
            f"them; {self.held_out_with_twin_in_training} held-out ones have it in training."
        )


@dataclass(frozen=True)
class FairChoice:
    """The choice and the scores of the fair protocol in one fold."""

    configuration: int
    """Index in the grid, counted from 0."""
    validation: tuple[float, ...]
    """Best inner validation score of every configuration; empty without a grid."""
    epochs: tuple[int, ...]
    """The best epoch of every rerun."""
    tests: tuple[float, ...]
    """Score of every rerun on the held-out graphs."""


@dataclass(frozen=True)
class Result:
    """The result of a cross-validation."""

    source: str
    model: str
    grid: tuple[dict[str, dict[str, Any]], ...]
    """The configurations that the fair protocol chose from."""
    score: str
    """Name of the score; higher is better."""
    protocols: dict[str, Outcome | None]
    """paper, per_fold_best, fair; None if a protocol was not run."""
    choices: tuple[FairChoice, ...]
    """One per fold if the fair protocol was run."""
    majority: float | None
    """Percent of the graphs in the largest class; None if there are no classes."""
    leakage: Leakage
    leaks: tuple[str, ...] = ()
    """Other ways in which held-out graphs influenced the numbers."""
    columns: dict[str, ColumnOutcome] = field(default_factory=dict)
    """Of several labels or columns of values the scores one by one, by the fair protocol or of a
    model without epochs."""

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (protocol, result, epoch) for people; a single row if there are no epochs."""
        paper = self.protocols["paper"]
        if paper is not None and paper.epoch is None:
            return [("no epochs: one number", paper.text(self.score), "none")]
        found = []
        for key, name in PROTOCOLS.items():
            outcome = self.protocols[key]
            if outcome is None:
                found.append((name, "not run", ""))
            else:
                epoch = "its own" if outcome.epoch is None else str(outcome.epoch)
                found.append((name, outcome.text(self.score), epoch))
        return found

    def to_json(self) -> str:
        """Return the content of `result.json`, without times, hosts or paths."""
        record = {"format": FORMAT, **asdict(self), "std": "population"}
        if not self.columns:
            del record["columns"]
        return json.dumps(record, indent=2) + "\n"


def read_result(path: Path) -> Result:
    """Read a `result.json`."""
    record = read_versioned(path, FORMAT)
    try:
        share, entries = record["majority"], record["protocols"]
        return Result(
            str(record["source"]),
            str(record["model"]),
            tuple(record["grid"]),
            str(record["score"]),
            {name: _outcome(entries[name]) for name in PROTOCOLS},
            tuple(FairChoice(**entry) for entry in record["choices"]),
            None if share is None else float(share),
            Leakage(**record["leakage"]),
            tuple(map(str, record["leaks"])),
            {name: ColumnOutcome.of(entry) for name, entry in record.get("columns", {}).items()},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"{path}: not a valid result of a run ({error!r})") from None


def _outcome(entry: dict[str, Any] | None) -> Outcome | None:
    if entry is None:
        return None
    epoch = None if entry["epoch"] is None else int(entry["epoch"])
    return Outcome(
        float(entry["mean"]), float(entry["std"]), epoch, tuple(map(float, entry["folds"]))
    )
