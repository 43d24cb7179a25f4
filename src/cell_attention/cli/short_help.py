"""The help of verbs with many flags: the flags that most people need."""

from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import tyro

_TRAINING = ("target_columns", "smiles_column", "task", "on_error", "split", "epochs", "out")
_FOLDS = (*_TRAINING, "folds", "jobs")
_INFERENCE = ("out", "smiles_column", "on_error", "json", "encoding", "decimal")
_ROWS = ("jobs", "safe_csv")
FIRST: dict[str, tuple[str, ...]] = {
    "train": (*_TRAINING, "model", "ensemble", "from_model"),
    "pretrain": ("smiles_column", "on_error", "mask", "epochs", "batch_size", "out", "quiet"),
    "crossval": (*_FOLDS, "model"),
    "ablate": _FOLDS,
    "search": (*_FOLDS, "trials"),
    "predict": (
        "out",
        "smiles_column",
        "on_error",
        "json",
        "positive",
        "filters",
        "top",
        "rank_by",
        *_ROWS,
    ),
    "fingerprint": (*_INFERENCE, *_ROWS),
    "explain": (*_INFERENCE, "explained_class", "target", "top", "no_faithfulness"),
    "lift": ("smiles_column", "on_error", "max_polygon", "out", "json"),
}
"""The fields of a verb that its --help shows; verbs that are not listed show all."""


def shortened(kind: Any, shown: tuple[str, ...]) -> Any:
    """Return a class for the parser that accepts and describes these fields only, besides
    positional ones.
    """
    hints = get_type_hints(kind, include_extras=True)
    found: dict[str, Any] = {"__annotations__": {}, "__doc__": kind.__doc__}
    for entry in fields(kind):
        hint = hints[entry.name]
        marks = getattr(hint, "__metadata__", ())
        group = getattr(hint, "__origin__", hint)
        if entry.name in shown or tyro.conf.Positional in marks:
            continue
        if is_dataclass(group):
            group = shortened(group, shown)
            found["__annotations__"][entry.name] = Annotated[(group, *marks)] if marks else group
            found[entry.name] = field(default_factory=group)
        else:
            found["__annotations__"][entry.name] = Annotated[hint, tyro.conf.Suppress]
            found[entry.name] = field(default=None if entry.default is MISSING else entry.default)
    return dataclass(frozen=True, kw_only=True)(type(kind.__name__, (kind,), found))
