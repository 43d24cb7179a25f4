"""One Optuna study in a folder: TPE, a median pruner, and a journal.

Every trial has its own random seeds, made of the study's seed, its number and the names of the
fields, so a study that was killed at any moment resumes with the same trials.
"""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

from cell_attention.errors import DataError, InputError
from cell_attention.tuning.space import Categorical, Changes, Dimension, Space, suggested

RANDOM_TRIALS = 10
"""Number of random trials before TPE starts."""


class _NoLock:
    """No lock: the folder is locked already, and Optuna's lock would block after a kill."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        return


def import_optuna() -> Any:
    """Import Optuna and silence its log."""
    try:
        import optuna
    except ImportError:
        raise InputError("search needs Optuna: pip install 'cell-attention[search]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Study:
    """The trials of a study by number: started, perhaps pruned, finished."""

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
            raise DataError(f"{path}: not a valid journal ({error!r}); use fresh") from None

    def trials(self) -> list[Any]:
        """Return all trials that were started, by number."""
        found: list[Any] = self.study.get_trials(deepcopy=False)
        return found

    def begun(self, number: int) -> Any:
        """Start the next trial, or return the one with this number as it was left."""
        known = self.trials()
        self._seed(f"{number}")
        if number == len(known):
            trial = self.study.ask()
        else:
            trial = self.optuna.trial.Trial(self.study, known[number]._trial_id)
        _ = trial.relative_params  # Optuna draws them at the first access; do it with this seed
        return trial

    def is_running(self, number: int) -> bool:
        """Whether the trial is not finished, or not yet started."""
        known = self.trials()
        return number >= len(known) or not known[number].state.is_finished()

    def changes(self, trial: Any, space: Space) -> Changes:
        """Draw the changes of a trial; values drawn before stay the same."""

        def suggest(name: str, where: Dimension) -> Any:
            self._seed(f"{trial.number} {name}")  # for values that are drawn one by one
            if isinstance(where, Categorical):
                # As text: Optuna's journal cannot hold lists.
                texts = [json.dumps(value) for value in where.values]
                return where.values[texts.index(trial.suggest_categorical(name, texts))]
            if where.whole:
                return trial.suggest_int(name, int(where.low), int(where.high), log=where.log)
            return trial.suggest_float(name, where.low, where.high, log=where.log)

        return suggested(space, suggest)

    def _seed(self, text: str) -> None:
        """Make the next draws depend only on this text, the study's seed and its trials."""
        digest = hashlib.sha256(f"{self.seed} {text}".encode()).digest()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna warns about experimental features
            self.study.sampler = self.optuna.samplers.TPESampler(
                seed=int.from_bytes(digest[:4], "big"),
                n_startup_trials=RANDOM_TRIALS,
                constant_liar=True,
            )

    def judged(self, trial: Any, value: float, step: int) -> bool:
        """Report an intermediate value; return whether the trial was pruned.

        A trial that passed a step is not judged there again: after a kill, trials that finished
        later would change the decision.
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

    def record(self, trial: Any, value: float | None) -> None:
        """Finish a trial; a value of None means that it failed."""
        if value is None:
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, value)


def is_complete(trial: Any) -> bool:
    """Whether a trial has finished all its folds; a pruned trial has a value too."""
    return bool(trial.state.name == "COMPLETE")


def _cut_unfinished(path: Path) -> None:
    """Remove an incomplete last line, left by a kill: the next line would be appended to it."""
    if not path.is_file():
        return
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        with path.open("r+b") as file:
            file.truncate(len(whole))
