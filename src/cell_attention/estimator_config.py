"""The configurations of an estimator: the base ones, with the fields that the estimator sets."""

from dataclasses import fields, replace
from numbers import Integral
from typing import Any

import numpy as np

from cell_attention.errors import InputError


def or_usual(name: str, config: Any, kind: Any) -> Any:
    """Return the given configuration, or the usual one for molecules; refuse anything else."""
    if config is not None and not isinstance(config, kind):
        raise InputError(f"{name} must be a {kind.__name__}, got {config!r:.60}")
    return config or kind.molecules()


def changed_by(config: Any, estimator: Any) -> Any:
    """Replace the fields of a configuration that the estimator sets."""
    named = estimator.get_params(deep=False)
    given = {entry.name: named[entry.name] for entry in fields(config) if entry.name in named}
    return replace(
        config,
        **{name: _plain(value) for name, value in given.items() if value is not None},
    )


def _plain(value: Any) -> Any:
    """Convert lists to tuples and numpy numbers to Python's, as a configuration requires."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def seed_of(random_state: Any) -> int:
    """Return the seed of a random state as scikit-learn has them."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if not isinstance(random_state, Integral) or random_state < 0:
        raise InputError(f"random_state must be a whole number of at least 0, got {random_state!r}")
    return int(random_state)
