"""Peak memory of one training step, in a process of its own: `python -m … SET CONTENDER`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cell_attention.errors import CellAttentionError

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex

LAYERS = ("our layers", "TopoModelX")
"""What is measured beside the models by their names."""


def peak_megabytes(name: str, contender: str, data_dir: str | None) -> float | None:
    """What a step needs above the data and the network; None where that cannot be measured."""
    words = [sys.executable, "-m", __name__, name, contender, *([data_dir] if data_dir else [])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise CellAttentionError(f"{contender} on {name}: {done.stderr.strip()[-200:]}")
    return float(done.stdout) if done.stdout.strip() else None


def main(name: str, contender: str, data_dir: str | None = None) -> None:
    """Print the peak of three steps, after a small one that loads the code, in MB."""
    from cell_attention.benchmark import peers
    from cell_attention.benchmark.network import BATCH, draw_batch
    from cell_attention.data.sources import load_dataset
    from cell_attention.nn.config import NetworkConfig
    from cell_attention.training.threads import use_one_thread

    use_one_thread()
    config = NetworkConfig.paper(name)
    largest = 3 if contender == "sin" else config.max_polygon
    complexes = load_dataset(name, largest, data_dir=data_dir)
    makers: dict[str, Callable[[CellComplex], peers.Step | None]] = {
        "our layers": lambda batch: peers.our_stack(config, batch),
        "TopoModelX": lambda batch: peers.topomodelx_stack(config, batch),
    }

    def made(batch: "CellComplex") -> peers.Step | None:
        maker = makers.get(contender)
        return maker(batch) if maker else peers.model_step(contender, name, batch)[0]

    step, reset = made(draw_batch(complexes, BATCH)), Path("/proc/self/clear_refs")
    if step is None or not reset.exists():
        return
    if contender != "TopoModelX":
        # Loads the compiled code, which is no part of a step.
        small = made(draw_batch(complexes, 4))
        if small is not None:
            small()
    before = _status("VmRSS")
    reset.write_text("5")
    try:
        for _ in range(3):
            step()
    except RuntimeError:
        if contender != "TopoModelX":
            raise
        return  # a peer that fails on this batch has no peak
    sys.stdout.write(f"{(_status('VmHWM') - before) / 1024:.1f}\n")


def _status(field: str) -> int:
    """A line of /proc/self/status in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
