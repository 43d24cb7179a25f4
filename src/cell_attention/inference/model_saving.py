"""A MODEL_DIR is written: the weights first, `config.json` with their SHA-256 last."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import save
from torch import Tensor, nn

from cell_attention._files import write_tensors, write_whole
from cell_attention.inference.model_folder import CONFIG, FORMAT, METRICS, SPLITS, WEIGHTS, Model
from cell_attention.inference.seen import save_neighbours

if TYPE_CHECKING:
    from cell_attention.data.splits.folds import Fold
    from cell_attention.training.curves import Curves


def save_model(
    folder: Path, model: Model, *, fold: "Fold | None" = None, curves: "Sequence[Curves]" = ()
) -> None:
    """Write a MODEL_DIR, with the splits and the curves if they are given."""
    (folder / CONFIG).unlink(missing_ok=True)  # an incomplete folder must not look like a model
    write_tensors(folder / WEIGHTS, _state(model.members), {"format": "pt"})
    if fold is not None:
        write_whole(folder / SPLITS, json.dumps(asdict(fold)) + "\n")
    lines = []
    for member, curve in enumerate(curves):
        rows = zip(curve.loss, curve.watched_loss, curve.score, strict=True)
        for epoch, (loss, watched, score) in enumerate(rows, start=1):
            line = {"epoch": epoch, "loss": loss, "validation_loss": watched, "validation": score}
            lines.append(json.dumps({"member": member, **line} if len(curves) > 1 else line))
    if lines:
        write_whole(folder / METRICS, "\n".join(lines) + "\n")
    record = {
        "format": FORMAT,
        "model": model.name,
        "network": asdict(model.config),
        "sizes": model.sizes,
        "members": len(model.members),
        "task": model.task,
        "labels": model.labels,
        "target_names": model.target_names,
        "thresholds": model.thresholds,
        "temperatures": model.temperatures,
        "featuriser": model.featuriser,
        "seen": model.seen,
        "ranges": model.ranges,
        "margins": model.margins,
        "neighbours": save_neighbours(folder, model.neighbours),
        "weights": WEIGHTS,
        "weights_sha256": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
        "provenance": model.provenance,
    }
    write_whole(folder / CONFIG, json.dumps(record, indent=2) + "\n")


def weights_digest(model: Model) -> str:
    """Return the SHA-256 of the weights, as a MODEL_DIR has it."""
    return hashlib.sha256(save(_state(model.members), {"format": "pt"})).hexdigest()


def _state(members: Sequence[nn.Module]) -> dict[str, Tensor]:
    """Collect the weights of all members; if there are several, prefixed by the member's number."""
    return {
        f"{number}.{name}" if len(members) > 1 else name: value.contiguous().clone()
        for number, member in enumerate(members)
        for name, value in member.state_dict().items()
    }
