"""The speed of the network: against its matrix products, its peers, and with the batch size."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor
from torch.autograd.profiler import profile

from cell_attention.benchmark import peers
from cell_attention.benchmark.measure import Measurement, best_seconds, best_seconds_in_turn
from cell_attention.benchmark.models import model_benchmarks
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.lifting import lift

BATCH = 128
SIZES = (16, 32, 64, 128, 256, 512)


def drawn(complexes: CellComplex, size: int) -> Tensor:
    """Draw the same random graphs every time, with repeats if the data set is smaller."""
    random = torch.Generator().manual_seed(0)
    count = complexes.num_complexes
    order = torch.cat([torch.randperm(count, generator=random) for _ in range(-(-size // count))])
    return order[:size]


def with_pairs(batch: CellComplex) -> CellComplex:
    """Compute the pairs of a batch, and return it."""
    batch.lower_pairs, batch.upper_pairs  # noqa: B018 - computed when first asked for
    return batch


def draw_batch(complexes: CellComplex, size: int) -> CellComplex:
    """Draw a batch that is ready for a step."""
    return with_pairs(complexes[drawn(complexes, size)])


def network_benchmarks(
    name: str, complexes: CellComplex, data_dir: str | None
) -> Iterator[Measurement]:
    """Yield the measurements of one of the paper's data sets, one by one."""
    batch = draw_batch(complexes, BATCH)
    yield from _against_floor(name, complexes, batch)
    yield from _against_peers(name, batch)
    yield from _growth(name, complexes)
    yield from model_benchmarks(name, batch, data_dir)


def _against_floor(name: str, complexes: CellComplex, batch: CellComplex) -> Iterator[Measurement]:
    step, network = peers.our_step(name, batch)
    ours, floor = best_seconds_in_turn([step, peers.floor_step(network, batch)], rounds=20)
    ratio = ours / floor
    shares = ", ".join(f"{part} {ms:.1f}" for part, ms in _parts(step).items())
    yield Measurement(
        f"{name}: training step against its matrix products",
        ratio, "×", "at most 2.2 ×", ratio <= 2.2,
        f"step {ours * 1e3:.1f} ms, products {floor * 1e3:.1f} ms; profiled, in ms: {shares}",
    )  # fmt: skip
    yield _lifting(name, complexes, max_polygon=network.config.max_polygon, step=ours)


def _lifting(name: str, complexes: CellComplex, *, max_polygon: int, step: float) -> Measurement:
    """Measure the extra time to lift a batch, instead of selecting it from lifted complexes."""
    from torch_geometric.data import Batch

    from cell_attention.topology.pyg import to_pyg

    chosen = drawn(complexes, BATCH)
    graphs = Batch.from_data_list(to_pyg(complexes[chosen]))
    selected, lifted = best_seconds_in_turn(
        [
            lambda: with_pairs(complexes[chosen]),
            lambda: with_pairs(lift(graphs, max_polygon)),
        ],
        rounds=20,
    )
    percent = 100 * (lifted - selected) / step
    return Measurement(
        f"{name}: lifting on the fly adds",
        percent, "% of a step", "at most 5 %", percent <= 5,
        f"lifted {lifted * 1e3:.2f} ms, selected {selected * 1e3:.2f} ms, pairs included",
    )  # fmt: skip


_PARTS = {
    "aten::mm": "products", "aten::addmm": "products", "aten::addmm_": "products",
    "FusedMessages": "attention", "FusedMessagesBackward": "attention",
    "_ActivatedNorm": "φ, norm, dropout", "_ActivatedNormBackward": "φ, norm, dropout",
    "_Drop": "φ, norm, dropout", "_DropBackward": "φ, norm, dropout",
    "FusedLift": "lift", "FusedLiftBackward": "lift",
    "FusedPooling": "pooling", "FusedPoolingBackward": "pooling",
}  # fmt: skip


def _parts(step: peers.Step, steps: int = 5) -> dict[str, float]:
    """Return the milliseconds per step of every part, as measured by the profiler."""
    with profile(use_kineto=False) as profiled:
        for _ in range(steps):
            step()
    parts = dict.fromkeys((*_PARTS.values(), "the rest"), 0.0)
    for event in profiled.key_averages():
        part = _PARTS.get(event.key, "the rest")
        parts[part] += event.self_cpu_time_total / 1e3 / steps
    return parts


def _against_peers(name: str, batch: CellComplex) -> Iterator[Measurement]:
    config = NetworkConfig.paper(name)
    theirs = peers.topomodelx_stack(config, batch)
    title = f"{name}: attention layers alone against TopoModelX"
    hindrance = "TopoModelX is not installed: pip install --no-deps topomodelx toponetx"
    if theirs is not None:
        try:
            theirs()
        except RuntimeError as error:  # for example, if the last edges have no upper neighbour
            theirs, hindrance = None, f"TopoModelX fails on this batch: {error}"
    if theirs is None:
        yield Measurement(title, float("nan"), "×", "at least 4 ×", detail=hindrance)
    else:
        ours, slow = best_seconds_in_turn([peers.our_stack(config, batch), theirs], rounds=10)
        yield Measurement(
            title, slow / ours, "×", "at least 4 ×", slow / ours >= 4,
            f"TopoModelX {slow * 1e3:.1f} ms, here {ours * 1e3:.1f} ms",
        )  # fmt: skip


def _growth(name: str, complexes: CellComplex) -> Iterator[Measurement]:
    seconds: dict[str, list[float]] = {"lift": [], "attention": [], "pooling": []}
    for size in SIZES:
        batch = draw_batch(complexes, size)
        for part, work in _works(name, batch).items():
            seconds[part].append(best_seconds(work, repeats=8))
    for part, times in seconds.items():
        slope = float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])
        shown = ", ".join(f"{n}: {s * 1e3:.2f}" for n, s in zip(SIZES, times, strict=True))
        yield Measurement(
            f"{name}: growth of {part} with the batch", slope, "log-log slope", "at most 1.15",
            slope <= 1.15, f"ms at {shown}",
        )  # fmt: skip


def _works(name: str, batch: CellComplex) -> dict[str, Callable[[], None]]:
    """Return forward and backward passes of the network's parts, each alone."""
    _, network = peers.our_step(name, batch)
    layer, config = network.attention[0], network.config
    width = network.lift.out_channels + network.edge_features
    edges = torch.randn(batch.num_edges, width, requires_grad=True)
    joined = torch.randn(batch.num_edges, config.widths[-1], requires_grad=True)
    pool = network.pool[-1]

    def work(part: Callable[[], Tensor]) -> Callable[[], None]:
        upstream = torch.randn_like(part())
        return lambda: part().backward(upstream)

    return {
        "lift": work(lambda: network.lift(batch.node_features, batch.edge_nodes, None)),
        "attention": work(lambda: layer(edges, batch.lower_pairs, batch.upper_pairs).edges),
        "pooling": work(lambda: pool(joined, batch.edge_complex, batch.num_complexes).edges),
    }
