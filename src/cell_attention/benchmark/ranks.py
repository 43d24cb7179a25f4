"""The speed of the default network: against its matrix products, CIN, GINE and GPS, and in size."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import networkx as nx
import numpy as np
import torch
from torch import Tensor, nn

from cell_attention.benchmark import peers
from cell_attention.benchmark.measure import Measurement, best_seconds, best_seconds_in_turn
from cell_attention.benchmark.memory import peak_megabytes
from cell_attention.benchmark.network import BATCH, SIZES, draw_batch
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.lifting import lift

CONTENDERS = ("cin", "gine", "gps")
LENGTHS = (4, 8, 16, 32, 64)
"""Widths of the ladders on which time against the size of a graph is measured."""


def rank_benchmarks(
    name: str, complexes: CellComplex, data_dir: str | None
) -> Iterator[Measurement]:
    """Yield the measurements of the default network on one data set, one by one."""
    batch = draw_batch(complexes, BATCH)
    network = default_network(batch)
    step = peers.training_step(network, batch)
    ours, floor = best_seconds_in_turn([step, products_step(network, batch)], rounds=20)
    yield Measurement(
        f"{name}: default network, training step against its matrix products",
        ours / floor, "×", "at most 2.5 ×", ours / floor <= 2.5,
        f"step {ours * 1e3:.1f} ms, products {floor * 1e3:.1f} ms",
    )  # fmt: skip
    memory = peak_megabytes(name, "default", data_dir)
    for peer in CONTENDERS:
        theirs = contender_step(peer, batch)
        times = best_seconds_in_turn([step, theirs], rounds=10)
        limit = 0.5 if peer == "cin" else None
        ratio = times[0] / times[1]
        yield Measurement(
            f"{name}: default network ÷ {peer} of equal widths, time of a training step",
            ratio, "×", f"at most {limit} ×" if limit else "",
            None if limit is None else ratio <= limit,
            f"{times[0] * 1e3:.1f} and {times[1] * 1e3:.1f} ms",
        )  # fmt: skip
        other = peak_megabytes(name, f"{peer} of the default's widths", data_dir)
        if memory is not None and other is not None:
            yield Measurement(
                f"{name}: default network ÷ {peer} of equal widths, memory of a training step",
                memory / other, "×", detail=f"{memory:.0f} and {other:.0f} MB",
            )  # fmt: skip
    yield _growth(f"{name}: default network, time against the batch", SIZES, _batches(complexes))
    yield _growth("default network, time against the size of a graph", LENGTHS, _ladders)


def default_network(batch: CellComplex) -> CellAttentionNetwork:
    """Build the default network for a batch with classes as targets."""
    torch.manual_seed(0)
    return CellAttentionNetwork(NetworkConfig(), *_sizes(batch))


def _sizes(batch: CellComplex) -> tuple[int, int, int]:
    edges = 0 if batch.edge_features is None else batch.edge_features.size(1)
    classes = 2 if batch.targets is None else int(batch.targets.max()) + 1
    return batch.node_features.size(1), edges, classes


def products_step(network: nn.Module, batch: CellComplex) -> peers.Step:
    """Make a step of only the matrix products that a training step of the network needs."""
    shapes: list[tuple[int, int, int, bool]] = []

    def note(layer: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> None:
        rows, width = given[0].shape
        shapes.append((rows, width, result.size(1), given[0].requires_grad))

    linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
    hooks = [layer.register_forward_hook(note) for layer in linear]
    network(batch)
    for hook in hooks:
        hook.remove()
    return peers.products(shapes)


def contender_step(peer: str, batch: CellComplex) -> peers.Step:
    """Make a training step of a peer whose layers are as wide and as many as the default's."""
    torch.manual_seed(0)
    config, sizes = NetworkConfig(), _sizes(batch)
    if peer == "cin":
        from cell_attention.models.cin import CellIsomorphismNetwork

        plain = NetworkConfig.edges(pooling="none", dropout=config.dropout)
        wide = replace(plain, hidden=config.widths, heads=(1,) * len(config.widths))
        return peers.training_step(CellIsomorphismNetwork(wide, *sizes), batch)
    from cell_attention.models.gine import GineNetwork

    network = GineNetwork(*sizes, widths=config.widths, heads=config.heads[0], attend=peer == "gps")
    return peers.training_step(network, batch)


def _batches(complexes: CellComplex) -> Callable[[int], CellComplex]:
    return lambda size: draw_batch(complexes, size)


def _ladders(length: int) -> CellComplex:
    """Sixteen ladders of squares, with classes as targets."""
    graph = nx.convert_node_labels_to_integers(nx.ladder_graph(length))
    complexes = lift([graph] * 16, 6)
    return replace(
        complexes,
        node_features=torch.ones(complexes.num_nodes, 4),
        targets=torch.arange(16) % 2,
    )


def _growth(title: str, sizes: Sequence[int], make: Callable[[int], CellComplex]) -> Measurement:
    times = []
    for size in sizes:
        batch = make(size)
        times.append(best_seconds(peers.training_step(default_network(batch), batch), repeats=8))
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    shown = ", ".join(f"{n}: {s * 1e3:.2f}" for n, s in zip(sizes, times, strict=True))
    return Measurement(
        title, slope, "log-log slope", "at most 1.15", slope <= 1.15, f"ms at {shown}"
    )
