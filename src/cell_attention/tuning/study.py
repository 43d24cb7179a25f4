"""One Optuna study in a folder: TPE and a pruner behind a journal of our own seeds.

Every trial draws with seeds made of the study's, its own number and the fields' names, so a study
that was killed anywhere goes on to the same trials.
"""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

from cell_attention.errors import DataError, InputError
from cell_attention.tuning.space import Categorical, Changes, Dimension, Space, suggested

RANDOM_TRIALS = 10
"""Trials before TPE has seen enough to lead."""


class _NoLock:
    """The folder is held by one process already; a lock that a kill leaves behind would hang."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        return


def import_optuna() -> Any:
    """Optuna, quiet."""
    try:
        import optuna
    except ImportError:
        raise InputError("search needs Optuna: pip install 'cell-attention[search]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Study:
    """Trials by number: asked for, judged on the way, told in the end."""

    def __init__(self, path: Path, seed: int) -> None:
        self.optuna, self.seed = import_optuna(), seed
        _cut_unfinished(path)
        journal = self.optuna.storages.journal
        try:
            backend = journal.JournalFileBackend(str(path), lock_obj=_NoLock())
            storage = self.optuna.storages.JournalStorage(backend)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.study = self.optuna.create_study(
                    storage=storage, study_name="search", direction="maximize",
                    load_if_exists=True,
                    pruner=self.optuna.pruners.MedianPruner(n_startup_trials=5),
                )  # fmt: skip
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            raise DataError(f"{path}: not the journal of a search ({error!r})") from None

    def trials(self) -> list[Any]:
        """All that were begun, by number."""
        found: list[Any] = self.study.get_trials(deepcopy=False)
        return found

    def begun(self, number: int) -> Any:
        """The trial of that number, as it was left or new; numbers come one after the other."""
        known = self.trials()
        self._seed(f"{number}")
        if number == len(known):
            trial = self.study.ask()
        else:
            trial = self.optuna.trial.Trial(self.study, known[number]._trial_id)
        _ = trial.relative_params  # drawn together, when first asked for: now, with this seed
        return trial

    def is_running(self, number: int) -> bool:
        """Whether the trial is not finished, or not begun."""
        known = self.trials()
        return number >= len(known) or not known[number].state.is_finished()

    def changes(self, trial: Any, space: Space) -> Changes:
        """What the trial changes; values that it has already stay."""

        def suggest(name: str, where: Dimension) -> Any:
            self._seed(f"{trial.number} {name}")  # those that are drawn one by one
            if isinstance(where, Categorical):
                # As text: the journal holds numbers, words and truth values, but no lists.
                texts = [json.dumps(value) for value in where.values]
                return where.values[texts.index(trial.suggest_categorical(name, texts))]
            if where.whole:
                return trial.suggest_int(name, int(where.low), int(where.high), log=where.log)
            return trial.suggest_float(name, where.low, where.high, log=where.log)

        return suggested(space, suggest)

    def _seed(self, text: str) -> None:
        """Let what is drawn next depend on this text and on what the study knows alone."""
        digest = hashlib.sha256(f"{self.seed} {text}".encode()).digest()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna's on what is experimental
            self.study.sampler = self.optuna.samplers.TPESampler(
                seed=int.from_bytes(digest[:4], "big"),
                n_startup_trials=RANDOM_TRIALS,
                constant_liar=True,
            )

    def judged(self, trial: Any, value: float, step: int) -> bool:
        """Report a value on the way; whether the trial is to be given up.

        What was passed once stays passed: trials that were finished meanwhile, before a kill, have
        no say in it.
        """
        passed = f"passed {step}"
        if passed in trial.user_attrs:
            return False
        if step not in self.trials()[trial.number].intermediate_values:
            trial.report(value, step)
        if trial.should_prune():
            self.study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)
            return True
        trial.set_user_attr(passed, True)
        return False

    def told(self, trial: Any, value: float | None) -> None:
        """Finish a trial; None where it failed."""
        if value is None:
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, value)


def is_complete(trial: Any) -> bool:
    """Whether a trial has seen all its folds; one that was given up has a value too."""
    return bool(trial.state.name == "COMPLETE")


def _cut_unfinished(path: Path) -> None:
    """Drop a last line that a kill left without its end: the next one would be joined to it."""
    if not path.is_file():
        return
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        with path.open("r+b") as file:
            file.truncate(len(whole))
