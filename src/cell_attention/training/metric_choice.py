"""The metric that scores a training, where the user names none."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from cell_attention.data.dataset import GraphSet
from cell_attention.data.file_format import Kind
from cell_attention.data.splits.folds import Fold
from cell_attention.training.metrics import check_metric, measured
from cell_attention.training.tasks import kind_of


def ranks_everywhere(kind: Kind, targets: Tensor, parts: Sequence[Sequence[int]]) -> bool:
    """Whether ROC-AUC is defined on each of these lists of graphs."""
    for part in parts:
        chosen = targets[list(part)]
        width = 2 if kind == "classes" else chosen.reshape(len(part), -1).size(1)
        any_guess = torch.full((len(part), width), 0.5)
        if math.isnan(measured("roc_auc", any_guess, chosen, kind=kind)):
            return False
    return True


def choose_metric(
    asked: str | None, graph_set: GraphSet, folds: Sequence[Fold], *, ranked: bool
) -> tuple[str | None, str]:
    """Choose a metric: the one that was asked for, else the usual one; also return a note for the
    user, or "".

    ranked: whether ROC-AUC is preferred for two classes and for labels, as it is for molecules.
    A metric of None stands for `usual_metric`.
    """
    targets = graph_set.require_targets()
    kind = graph_set.kind or kind_of(targets)
    if asked is not None:
        check_metric(asked, kind)
        return asked, ""
    binary = kind == "labels" or len(graph_set.class_names) == 2
    if not ranked or kind == "values" or not binary:
        return None, ""
    held_out = [part for fold in folds for part in (fold.validation, fold.test) if part]
    if ranks_everywhere(kind, targets, held_out):
        return "roc_auc", ""
    return None, "accuracy is used instead of ROC-AUC: a held-out split has only one class"
