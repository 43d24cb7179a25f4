"""How long a training will take, from a step of it."""

import time

import torch

from cell_attention.topology.complex import CellComplex
from cell_attention.training.loop import Training
from cell_attention.training.settings import Question


def epoch_seconds(question: Question, complexes: CellComplex, graphs: int) -> float:
    """About how long an epoch over so many graphs takes: one step on a batch of them, timed, and
    a tenth of the graphs looked at.
    """
    size = min(question.training.batch_size, len(complexes))
    chosen = torch.randperm(len(complexes), generator=torch.Generator().manual_seed(0))[:size]
    every = list(range(len(complexes)))
    training = Training(
        complexes, every, every, question.task_on(complexes), question.network, question.training,
        (0,), model=question.model,
    )  # fmt: skip
    training.step(complexes[chosen])
    began = time.perf_counter()
    training.step(complexes[chosen])
    middle = time.perf_counter()
    training.outputs(chosen)
    looked = time.perf_counter() - middle
    return (middle - began + 0.1 * looked) * graphs / size
