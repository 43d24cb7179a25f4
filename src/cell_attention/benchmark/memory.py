"""Peak memory of a training step, in its own process: `python -m … DATA_SET CONTENDER`."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cell_attention.errors import CellAttentionError

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex

LAYERS = ("our layers", "TopoModelX")
"""Contenders besides the models of the registry."""


def peak_megabytes(name: str, contender: str, data_dir: str | None) -> float | None:
    """Return the memory of a step beyond data and network; None if it cannot be measured."""
    words = [sys.executable, "-m", __name__, name, contender, *([data_dir] if data_dir else [])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise CellAttentionError(f"{contender} on {name}: {done.stderr.strip()[-200:]}")
    return float(done.stdout) if done.stdout.strip() else None


def main(name: str, contender: str, data_dir: str | None = None) -> None:
    """Print the peak memory of three steps in MB, after a small step that loads the code."""
    from cell_attention.benchmark import peers, ranks
    from cell_attention.benchmark.network import BATCH, draw_batch
    from cell_attention.data.sources import load_dataset
    from cell_attention.nn.config import NetworkConfig
    from cell_attention.training.threads import settle_process

    settle_process()
    config = NetworkConfig.paper(name)
    largest = 3 if contender == "sin" else config.max_polygon
    complexes = load_dataset(name, largest, data_dir=data_dir)
    makers: dict[str, Callable[[CellComplex], peers.Step | None]] = {
        "our layers": lambda batch: peers.our_stack(config, batch),
        "TopoModelX": lambda batch: peers.topomodelx_stack(config, batch),
        "default": lambda batch: peers.training_step(ranks.default_network(batch), batch),
        **{
            f"{peer} of the default's widths": partial(ranks.contender_step, peer)
            for peer in ranks.CONTENDERS
        },
    }

    def made(batch: "CellComplex") -> peers.Step | None:
        maker = makers.get(contender)
        return maker(batch) if maker else peers.model_step(contender, name, batch)[0]

    step, reset = made(draw_batch(complexes, BATCH)), Path("/proc/self/clear_refs")
    if step is None or not reset.exists():
        return
    if contender != "TopoModelX":
        # Loads the compiled code, which does not belong to a step.
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
    """Read a field of /proc/self/status, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
