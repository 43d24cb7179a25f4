"""`cell-attention crossval`: what a network reaches on held-out folds, by every protocol."""

import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import tyro

from cell_attention.cli import show
from cell_attention.cli.lift import DataDir
from cell_attention.cli.overrides import changed, flags_of, read_toml
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig, TrainingConfig

if TYPE_CHECKING:
    from cell_attention.data.splits import Splits
    from cell_attention.learn.crossval import Result
    from cell_attention.topology.complex import CellComplex

    NetworkFlags: TypeAlias = Any
    TrainingFlags: TypeAlias = Any
else:
    NetworkFlags, TrainingFlags = flags_of(NetworkConfig), flags_of(TrainingConfig)


@dataclass(frozen=True)
class Crossval:
    """Cross-validate a network; the same command continues what was interrupted.

    The paper's preset is used where SOURCE is one of the paper's sets; flags and --config change
    single fields of it.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A TU name such as MUTAG, a folder or .zip in TU format."""
    out: Annotated[Path, tyro.conf.arg(metavar="RUN_DIR")]
    """The folder of this run."""
    folds: int = 10
    """How many parts the graphs are divided into."""
    split_seed: int = 12091996
    """Of the division into folds."""
    splits: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A JSON file of folds instead, as published by Errica et al. 2020 or a list of {train,
    validation}.
    """
    class_weights: bool = False
    """Weight the classes in the loss so that rare ones count as much as common ones."""
    jobs: int = 0
    """Folds that run at a time, each in a process with one thread; 0 is one per core."""
    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file with tables [network] and [training] that change fields of the preset."""
    fresh: bool = False
    """Start over instead of continuing what RUN_DIR holds."""
    quiet: bool = False
    """No progress."""
    json: bool = False
    """Print one JSON object instead of a table."""
    data_dir: DataDir = None
    """Where to look for TU names first; then $CELL_ATTENTION_DATA, then the cache."""
    network: tyro.conf.OmitArgPrefixes[NetworkFlags] = field(default_factory=NetworkFlags)
    """Fields of the network."""
    training: tyro.conf.OmitArgPrefixes[TrainingFlags] = field(default_factory=TrainingFlags)
    """Fields of the training."""

    def run(self) -> None:
        """Read, divide, train, report."""
        if self.jobs < 0:
            raise InputError(f"jobs must not be negative, got {self.jobs}")
        network, training = self._configs()
        import torch

        from cell_attention.data.sources import load_dataset
        from cell_attention.learn.crossval import crossvalidate
        from cell_attention.learn.runs import Question, Run, data_digest
        from cell_attention.topology.compiled import announced_compilation

        torch.set_num_threads(1)
        with announced_compilation(show.compiling):
            complexes = load_dataset(self.source, network.max_polygon, self.data_dir)
        splits = self._splits(complexes)
        question = Question(
            self.source, len(complexes), data_digest(complexes), splits.origin, splits.digest,
            network, training, self.class_weights,
        )  # fmt: skip
        run = Run.begin(self.out, question, splits, self.fresh)
        jobs = self.jobs or os.cpu_count() or 1
        watched = _Watched(len(splits.folds), training.epochs, silent=self.quiet or self.json)
        try:
            result = crossvalidate(run, complexes, jobs, watched.hear)
        except KeyboardInterrupt:
            show.note(f"finished folds are in {self.out}; the same command goes on from there")
            raise
        self._report(result, splits)

    def _configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        table = read_toml(self.config)
        known = self.source in ("MUTAG", "PTC_MM", "PROTEINS", "NCI1", "NCI109")
        network = NetworkConfig.paper(self.source) if known else NetworkConfig()
        training = TrainingConfig.paper(self.source) if known else TrainingConfig()
        where = str(self.config)
        return (
            changed(network, table["network"], self.network, where),
            changed(training, table["training"], self.training, where),
        )

    def _splits(self, complexes: "CellComplex") -> "Splits":
        from cell_attention.data.splits import read_splits, stratified_folds

        if complexes.targets is None:
            raise InputError(f"{self.source} has no classes to cross-validate")
        if self.splits is not None:
            return read_splits(self.splits, len(complexes))
        return stratified_folds(complexes.targets, self.folds, self.split_seed)

    def _report(self, result: "Result", splits: "Splits") -> None:
        import json

        from cell_attention.learn.published import PAPER

        if self.json:
            show.as_json(json.loads((self.out / "result.json").read_text(encoding="utf-8")))
            return
        rows = []
        names = {"paper": "best mean epoch (paper)", "per_fold_best": "each fold's best epoch"}
        for key, name in names.items():
            outcome = result.protocols[key]
            if outcome is not None:
                epoch = "its own" if outcome.epoch is None else str(outcome.epoch)
                rows.append((name, f"{outcome.mean:.1f} ± {outcome.std:.1f}", epoch))
        rows.append(("fair (inner validation)", "not run", ""))
        if self.source in PAPER:
            mean, std = PAPER[self.source]
            rows.append(("CAN as printed in the paper", f"{mean} ± {std}", ""))
        rows.append(("largest class alone", f"{result.majority:.1f}", ""))
        title = f"{self.source}, accuracy in % over {splits.origin}; ± is the population std"
        show.table(title, ("protocol", "accuracy", "epoch"), rows)
        leak = result.leakage
        print(
            f"Of {leak.graphs} graphs, {leak.with_twin} have a twin that 1-WL cannot tell from "
            f"them; {leak.held_out_with_twin_in_training} held-out ones have it in training."
        )


class _Watched:
    """Progress of all folds: a bar in a terminal, a line now and then elsewhere."""

    def __init__(self, folds: int, epochs: int, silent: bool) -> None:
        self.folds, self.epochs, self.silent = folds, epochs, silent
        self.state: dict[str, dict[str, float]] = {}
        self.began = self.said = time.monotonic()

    def hear(self, name: str, numbers: dict[str, float]) -> None:
        """Take one report of one fold."""
        self.state[name] = numbers
        now = time.monotonic()
        if self.silent or now - self.said < (0.2 if sys.stderr.isatty() else 10.0):
            return
        self.said = now
        done = sum(entry["epoch"] for entry in self.state.values())
        best = sum(entry["best"] for entry in self.state.values()) / len(self.state)
        left = (now - self.began) * (self.folds * self.epochs - done) / max(done, 1)
        text = (
            f"{name}: epoch {numbers['epoch']:.0f} of {self.epochs}, {numbers['score']:.1f} "
            f"(best {numbers['best']:.1f}); mean best so far {best:.1f}; {left:.0f} s left"
        )
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)
