"""A search's folder: what was asked, what was tried, what came out best."""

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
    """What is asked: everything that the answer depends on, but for the number of trials."""

    settings: Settings
    """The configuration to start from, and the folds with their inner validation graphs."""
    space: Space
    nested: bool = False
    at_once: int = 2
    """Trials that are drawn together, before any of them is known."""

    def record(self) -> dict[str, Any]:
        """As JSON would hold it."""
        record: dict[str, Any] = json.loads(
            json.dumps({**asdict(self), "settings": self.settings.record()})
        )
        return record


@dataclass(frozen=True)
class Trial:
    """One configuration and what its inner validation came to."""

    name: str
    state: str
    value: float | None
    """Mean over the folds that were trained; None where training diverged, or where values were
    drawn that do not go together.
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
    """What a search came to."""

    score: str
    """What the numbers are; higher is better."""
    trials: int
    tried: tuple[tuple[Trial, ...], ...]
    """Per study, of which there is one, or one per fold; the first is what was started from."""
    winners: tuple[BestTrial, ...]
    nested: Outcome | None
    """On the held-out graphs, where the search was nested: the honest estimate."""
    leaks: tuple[str, ...] = ()
    """What the estimate owes to graphs that should not have been looked at."""


def begin(folder: Path, asked: SearchSettings, fresh: bool) -> None:
    """Make the folder this search's, or find that it is."""
    path = folder / ASKED
    there = [entry for entry in folder.iterdir() if not is_unfinished(entry)]
    if there and not path.is_file():
        raise InputError(f"--out {folder} is not empty and not a search; name another")
    if fresh:
        for pattern in _MADE_HERE:
            for entry in folder.glob(pattern):
                rmtree(entry) if entry.is_dir() else entry.unlink()
    makers: list[Any] = []
    if path.is_file():
        record = read_versioned(path, FORMAT)
        if not isinstance(record.get("asked"), dict):
            raise DataError(f"{path}: not the settings of a search")
        differences = [
            f"{name} was {old!r}, is {new!r}"
            for name, old, new in leaves(_upgraded(path, record["asked"]), asked.record())
            if old != new
        ]
        if differences:
            raise InputError(
                f"--out {folder} holds another search: {'; '.join(differences[:4])}; name another "
                "folder, or use --fresh to start over"
            )
        if not isinstance(record.get("versions"), list):
            raise DataError(f"{path}: versions must be a list")
        makers = record["versions"]
    if (now := versions(asked.settings.model, "optuna")) not in makers:
        makers.append(now)
    record = {"format": FORMAT, "asked": asked.record(), "versions": makers}
    write_whole(path, json.dumps(record, indent=2) + "\n")


def _upgraded(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """The settings of a search as this version writes them: fields that came later have their
    defaults.
    """
    record = upgraded(record)
    try:
        settings = Settings.of(record["settings"]).record()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"{path}: not the settings of a search ({error})") from None
    return {**record, "settings": settings}


def write(folder: Path, asked: SearchSettings, found: SearchResult) -> None:
    """What there is to read afterwards."""
    record = {"format": FORMAT, **asdict(found)}
    write_whole(folder / "trials.json", json.dumps(record, indent=2) + "\n")
    if not asked.nested:
        settings, (winner,) = asked.settings, found.winners
        origin = {
            "source": settings.source, "graphs": settings.graphs,
            "trials": found.trials + settings.searched,
            "winner": winner.name, "validation": winner.value,
        }  # fmt: skip
        text = as_toml(settings.model, winner.network, winner.training, origin)
        write_whole(folder / "best.toml", text)
