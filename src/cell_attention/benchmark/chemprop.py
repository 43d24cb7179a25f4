"""Training and predicting beside chemprop, both by their defaults: same molecules, same core."""

import csv
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np

from cell_attention.api.predict import predict
from cell_attention.api.train import train
from cell_attention.benchmark.measure import Measurement
from cell_attention.data.sources import read_source
from cell_attention.models.chemprop import (
    fitted_network,
    molecule_dataset,
    predicted,
    quiet_chemprop,
    require_chemprop,
)

MOLECULES, ROUNDS = 600, 2
"""Molecules to train on, a tenth of which choose the epoch; rounds of predictions in turn."""
Result = TypeVar("Result")


def chemprop_benchmarks(path: Path) -> Iterator[Measurement]:
    """Yield processor time and rate beside chemprop's; path: a file of molecules with values."""
    require_chemprop("chemprop")
    found = read_source(path, None, on_error="skip")
    smiles = list(found.molecules.smiles if found.molecules else ())
    values = found.require_targets().reshape(len(smiles), -1)[:, :1].double().numpy()
    few, tenth = smiles[:MOLECULES], min(MOLECULES, len(smiles)) // 10
    with TemporaryDirectory() as folder, quiet_chemprop():
        table = Path(folder) / "molecules.csv"
        with table.open("w", encoding="utf-8", newline="") as file:
            rows = zip(few, values[:, 0].tolist(), strict=False)
            csv.writer(file).writerows([("smiles", "value"), *rows])
        ours, seconds = _timed(lambda: train(table, validation=0.1, test=0.0))
        whole = molecule_dataset(few[tenth:], values[tenth : len(few)])
        chosen = molecule_dataset(few[:tenth], values[:tenth])
        theirs, spent = _timed(
            lambda: fitted_network(whole, chosen, kind="values", classes=0, state=0)
        )
        yield Measurement(
            f"training on {len(few)} molecules ÷ chemprop's, processor time", seconds / spent, "×",
            "at most 0.5 ×", seconds / spent <= 0.5, f"{seconds:.1f} and {spent:.1f} s",
        )  # fmt: skip
        unknown = np.full((len(smiles), 1), np.nan)
        both = [
            lambda: len(predict(ours, smiles).rows),
            lambda: predicted(theirs, molecule_dataset(smiles, unknown)),
        ]
        best = [min(_timed(work)[1] for _ in range(ROUNDS)) for work in both]
    rates = [len(smiles) / one for one in best]
    ratio = rates[0] / rates[1]
    yield Measurement(
        "predictions ÷ chemprop's, molecules per second", ratio, "×", "at least 3 ×", ratio >= 3,
        f"{rates[0]:,.0f} and {rates[1]:,.0f} per second, from SMILES",
    )  # fmt: skip


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result and the processor time of this process."""
    begun = time.process_time()
    return work(), time.process_time() - begun
