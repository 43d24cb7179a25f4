"""A CellComplex in a safetensors file: written atomically, read memory-mapped, refused when it is
damaged.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from cell_attention._files import open_tensors, write_tensors
from cell_attention.errors import DataError, InputError, SourceNotFoundError
from cell_attention.topology.cells import polygon_order
from cell_attention.topology.compiled import as_array
from cell_attention.topology.limits import MOST_COMPLEXES, Limits
from cell_attention.topology.neighbourhoods import check_pairs

if TYPE_CHECKING:
    from cell_attention.topology.complex import CellComplex

FORMAT = "cell-complex"
VERSION = 2
"""Version 2 has `target_bounds`; a file without them is still written as version 1."""
_INDICES = ("edge_nodes", "polygon_edges", "node_complex", "edge_complex", "polygon_complex")
_REQUIRED = (*_INDICES, "node_features", "polygon_signs")
_OPTIONAL = ("edge_features", "polygon_features", "complex_features", "targets", "target_bounds")


def save(complexes: "CellComplex", path: Path) -> None:
    """`complexes.save(path)`."""
    metadata = {
        "format": FORMAT,
        "version": "1" if complexes.target_bounds is None else str(VERSION),
        "num_complexes": str(complexes.num_complexes),
    }
    tensors = {
        name: value.detach().cpu().contiguous().clone()
        for name, value in complexes.tensors().items()
    }
    write_tensors(path, tensors, metadata)


def load(path: Path, limits: Limits) -> dict[str, Any]:
    """Return the fields of `CellComplex.load(path)`."""
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file")
    try:
        with open_tensors(path) as file:
            metadata = file.metadata() or {}
            count = _checked_count(path, metadata)
            names = set(file.keys())
            if missing := [name for name in _REQUIRED if name not in names]:
                raise DataError(f"{path}: {missing[0]} is missing")
            tensors = {
                name: file.get_tensor(name) for name in (*_REQUIRED, *_OPTIONAL) if name in names
            }
    except SafetensorError as error:
        raise DataError(f"{path}: not a complete safetensors file ({error})") from error
    _check(path, tensors, count)
    edges, nodes = as_array(tensors["edge_nodes"]), as_array(tensors["node_complex"])
    degrees = np.bincount(edges.ravel(), minlength=nodes.size)
    check_pairs("lower", np.bincount(nodes, degrees * (degrees - 1.0), count), limits.pairs)
    polygons = as_array(tensors["polygon_complex"])
    sizes = as_array(torch.bincount(tensors["polygon_edges"][1], minlength=polygons.size))
    check_pairs("upper", np.bincount(polygons, sizes * (sizes - 1.0), count), limits.pairs)
    return {**tensors, "num_complexes": count}


def _checked_count(path: Path, metadata: dict[str, str]) -> int:
    if metadata.get("format") != FORMAT:
        raise DataError(f"{path}: not a cell complex (no format {FORMAT!r} in its metadata)")
    version, count = metadata.get("version", ""), metadata.get("num_complexes", "")
    if not all(text.isdecimal() and len(text) < 19 for text in (version, count)):
        raise DataError(
            f"{path}: version {version!r:.30} and num_complexes {count!r:.30} must be numbers"
        )
    if int(count) > MOST_COMPLEXES:
        raise DataError(f"{path}: num_complexes {count} is larger than {MOST_COMPLEXES:,}")
    if int(version) > VERSION:
        raise DataError(
            f"{path}: format version {version} is newer than {VERSION}, the newest that this "
            "version of cell-attention reads; upgrade it"
        )
    return int(count)


def _check(path: Path, tensors: dict[str, Tensor], count: int) -> None:
    """Check everything that the kernels rely on: a wrong index would crash the process."""

    def require(rule: bool | Tensor, text: str) -> None:
        if not bool(rule):
            raise DataError(f"{path}: {text}")

    for name in _INDICES:
        require(
            tensors[name].dtype == torch.int64, f"{name} must be int64, got {tensors[name].dtype}"
        )
    edge_nodes, polygon_edges, *members = (tensors[name] for name in _INDICES)
    signs = tensors["polygon_signs"]
    for name, value, shape in (
        ("edge_nodes", edge_nodes, (2, members[1].numel())),
        ("polygon_edges", polygon_edges, (2, signs.numel())),
    ):
        require(tuple(value.shape) == shape, f"{name} must be {shape}, got {tuple(value.shape)}")
    require(signs.dim() == 1, f"polygon_signs must have one dimension, got {signs.dim()}")
    for name, member in zip(_INDICES[2:], members, strict=True):
        require(
            member.dim() == 1 and (member[1:] >= member[:-1]).all(), f"{name} must not decrease"
        )
        require(
            member.numel() == 0 or (member[0] >= 0 and member[-1] < count),
            f"{name} is out of range",
        )
    bounds = tensors.get("target_bounds")
    require(bounds is None or (bounds.abs() <= 1).all(), "target_bounds must be -1, 0 or 1")
    nodes, edges, polygons = members
    small, large = edge_nodes
    require(
        ((small >= 0) & (small < large) & (large < nodes.numel())).all(),
        "edge_nodes is out of range",
    )
    rising = (small[1:] > small[:-1]) | ((small[1:] == small[:-1]) & (large[1:] > large[:-1]))
    require(rising.all(), "edge_nodes must be sorted, without duplicates")
    require((nodes[edge_nodes] == edges).all(), "an edge lies in another complex than its nodes")

    side, polygon = polygon_edges
    require(
        ((side >= 0) & (side < edges.numel())).all(),
        "polygon_edges names an edge that does not exist",
    )
    require(
        (polygon[1:] >= polygon[:-1]).all()
        and torch.equal(polygon.unique(), torch.arange(polygons.numel())),
        "polygon_edges must list the edges of one polygon after another",
    )
    require(
        signs.dtype == torch.int8 and (signs.abs() == 1).all(),
        "polygon_signs must be int8, 1 or -1",
    )
    require(
        (edges[side] == polygons[polygon]).all(), "a polygon lies in another complex than its edges"
    )
    tail = torch.where(signs > 0, small[side], large[side])
    head = torch.where(signs > 0, large[side], small[side])
    sizes = torch.bincount(polygon, minlength=polygons.numel())
    first = torch.cumsum(sizes, 0) - sizes
    following = torch.arange(1, side.numel() + 1)
    following[first + sizes - 1] = first
    require((sizes >= 3).all() and (head == tail[following]).all(), "a polygon is not closed")
    visits = torch.unique(polygon * nodes.numel() + tail)
    require(visits.numel() == tail.numel(), "a polygon visits a node twice")
    least = torch.full_like(polygons, nodes.numel()).scatter_reduce(0, polygon, tail, "amin")
    onwards, backwards = tail[first + 1], tail[first + sizes - 1]
    require(
        (tail[first] == least).all() and (onwards < backwards).all(),
        "a polygon must start at its smallest node, towards the smaller neighbour",
    )
    try:
        order = polygon_order(as_array(tail), as_array(sizes), as_array(nodes))
    except InputError as error:
        raise DataError(f"{path}: {error}") from None
    require(
        bool((order[1:] > order[:-1]).all()), "polygons must be sorted by complex, size and nodes"
    )
