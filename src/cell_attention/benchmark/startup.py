"""The time of `cell-attention --help`, compared with an empty Python program."""

import subprocess
import sys

from cell_attention.benchmark.measure import Measurement, best_seconds


def startup_benchmark() -> Measurement:
    """Measure the shortest of several processes, without a shell."""

    def run(*words: str) -> float:
        command = [sys.executable, *words]
        return best_seconds(lambda: subprocess.run(command, capture_output=True, check=True))  # noqa: S603

    empty, seconds = run("-c", ""), run("-m", "cell_attention", "--help")
    detail = f"an empty program takes {empty:.2f} s"
    return Measurement("cell-attention --help", seconds, "s", "under 0.5 s", seconds < 0.5, detail)
