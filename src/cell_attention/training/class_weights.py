"""Weights in the loss that let rare classes and labels count as much as common ones."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from cell_attention.data.dataset import GraphSet
from cell_attention.data.file_format import Kind

ClassWeights = bool | Literal["auto"]
"""Whether classes and labels are weighted; "auto" weights those that are rare."""

RARE = 0.1
"""A class is rare if fewer graphs than this share have it, a label if one of its values is."""


def weights_of_classes(seen: Tensor, count: int) -> Tensor:
    """Return (count,) weights, graphs / (classes · graphs of the class); seen: (graphs,) classes.

    A class that was not seen counts as if it had one graph.
    """
    sizes = torch.bincount(seen, minlength=count).float()
    return seen.numel() / (count * sizes.clamp(min=1))


def weights_of_labels(seen: Tensor, *, rare_only: bool) -> Tensor:
    """Return (2, labels) weights of zeros and ones, as those of two classes; seen: (graphs, labels)
    with NaN where a label is not known.

    A label that is always the same has weights of 1, and so has one that is not rare if
    `rare_only`.
    """
    sizes = _sizes(seen)
    known = sizes.sum(0)
    kept = (sizes == 0).any(0)
    if rare_only:
        kept |= sizes.amin(0) >= RARE * known
    weights = known / (2 * sizes.clamp(min=1))
    return torch.where(kept, torch.ones_like(weights), weights)


def _sizes(seen: Tensor) -> Tensor:
    """(2, labels) how often each label is 0 and 1."""
    return torch.stack([(seen == value).sum(0) for value in (0, 1)]).float()


def choose_weights(
    asked: ClassWeights, graph_set: GraphSet, *, kind: Kind, metric: str | None
) -> tuple[ClassWeights, str]:
    """Choose whether to weight; also return a note for the user, or "".

    "auto" weights files of molecules with a rare class or label, unless the metric is accuracy or
    the Brier score, which weights would make worse: both follow the true frequencies.
    """
    targets = graph_set.graphs.targets
    if asked != "auto" or targets is None:
        return asked, ""
    if (
        kind == "values"
        or graph_set.molecules is None
        or metric not in ("roc_auc", "pr_auc", "mcc")
    ):
        return False, ""
    if kind == "classes":
        return _for_classes(targets, graph_set.class_names)
    return _for_labels(targets.reshape(len(targets), -1), graph_set.target_names)


_ADVICE = "class_weights=False would weight all molecules the same"


def _for_classes(targets: Tensor, names: Sequence[str]) -> tuple[ClassWeights, str]:
    shares = torch.bincount(targets, minlength=len(names)).double() / targets.numel()
    least = int(shares.argmin())
    if shares[least] >= RARE:
        return False, ""
    what = f"class {names[least]!r}" if names else f"class {least}"
    share = 100 * float(shares[least])
    return True, f"{what} is rare ({share:.1f} %): rare classes have more weight; {_ADVICE}"


def _for_labels(targets: Tensor, names: Sequence[str]) -> tuple[ClassWeights, str]:
    sizes = _sizes(targets)
    rare = (sizes.amin(0) < RARE * sizes.sum(0)) & (sizes > 0).all(0)
    if not rare.any():
        return False, ""
    first = int(rare.nonzero()[0])
    named = repr(names[first]) if names else str(first)
    count = f"{int(rare.sum())} of {rare.numel()} labels are rare, the first {named}"
    return "auto", f"{count}: their rare values have more weight; {_ADVICE}"


def weights_of_known(sample_weights: Tensor | None, there: Tensor) -> Tensor:
    """Return the weight of the graph of every known target; there: (graphs,) or (graphs, ·)."""
    if sample_weights is None:
        return torch.ones((), device=there.device)
    return sample_weights.view(-1, *[1] * (there.dim() - 1)).expand_as(there)[there]
