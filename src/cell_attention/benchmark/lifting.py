"""The speed of lifting: against networkx, per graph, with growing size, in a PyG loop, after
RDKit.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from cell_attention.benchmark.measure import Measurement, best_seconds
from cell_attention.data.dataset import GraphSet
from cell_attention.data.molecules.features import Featuriser, molecule_graphs
from cell_attention.data.molecules.files import MoleculeFile, read_smiles
from cell_attention.data.molecules.molecule import read_molecule
from cell_attention.errors import MoleculeError
from cell_attention.inference.chunks import molecule_chunks
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import predict_complexes
from cell_attention.inference.prediction_table import prediction_cells
from cell_attention.inference.shard_options import AT_ONCE
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.network import CellAttentionNetwork
from cell_attention.topology.compiled import as_array
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.cycles import chordless_cycles
from cell_attention.topology.graphs import RawGraphs, join
from cell_attention.topology.lifting import lift
from cell_attention.topology.limits import Limits
from cell_attention.topology.polygons import attach_polygons

MAX_POLYGON = 6
BATCH = 128


def lifting_benchmarks(graph_set: GraphSet, molecules: Path | None) -> Iterator[Measurement]:
    """Yield the measurements one by one; `molecules` is a .csv of SMILES, or None to leave these
    measurements out.
    """
    graphs = graph_set.graphs
    yield _against_networkx(graph_set.name, graphs)
    yield _throughput(graph_set.name, graphs)
    yield _slope(graph_set.name, graphs)
    yield _pyg_batch(graph_set.name, graphs)
    if molecules is not None:
        yield from _molecules(molecules)


def _against_networkx(name: str, graphs: CellComplex) -> Measurement:
    import networkx

    from cell_attention.topology.interop import to_networkx

    listed = [to_networkx(graph) for graph in graphs]
    edge_nodes, node_complex = as_array(graphs.edge_nodes), as_array(graphs.node_complex)

    def theirs() -> int:
        found = 0
        for graph in listed:
            found += sum(
                len(c) > 2 for c in networkx.chordless_cycles(graph, length_bound=MAX_POLYGON)
            )
        return found

    def ours() -> int:
        return chordless_cycles(edge_nodes, node_complex, MAX_POLYGON, limits=Limits()).sizes.size

    if ours() != theirs():
        raise AssertionError("networkx and this package found different numbers of cycles")
    slow, fast = best_seconds(theirs, repeats=1, warm_up=False), best_seconds(ours, repeats=20)
    ratio = slow / fast
    detail = f"networkx {slow:.2f} s, here {fast * 1e3:.1f} ms, {ours():,} cycles each"
    return Measurement(
        f"cycle search on {name} against networkx",
        ratio,
        "×",
        "at least 100 ×",
        ratio >= 100,
        detail,
    )


def _flat(graphs: CellComplex) -> RawGraphs:
    """Return the graphs as PyG's flat tensors: both directions of every edge, shuffled."""
    both = torch.cat([graphs.edge_nodes, graphs.edge_nodes.flip(0)], dim=1)
    order = torch.randperm(both.size(1), generator=torch.Generator().manual_seed(0))
    # Shuffled within each graph, not across graphs: a file lists its graphs one after another.
    order = order[torch.argsort(graphs.node_complex[both[0, order]], stable=True)]
    return RawGraphs(
        num_nodes=graphs.num_nodes,
        edge_index=both[:, order].contiguous(),
        node_features=graphs.node_features,
        node_complex=graphs.node_complex,
        num_graphs=graphs.num_complexes,
    )


def _lift_with_pairs(flat: RawGraphs) -> int:
    complexes = attach_polygons(join([flat]).complexes, MAX_POLYGON)
    return complexes.lower_pairs.size(1) + complexes.upper_pairs.size(1)


