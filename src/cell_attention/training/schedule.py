"""Schedules of the learning rate: changed after every epoch, or ("one_cycle") at every step."""

import math
from typing import Any

import torch
from torch.optim import lr_scheduler

from cell_attention.training.config import TrainingConfig

LOWEST = 1e-3
"""Share of the learning rate at which a cycle begins and ends."""


def epoch_schedule(adam: torch.optim.Optimizer, config: TrainingConfig) -> Any:
    """Return the schedule that is stepped after every epoch, or None if there is none.

    Deviation: the presets keep the rate constant. The paper has no schedule; the plateau schedule
    of the released code sees the graphs that are reported.
    """
    if config.schedule == "plateau":
        return lr_scheduler.ReduceLROnPlateau(
            adam, mode="max", factor=0.5, patience=50, min_lr=7e-5
        )
    if config.schedule == "step":
        return lr_scheduler.StepLR(adam, step_size=max(1, config.epochs // 6), gamma=0.5)
    if config.schedule == "cosine":
        return lr_scheduler.CosineAnnealingLR(adam, T_max=config.epochs)
    return None


def one_cycle(done: float, warmup: float) -> float:
    """Return the factor of the learning rate after a share `done` of all steps: up along half a
    cosine during the warm-up, down along another one after it (Smith 2018).
    """
    rise = done / warmup if done < warmup else (1.0 - done) / (1.0 - warmup)
    return LOWEST + (1.0 - LOWEST) * 0.5 * (1.0 - math.cos(math.pi * rise))
