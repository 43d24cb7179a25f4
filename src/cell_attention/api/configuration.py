"""The configuration of an experiment: what a user changes in the defaults of its model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cell_attention.api.reading import Data
from cell_attention.data.dataset import GraphSet
from cell_attention.data.file_format import COUNTED
from cell_attention.errors import InputError
from cell_attention.models.changes import changed
from cell_attention.models.registry import (
    Configs,
    defaults,
    find_model,
    require_read,
    with_heads,
)
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.complex import CellComplex
from cell_attention.training.config import TrainingConfig


def resolve_config(
    model: str,
    data: Data,
    *,
    network: NetworkConfig | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    origin: NetworkConfig | None = None,
    descriptors: Sequence[str] | None = None,
) -> Configs:
    """Combine the model's defaults for these data with the given configurations.

    A mapping changes single fields; from a complete NetworkConfig a rival uses only the fields that
    it reads. Graphs that are already lifted set `max_polygon`, unless it is stated.

    origin: the network of a model to start from, which takes the place of the default.
    descriptors: the words of `Columns.descriptors`, some of which turn on the counts.
    """
    for name, given, kind in (
        ("network", network, NetworkConfig), ("training", training, TrainingConfig),
    ):  # fmt: skip
        if given is not None and not isinstance(given, kind | Mapping):
            rule = f"must be a {kind.__name__} or a mapping of its fields"
            raise InputError(f"{name} {rule}, got {given!r:.40}")
    given_source = data.name if isinstance(data, GraphSet) else data
    source = "" if isinstance(given_source, CellComplex) else str(given_source)
    usual = defaults(model, source, _design(network, origin))
    if origin is not None:
        usual = (origin, usual[1])
    if isinstance(network, NetworkConfig) and model == "can":
        made = network
    elif isinstance(network, NetworkConfig):
        read = {name: getattr(network, name) for name in find_model(model).reads}
        made = replace(usual[0], **with_heads(model, read))
    else:
        made = changed(usual[0], with_heads(model, dict(network or {})), "network")
    if set(descriptors or ()) & set(COUNTED) and made.design == "ranks" and origin is None:
        made = replace(made, counts=made.counts or NetworkConfig.counts)
    schedule = training
    if not isinstance(schedule, TrainingConfig):
        schedule = changed(usual[1], schedule or {}, "training")
    require_read(model, (made, schedule), usual)
    stated = isinstance(network, NetworkConfig) or "max_polygon" in (network or {})
    if "max_polygon" in find_model(model).reads:
        made = _as_lifted(made, data, stated)
    return made, schedule


def _as_lifted(network: NetworkConfig, data: Data, stated: bool) -> NetworkConfig:
    """Return the configuration with the `max_polygon` of graphs that are already lifted; refuse
    another one if it is stated. Of complexes only the largest polygon is known.
    """
    found, what = network.max_polygon, ""
    if isinstance(data, GraphSet) and data.max_polygon is not None:
        found, what = data.max_polygon, f"are lifted with {data.max_polygon}"
    elif isinstance(data, CellComplex) and data.num_polygons:
        found = max(found, int(data.polygon_sizes.max()))
        what = f"have polygons of {found} nodes"
    if stated and found != network.max_polygon:
        raise InputError(
            f"max_polygon must fit the graphs, which {what}, got {network.max_polygon}; lift them "
            f"again or set max_polygon={found}"
        )
    return replace(network, max_polygon=found)


def _design(
    network: NetworkConfig | Mapping[str, Any] | None, origin: NetworkConfig | None = None
) -> str:
    """Return the design whose defaults complete a configuration."""
    if isinstance(network, NetworkConfig):
        return network.design
    usual = NetworkConfig.design if origin is None else origin.design
    return str((network or {}).get("design", usual))