def _throughput(name: str, graphs: CellComplex) -> Measurement:
    flat = _flat(graphs)
    seconds = best_seconds(lambda: _lift_with_pairs(flat), repeats=10)
    rate = graphs.num_complexes / seconds
    detail = (
        f"{seconds * 1e6 / graphs.num_complexes:.1f} µs a graph, from flat tensors, pairs included"
    )
    return Measurement(
        f"whole lift of {name}",
        rate,
        "graphs/s",
        "at least 50,000 graphs/s",
        rate >= 50_000,
        detail,
    )


def _slope(name: str, graphs: CellComplex) -> Measurement:
    sizes = (1, 2, 4, 8)
    seconds = []
    for times in sizes:
        flat = _flat(graphs[torch.arange(graphs.num_complexes).repeat(times)])
        seconds.append(best_seconds(lambda flat=flat: _lift_with_pairs(flat), repeats=5))  # type: ignore[misc]
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    detail = ", ".join(f"{t}×: {s * 1e3:.0f} ms" for t, s in zip(sizes, seconds, strict=True))
    met = 0.85 <= slope <= 1.15
    return Measurement(
        f"growth of time with size on {name}", slope, "log-log slope", "0.85 to 1.15", met, detail
    )


def _pyg_batch(name: str, graphs: CellComplex) -> Measurement:
    from torch_geometric.data import Batch

    from cell_attention.topology.pyg import to_pyg

    chosen = torch.randperm(graphs.num_complexes, generator=torch.Generator().manual_seed(0))[
        :BATCH
    ]
    batch = Batch.from_data_list(to_pyg(graphs[chosen]))

    def work() -> None:
        complexes = lift(batch, MAX_POLYGON)
        complexes.lower_pairs, complexes.upper_pairs  # noqa: B018 - computed when first asked for

    milliseconds = best_seconds(work, repeats=50) * 1e3
    return Measurement(
        f"a PyG batch of {chosen.numel()} {name} graphs, pairs included",
        milliseconds, "ms", "under 5 ms", milliseconds < 5,
    )  # fmt: skip


def _molecules(path: Path) -> Iterator[Measurement]:
    """Measure the stages of `predict` on a file, with the default network for molecules."""
    config, texts = NetworkConfig.molecules(), read_smiles(path)
    seconds = dict.fromkeys(
        ("SMILES read by RDKit", "atoms and bonds copied", "lifted, pairs included", "network"), 0.0
    )
    network, read = _untrained(config), 0
    for first in range(0, len(texts), AT_ONCE):
        marks, molecules = [time.perf_counter()], []
        for text in texts[first : first + AT_ONCE]:
            with suppress(MoleculeError):
                molecules.append(read_molecule(text))
        marks.append(time.perf_counter())
        graphs = molecule_graphs(molecules)
        marks.append(time.perf_counter())
        complexes = attach_polygons(graphs, config.max_polygon)
        complexes.lower_pairs, complexes.upper_pairs  # noqa: B018 - computed when first asked for
        marks.append(time.perf_counter())
        with torch.no_grad():
            network(complexes)
        marks.append(time.perf_counter())
        # The first chunk is not counted, because it compiles kernels, unless it is the only one.
        if first or len(texts) <= AT_ONCE:
            read += len(molecules)
            for name, (begin, end) in zip(seconds, pairwise(marks), strict=True):
                seconds[name] += end - begin
    total = sum(seconds.values())
    for name, spent in seconds.items():
        detail = f"{spent:.2f} s of {total:.2f} s, {read:,} molecules"
        yield Measurement(
            f"{path.name}: {name}", 100 * spent / total, "% of the time", detail=detail
        )
    model = Model((_untrained(config),), "values", (), Featuriser().record, {}, ("value",))
    began, rows = time.perf_counter(), 0
    for chunk in molecule_chunks(model, MoleculeFile(path)):
        rows += len(prediction_cells(model, predict_complexes(model, chunk.complexes)))
    rate = rows / (time.perf_counter() - began)
    yield Measurement(f"{path.name}: from the file to predictions", rate, "molecules/s")


def _untrained(config: NetworkConfig) -> CellAttentionNetwork:
    return CellAttentionNetwork(config, *Featuriser().widths, 1).eval()
