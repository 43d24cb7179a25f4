"""A network by its name, made for the features of given graphs."""

from torch import nn

from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.complex import CellComplex


def network_of(name: str, config: NetworkConfig, graphs: CellComplex, outputs: int) -> nn.Module:
    """A model that is trained by epochs: called with a CellComplex, it returns (num_complexes,
    outputs).
    """
    nodes = graphs.node_features.size(1)
    edges = 0 if graphs.edge_features is None else graphs.edge_features.size(1)
    if name == "can":
        from cell_attention.nn.network import CellAttentionNetwork

        return CellAttentionNetwork(config, nodes, edges, outputs)
    from cell_attention.models import cin as cells
    from cell_attention.models import node_networks as rivals

    if name in ("cin", "sin"):
        return cells.CellIsomorphismNetwork(config, nodes, edges, outputs)
    if name == "gin":
        return rivals.gin(config, nodes, outputs)
    if name == "gsn":
        return rivals.gin(config, nodes, outputs, counted=config.max_polygon)
    if name == "gat":
        return rivals.gat(config, nodes, outputs)
    if name == "dgcnn":
        return rivals.DGCNN(config, nodes, outputs, rivals.kept_nodes(graphs))
    if name == "bag":
        return rivals.Bag(config, nodes, outputs)
    raise InputError(f"model {name!r} is not trained by epochs")
