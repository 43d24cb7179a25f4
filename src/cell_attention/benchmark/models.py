"""Cell attention against every other model, on the same batch: time, memory and parameters."""

from collections.abc import Iterator
from functools import partial

from torch import nn

from cell_attention.benchmark import peers
from cell_attention.benchmark.measure import Measurement, best_seconds, best_seconds_in_turn
from cell_attention.benchmark.memory import LAYERS, peak_megabytes
from cell_attention.errors import InputError
from cell_attention.models.registry import MODELS
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.lifting import lift
from cell_attention.topology.pyg import to_pyg

ROUNDS = 10
LEFT_OUT = ("can", "ign", "ppgn")
"""CAN itself, and networks of all pairs of nodes: at the widths of the presets for NCI1 and NCI109,
one step of theirs takes a minute."""
CLAIM = 'the paper says "much lower computational complexity than CIN"'


def model_benchmarks(name: str, batch: CellComplex, data_dir: str | None) -> Iterator[Measurement]:
    """Yield CAN ÷ model for every network with layers of the same widths, then for the kernels."""
    ours, network = peers.our_step(name, batch)
    memory = peak_megabytes(name, "can", data_dir)
    for model, about in MODELS.items():
        if not about.epochs or model in LEFT_OUT:
            continue
        try:
            theirs, other = peers.model_step(model, name, _seen_by(model, batch))
        except InputError as error:  # for example, layers of GPS must be equally wide
            yield Measurement(f"{name}: CAN ÷ {model}", float("nan"), "×", detail=str(error))
            continue
        yield from _beside(
            f"{name}: CAN ÷ {model}",
            best_seconds_in_turn([ours, theirs], ROUNDS),
            megabytes=(memory, peak_megabytes(name, model, data_dir)),
            parameters=(_parameters(network), _parameters(other)),
            remark=CLAIM if model == "cin" else "",
        )
        if model == "cin":
            plain, slow = best_seconds_in_turn([peers.plain_step(network, batch), theirs], ROUNDS)
            yield Measurement(
                f"{name}: CAN without compiled kernels ÷ cin, time of a training step",
                plain / slow, "×", detail=f"{plain * 1e3:.1f} and {slow * 1e3:.1f} ms",
            )  # fmt: skip
    yield from _kernels(name, batch[: len(batch) // 8])
    yield from _layers(name, data_dir)


def _beside(
    title: str,
    seconds: list[float],
    *,
    megabytes: tuple[float | None, float | None],
    parameters: tuple[int, int],
    remark: str,
) -> Iterator[Measurement]:
    ours, theirs = seconds
    detail = f"{ours * 1e3:.1f} and {theirs * 1e3:.1f} ms"
    if remark:
        detail += f"; {remark}: here it is {'lower' if ours < theirs else 'not lower'}"
    yield Measurement(f"{title}, time of a training step", ours / theirs, "×", detail=detail)
    if megabytes[0] is not None and megabytes[1] is not None:
        detail = f"{megabytes[0]:.0f} and {megabytes[1]:.0f} MB"
        ratio = megabytes[0] / max(megabytes[1], 0.1)
        yield Measurement(f"{title}, memory of a training step", ratio, "×", detail=detail)
    detail = f"{parameters[0]:,} and {parameters[1]:,}"
    yield Measurement(f"{title}, parameters", parameters[0] / parameters[1], "×", detail=detail)


def _kernels(name: str, batch: CellComplex) -> Iterator[Measurement]:
    """Compare a training step with kernels of all pairs of the same graphs."""
    from cell_attention.models.graph_kernels import compared, require_kernel

    step = best_seconds(peers.our_step(name, batch)[0], ROUNDS)
    for kernel, about in MODELS.items():
        if about.epochs or about.molecules or kernel == "majority":
            continue
        title = f"{name}: CAN's training step ÷ {kernel}, all pairs of {len(batch)} graphs"
        try:
            require_kernel(kernel, batch)
        except InputError as error:
            yield Measurement(title, float("nan"), "×", detail=str(error))
            continue
        seconds = best_seconds(partial(compared, kernel, batch), 1, warm_up=kernel == "wl")
        detail = f"{step * 1e3:.1f} and {seconds * 1e3:.1f} ms"
        yield Measurement(title, step / seconds, "×", detail=detail)


def _layers(name: str, data_dir: str | None) -> Iterator[Measurement]:
    """Compare the memory of attention layers alone with TopoModelX; `network` compares times."""
    ours, theirs = (peak_megabytes(name, layers, data_dir) for layers in LAYERS)
    if ours is not None and theirs is not None:
        yield Measurement(
            f"{name}: our layers ÷ TopoModelX's of equal widths, memory of a training step",
            ours / theirs, "×", detail=f"{ours:.0f} and {theirs:.0f} MB",
        )  # fmt: skip


def _seen_by(model: str, batch: CellComplex) -> CellComplex:
    """Return the graphs as a model sees them: SIN sees only triangles."""
    return lift(to_pyg(batch), 3) if model == "sin" else batch


def _parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())
