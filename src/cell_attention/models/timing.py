"""An estimate of how long a training will take, from one step."""

import time
from collections.abc import Callable

import torch

from cell_attention.models.network_fitter import start_training
from cell_attention.models.settings import Settings
from cell_attention.topology.complex import CellComplex


def epoch_seconds(settings: Settings, complexes: CellComplex, graphs: int) -> float:
    """Estimate the seconds of an epoch over so many graphs: time one training step on a batch, and
    add the evaluation of a tenth as many graphs.
    """
    size = min(settings.training.batch_size, len(complexes))
    chosen = torch.randperm(len(complexes), generator=torch.Generator().manual_seed(0))[:size]
    every = list(range(len(complexes)))
    training = start_training(
        complexes, every, every, task=settings.task_on(complexes), network=settings.network,
        training=settings.training, seed=(0,), model=settings.model,
    )  # fmt: skip
    return time_epoch(
        lambda: training.step(complexes[chosen]), lambda: training.outputs(chosen), graphs / size
    )


def time_epoch(step: Callable[[], object], evaluate: Callable[[], object], batches: float) -> float:
    """Estimate the seconds of so many batches: time one step, the second, and add a tenth of the
    evaluation of as many graphs.
    """
    step()
    began = time.perf_counter()
    step()
    middle = time.perf_counter()
    evaluate()
    looked = time.perf_counter() - middle
    return (middle - began + 0.1 * looked) * batches
