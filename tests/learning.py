"""A small settings on MUTAG, asked in several test files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cell_attention import CellComplex, NetworkConfig, TrainingConfig
from cell_attention.cli.entry import run as run_words
from cell_attention.data.splits.folds import Splits, nested, stratified_folds
from cell_attention.evaluation.crossval import complete_run
from cell_attention.evaluation.run_folder import RunFolder
from cell_attention.models.settings import Settings, data_digest
from cell_attention.parallel.engine import Workers
from cell_attention.training.loop import Training

SMALL = NetworkConfig.edges(lift_heads=4, hidden=(4, 4), heads=(2, 2), head_hidden=4, dropout=0.2)
QUICK = TrainingConfig.plain(batch_size=32, epochs=6, learning_rate=1e-2)


def complaints(said: str) -> list[str]:
    """Lines on standard error that are no remarks."""
    return [line for line in said.splitlines() if not line.startswith("note: ")]


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command is refused."""
    capsys.readouterr()
    assert run_words(words) == 2
    (line,) = complaints(capsys.readouterr().err)
    return line


@contextmanager
def interrupted_after(epochs: int) -> Iterator[None]:
    """Within this, Ctrl-C comes when a training has done so many epochs."""
    once: Callable[[Training], None] = Training.epoch

    def epoch(training: Training) -> None:
        if training.epochs_done == epochs:
            raise KeyboardInterrupt
        once(training)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "epoch", epoch)
        yield


def assert_resumes_to_the_same_bytes(words: list[str], place: Path, epochs: int) -> None:
    """A command that is interrupted after so many epochs leaves the files of one that was not."""
    assert run_words([*words, "--out", str(place / "whole")]) == 0
    with interrupted_after(epochs):
        assert run_words([*words, "--out", str(place / "cut")]) == 130
    assert not (place / "cut" / "config.json").exists()
    assert run_words([*words, "--out", str(place / "cut")]) == 0
    for path in (place / "whole").iterdir():
        assert path.read_bytes() == (place / "cut" / path.name).read_bytes()


def asked(
    complexes: CellComplex, epochs: int = 6, folds: int = 3, **more: Any
) -> tuple[Settings, Splits]:
    """A few folds of a small network."""
    assert complexes.targets is not None
    splits = stratified_folds(complexes.targets, folds)
    if more.get("protocol") == "fair":
        splits = nested(splits, complexes.targets)
    settings = Settings(
        "MUTAG", len(complexes), data_digest(complexes), splits.origin, splits.digest, SMALL,
        replace(QUICK, epochs=epochs), **more,
    )  # fmt: skip
    return settings, splits


def answer(
    folder: Path, complexes: CellComplex, jobs: int = 1, epochs: int = 6, engine: Any = "processes",
    checkpoint_seconds: float = 10.0, **more: Any,
) -> bytes:  # fmt: skip
    """The bytes of the result."""
    settings, splits = asked(complexes, epochs, **more)
    with RunFolder.begin(folder, settings, splits, fresh=False) as run:
        complete_run(run, complexes, Workers(jobs, engine, checkpoint_seconds))
    return run.result.read_bytes()
