"""Models of your own: what they return is checked whenever they run.

Each mistake is one sentence that names the class and the rule. Built-in models are not checked.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from cell_attention.errors import InputError
from cell_attention.models.fitting import Fitter, FoldTask
from cell_attention.models.settings import Settings
from cell_attention.nn.part_checks import require_tensor
from cell_attention.topology.complex import CellComplex


def check_network(title: str, network: Any, outputs: int) -> None:
    """Refuse a network that cannot be trained; have its outputs checked at every call."""
    if not isinstance(network, nn.Module):
        raise InputError(f"{title} must be a torch module, got {type(network).__name__}")
    if not any(value.requires_grad for value in network.parameters()):
        raise InputError(f"{title} must have parameters that can be trained, got none")
    network.register_forward_hook(_OutputCheck(title, outputs))


@dataclass(frozen=True)
class _OutputCheck:
    """A forward hook that refuses wrong outputs; an object, so that networks can be copied."""

    title: str
    outputs: int

    def __call__(self, network: nn.Module, given: tuple[Any, ...], result: Any) -> None:
        if not given or not isinstance(given[0], CellComplex):
            return
        shape = given[0].num_complexes, self.outputs
        require_tensor(f"{self.title}: the result of forward", result, shape)
        if network.training and torch.is_grad_enabled() and not result.requires_grad:
            raise InputError(f"{self.title}: the result of forward must depend on its parameters")


@dataclass(frozen=True)
class CheckedFitter:
    """A `Fitter` of your own, whose records are checked."""

    title: str
    made: Fitter

    def require(self, settings: Settings, complexes: CellComplex) -> None:
        """Refuse what the model refuses."""
        self.made.require(settings, complexes)

    def fit_fold(self, task: FoldTask) -> dict[str, Any]:
        """Return the record of the model, after a look at it."""
        found: Any = self.made.fit_fold(task)
        rule = f"{self.title}: fit_fold must return a dictionary with score, a list with one number"
        score = found.get("score") if isinstance(found, dict) else found
        if not isinstance(found, dict) or not _is_score(score):
            raise InputError(f"{rule}, got {score!r:.80}")
        try:
            json.dumps(found)
        except (TypeError, ValueError) as error:
            raise InputError(f"{rule}, and all that JSON can hold; {error}") from None
        return found


def _is_score(score: Any) -> bool:
    return (
        isinstance(score, list)
        and len(score) == 1
        and type(score[0]) in (int, float)
        and math.isfinite(score[0])
    )
