"""The folder of a search: its settings, its trials, its result."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

from cell_attention._files import is_unfinished, read_versioned, write_whole
from cell_attention.errors import DataError, InputError
from cell_attention.evaluation.protocols import Outcome
from cell_attention.evaluation.run_folder import FORMAT, upgraded
from cell_attention.models.settings import Settings, leaves, versions
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig
from cell_attention.tuning.space import Space, as_toml

ASKED, JOURNAL, START = "search.json", "journal.log", "start"
_MADE_HERE = ("best.toml", "trials.json", "outer-*", "trial-*", START, JOURNAL, ASKED)


@dataclass(frozen=True)
class SearchSettings:
    """Everything that the result of a search depends on, except the number of trials."""

    settings: Settings
    """The configuration to start from, and the folds with their inner validation graphs."""
    space: Space
    nested: bool = False
    at_once: int = 2
    """Number of trials that are drawn together, before the result of any of them is known."""

    def record(self) -> dict[str, Any]:
        """Return the settings as JSON."""
        record: dict[str, Any] = json.loads(
            json.dumps({**asdict(self), "settings": self.settings.record()})
        )
        return record


@dataclass(frozen=True)
class Trial:
    """One configuration and its inner validation score."""

    name: str
    state: str
    value: float | None
    """Mean over the folds that were trained; None if training diverged, or if the values cannot be
    combined.
    """
    folds: int
    changes: dict[str, Any]


@dataclass(frozen=True)
class BestTrial:
    """The best configuration of one study."""

    name: str
    value: float
    """Mean of the best inner validation scores."""
    network: NetworkConfig
    training: TrainingConfig


@dataclass(frozen=True)
class SearchResult:
    """The result of a search."""

    score: str
    """Name of the score; higher is better."""
    trials: int
    tried: tuple[tuple[Trial, ...], ...]
    """The trials of every study: of the only one, or of one per fold if nested. The first entry is
    the configuration that the search started from."""
    winners: tuple[BestTrial, ...]
    nested: Outcome | None
    """Score on the held-out graphs if the search was nested: the honest estimate."""
    leaks: tuple[str, ...] = ()
    """Ways in which held-out graphs influenced the estimate."""


def begin(folder: Path, asked: SearchSettings, fresh: bool) -> None:
    """Start a search in a folder, or check that the folder holds the same search."""
    path = folder / ASKED
    there = [entry for entry in folder.iterdir() if not is_unfinished(entry)]
    if there and not path.is_file():
        raise InputError(f"folder {folder} is neither empty nor a search; name another folder")
    if fresh:
        for pattern in _MADE_HERE:
            for entry in folder.glob(pattern):
                rmtree(entry) if entry.is_dir() else entry.unlink()
    makers: list[Any] = []
    if path.is_file():
        record = read_versioned(path, FORMAT)
        if not isinstance(record.get("asked"), dict):
            raise DataError(f"{path}: not valid settings of a search")
        differences = [
            f"{name} was {old!r}, is {new!r}"
            for name, old, new in leaves(_upgraded(path, record["asked"]), asked.record())
            if old != new
        ]
        if differences:
            raise InputError(
                f"folder {folder} has a search with other settings: {'; '.join(differences[:4])}; "
                "name another folder, or use fresh to start over"
            )
        if not isinstance(record.get("versions"), list):
            raise DataError(f"{path}: versions must be a list")
        makers = record["versions"]
    if (now := versions(asked.settings.model, "optuna")) not in makers:
        makers.append(now)
    record = {"format": FORMAT, "asked": asked.record(), "versions": makers}
    write_whole(path, json.dumps(record, indent=2) + "\n")


def _upgraded(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Convert the settings of a search to this version; newer fields have their defaults."""
    record = upgraded(record)
    try:
        settings = Settings.of(record["settings"]).record()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"{path}: not valid settings of a search ({error})") from None
    return {**record, "settings": settings}


def write(folder: Path, asked: SearchSettings, found: SearchResult) -> None:
    """Write the result: trials.json, and best.toml unless the search is nested."""
    record = {"format": FORMAT, **asdict(found)}
    write_whole(folder / "trials.json", json.dumps(record, indent=2) + "\n")
    if not asked.nested:
        settings, (winner,) = asked.settings, found.winners
        origin = {
            "source": settings.source, "graphs": settings.graphs,
            "trials": found.trials + settings.searched,
            "winner": winner.name, "validation": winner.value,
        }  # fmt: skip
        text = as_toml(settings.model, (winner.network, winner.training), origin)
        write_whole(folder / "best.toml", text)
