"""A picture of the curves of a cross-validation: every fold, their mean, the chosen epoch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cell_attention.evaluation.figures import picture
from cell_attention.evaluation.protocols import Outcome


def draw_curves(
    path: Path,
    curves: Sequence[Sequence[float]],
    *,
    title: str,
    score: str,
    chosen: Outcome,
    majority: float | None,
) -> None:
    """Draw the curves as an SVG file; the same curves give the same bytes."""
    epochs = np.arange(1, len(curves[0]) + 1)
    with picture(path, title) as axes:
        for number, curve in enumerate(curves):
            label = "folds" if number == 0 else None
            axes.plot(epochs, curve, color="#9aa7b4", linewidth=0.5, alpha=0.6, label=label)
        axes.plot(epochs, np.mean(curves, 0), color="#1f4e79", linewidth=1.6, label="mean")
        if majority is not None:
            axes.axhline(majority, color="#b35900", linewidth=1, linestyle=":")
            axes.annotate(
                f"largest class, {majority:.1f}", (epochs[0], majority), ha="left", va="bottom",
                color="#b35900", fontsize=8,
            )  # fmt: skip
        if chosen.epoch is not None:
            axes.axvline(chosen.epoch, color="#1f4e79", linewidth=0.8, linestyle="--")
            axes.plot(
                [chosen.epoch], [chosen.mean], "o", color="#1f4e79", markersize=5,
                label=f"best mean, epoch {chosen.epoch}: {chosen.mean:.1f} ± {chosen.std:.1f}",
            )  # fmt: skip
        axes.set_xlabel("epoch")
        axes.set_ylabel(f"{score} on the held-out graphs")
        axes.legend(loc="lower right", fontsize=8, edgecolor="none", framealpha=1.0)
