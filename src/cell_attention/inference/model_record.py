"""The record of a model in `config.json`: entries that contradict each other are refused."""

from pathlib import Path
from typing import Any

from cell_attention.errors import DataError


def require_consistent(path: Path, record: dict[str, Any]) -> None:
    """Refuse entries that contradict each other: predictions would get wrong names."""
    task, outputs = record["task"], record["sizes"]["outputs"]
    labels, names, limits = record["labels"], record["target_names"], record["thresholds"]
    for name in ("labels", "target_names"):
        texts = record[name]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise DataError(f"{path}: {name} must be a list of texts")
        if len(set(texts)) < len(texts):
            raise DataError(f"{path}: {name} must differ from each other")
    counts = {
        "labels": (len(labels), {0, outputs} if task == "classes" else {0}),
        "target_names": (len(names), {0, 1 if task == "classes" else outputs}),
        "thresholds": (
            len(limits) if isinstance(limits, list) else -1,
            {0, *([1] if task == "classes" and outputs == 2 else [])}
            if task != "labels"
            else {0, outputs},
        ),
    }
    for name, (count, allowed) in counts.items():
        if count not in allowed:
            raise DataError(f"{path}: {name} do not fit {outputs} outputs of task {task!r}")
    if not all(type(limit) in (int, float) and 0.0 <= limit <= 1.0 for limit in limits):
        raise DataError(f"{path}: thresholds must lie in [0, 1], got {limits}")
