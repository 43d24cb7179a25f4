"""The networks of the paper's hyper-parameter table; does not import torch."""

from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig


def preset(name: str) -> NetworkConfig:
    """Return one column of the paper's table.

    Deviation: its "PTC" is called PTC_MM, because only that set has its 336 graphs.
    """
    presets = {
        "MUTAG": NetworkConfig.edges(
            lift="paper", lift_heads=1, lift_activation="relu", hidden=(32, 32), heads=(1, 1),
            attention_activation="leaky_relu", activation="elu", head_hidden=8,
            negative_slope=0.1, ratio=1.0, pooling="hierarchical", dropout=0.1,
        ),
        "PTC_MM": NetworkConfig.edges(
            lift="paper", lift_heads=32, lift_activation="elu", hidden=(32, 8), heads=(2, 1),
            attention_activation="leaky_relu", activation="elu", head_hidden=4,
            negative_slope=0.1, ratio=0.75, pooling="global", pool_at="last", dropout=0.6,
        ),
        "PROTEINS": NetworkConfig.edges(
            lift="paper", lift_heads=256, lift_activation="elu", lift_dropout=0.05,
            hidden=(128, 128), heads=(1, 1), attention_activation="tanh", activation="tanh",
            head_hidden=128, negative_slope=0.3, ratio=0.6, pooling="hierarchical", dropout=0.3,
        ),
        "NCI1": NetworkConfig.edges(
            lift="paper", lift_heads=107, lift_activation="elu", lift_dropout=0.2,
            hidden=(32, 16, 64, 8), heads=(3, 5, 4, 5), attention_activation="tanh",
            activation="elu", head_hidden=256, negative_slope=0.08, ratio=0.5,
            pooling="global", pool_at="last", dropout=0.15,
        ),
        "NCI109": NetworkConfig.edges(
            lift="paper", lift_heads=116, lift_activation="sigmoid", lift_dropout=0.2,
            hidden=(64, 8, 8, 32, 8), heads=(5, 7, 4, 7, 7), attention_activation="tanh",
            activation="gelu", head_hidden=32, negative_slope=0.07, ratio=0.75,
            pooling="global", pool_at="last", dropout=0.05,
        ),
    }  # fmt: skip
    if name not in presets:
        raise InputError(f"preset must be one of {', '.join(presets)}, got {name!r}")
    return presets[name]
