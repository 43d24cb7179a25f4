"""Checks of the mathematics, to call in your own tests of your own networks."""

from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from cell_attention.nn.cell_predictor import CellPredictor
from cell_attention.topology.complex import CellComplex
from cell_attention.topology.interop import polygon_tuples
from cell_attention.topology.selection import rows_of


def assert_permutation_invariant(
    network: nn.Module, complexes: CellComplex, *, trials: int = 3, tolerance: float = 1e-9
) -> None:
    """Assert that the output does not depend on the numbering of the cells (Theorem 1).

    Runs in float64 and in eval mode. Only networks with the symmetric lift can pass.
    """
    network = _exact(network)
    with torch.no_grad():
        expected = network(_double(complexes))
        for trial in range(trials):
            changed = network(_double(relabelled(complexes, trial).complexes))
            _assert_close(changed, expected, tolerance=tolerance, what=f"relabelling {trial}")


def assert_permutation_equivariant(
    network: Any, complexes: CellComplex, *, trials: int = 3, tolerance: float = 1e-9
) -> None:
    """Assert that relabelling permutes the edge embeddings of a network without pooling, or the
    outputs of a `CellPredictor`.
    """
    network = _exact(network)
    cells = network.cells if isinstance(network, CellPredictor) else "edges"

    def rows(given: CellComplex) -> Tensor:
        exact = _double(given)
        found = network(exact) if isinstance(network, CellPredictor) else network.embed(exact).edges
        return cast(Tensor, found)

    with torch.no_grad():
        expected = rows(complexes)
        for trial in range(trials):
            renamed = relabelled(complexes, trial)
            _assert_close(
                rows(renamed.complexes), expected[getattr(renamed, cells)],
                tolerance=tolerance, what=f"relabelling {trial}",
            )  # fmt: skip


def assert_batching_is_harmless(
    network: nn.Module, complexes: CellComplex, tolerance: float = 1e-5
) -> None:
    """Assert that a batch gives the same outputs as its members one by one, in eval mode."""
    was_training = network.training
    network.eval()
    with torch.no_grad():
        together = network(complexes)
        alone = torch.cat([network(one) for one in complexes])
    network.train(was_training)
    _assert_close(together, alone, tolerance=tolerance, what="batching")


class Relabelled:
    """Complexes with a new numbering of their nodes, and the old row of every cell."""

    def __init__(
        self, complexes: CellComplex, *, nodes: Tensor, edges: Tensor, polygons: Tensor
    ) -> None:
        self.complexes = complexes
        self.nodes, self.edges, self.polygons = nodes, edges, polygons
        """(cells,) old row of every new one."""


def relabelled(complexes: CellComplex, seed: int) -> Relabelled:
    """Number the nodes of each complex at random; edges and polygons are reordered to match."""
    random = torch.Generator().manual_seed(seed)
    noise = torch.rand(complexes.num_nodes, generator=random, dtype=torch.float64)
    order = torch.argsort(complexes.node_complex + noise)  # old node of every new one
    new = torch.empty_like(order)
    new[order] = torch.arange(complexes.num_nodes)
    renamed = CellComplex.from_cells(
        new[complexes.edge_nodes].T,
        [[int(new[node]) for node in polygon] for polygon in polygon_tuples(complexes)],
        node_features=complexes.node_features[order],
        edge_features=torch.arange(complexes.num_edges).unsqueeze(1),
        polygon_features=torch.arange(complexes.num_polygons).unsqueeze(1),
        node_complex=complexes.node_complex,
        targets=complexes.targets,
    )
    if renamed.edge_features is None or renamed.polygon_features is None:
        raise AssertionError("from_cells lost the features")
    edges, polygons = renamed.edge_features.squeeze(1), renamed.polygon_features.squeeze(1)
    return Relabelled(
        replace(
            renamed,
            edge_features=rows_of(complexes.edge_features, edges),
            polygon_features=rows_of(complexes.polygon_features, polygons),
            num_complexes=complexes.num_complexes,
            target_bounds=complexes.target_bounds,
        ),
        nodes=order,
        edges=edges,
        polygons=polygons,
    )


def _exact(network: Any) -> Any:
    import copy

    return copy.deepcopy(network).double().eval()


def _double(complexes: CellComplex) -> CellComplex:
    features = complexes.edge_features
    return replace(
        complexes,
        node_features=complexes.node_features.double(),
        edge_features=None if features is None else features.double(),
    )


def _assert_close(got: Tensor, expected: Tensor, *, tolerance: float, what: str) -> None:
    if got.shape != expected.shape:
        raise AssertionError(
            f"{what} changes the shape {tuple(expected.shape)} to {tuple(got.shape)}"
        )
    scale = expected.abs().max().clamp(min=1.0) if expected.numel() else torch.tensor(1.0)
    gap = float((got - expected).abs().max() / scale) if expected.numel() else 0.0
    if not gap <= tolerance:
        raise AssertionError(f"{what} changes the output by {gap:.2e}, more than {tolerance:.0e}")
