"""Cell Attention Networks: attention on the edges and polygons of graphs and molecules.

from cell_attention import lift, load_dataset

complexes = load_dataset("MUTAG")      # a CellComplex of 188 molecules
batch = complexes[[3, 14, 15]]         # a CellComplex of three
lift("c1ccccc1").betti()               # a ring with its polygon: (1, 0, 0)
"""

from typing import TYPE_CHECKING, Any

from cell_attention._lazy import load_lazily
from cell_attention._version import __version__ as __version__

if TYPE_CHECKING:
    from cell_attention.api.ablate import ablate as ablate
    from cell_attention.api.crossvalidate import crossvalidate as crossvalidate
    from cell_attention.api.explain import explain as explain
    from cell_attention.api.fit_cells import fit_cells as fit_cells
    from cell_attention.api.predict import fingerprint as fingerprint
    from cell_attention.api.predict import predict as predict
    from cell_attention.api.pretrain import pretrain as pretrain
    from cell_attention.api.search import search as search
    from cell_attention.api.train import train as train
    from cell_attention.data.file_format import Columns as Columns
    from cell_attention.data.file_format import FileFormat as FileFormat
    from cell_attention.data.lifting import lift as lift
    from cell_attention.data.sources import load_dataset as load_dataset
    from cell_attention.data.splits.options import SplitOptions as SplitOptions
    from cell_attention.errors import CellAttentionError as CellAttentionError
    from cell_attention.errors import CellAttentionWarning as CellAttentionWarning
    from cell_attention.estimator import CANClassifier as CANClassifier
    from cell_attention.estimator import CANRegressor as CANRegressor
    from cell_attention.explanation.views import draw as draw
    from cell_attention.inference.model_folder import Model as Model
    from cell_attention.inference.model_folder import load_model as load_model
    from cell_attention.inference.shard_options import ShardOptions as ShardOptions
    from cell_attention.models.registry import register_model as register_model
    from cell_attention.nn.cell_predictor import CellPredictor as CellPredictor
    from cell_attention.nn.config import NetworkConfig as NetworkConfig
    from cell_attention.nn.network import CellAttentionNetwork as CellAttentionNetwork
    from cell_attention.nn.parts import register_attention as register_attention
    from cell_attention.nn.parts import register_pooling as register_pooling
    from cell_attention.nn.parts import register_readout as register_readout
    from cell_attention.plugins import load_plugins as load_plugins
    from cell_attention.topology.complex import CellComplex as CellComplex
    from cell_attention.topology.interop import from_incidence as from_incidence
    from cell_attention.topology.interop import from_networkx as from_networkx
    from cell_attention.topology.interop import from_toponetx as from_toponetx
    from cell_attention.topology.interop import to_networkx as to_networkx
    from cell_attention.topology.interop import to_toponetx as to_toponetx
    from cell_attention.topology.limits import Limits as Limits
    from cell_attention.topology.pyg import CellData as CellData
    from cell_attention.topology.pyg import CellularLifting as CellularLifting
    from cell_attention.topology.pyg import to_pyg as to_pyg
    from cell_attention.training.config import TrainingConfig as TrainingConfig

_HOMES = {
    "train": ".api.train",
    "pretrain": ".api.pretrain",
    "predict": ".api.predict",
    "fingerprint": ".api.predict",
    "crossvalidate": ".api.crossvalidate",
    "ablate": ".api.ablate",
    "search": ".api.search",
    "explain": ".api.explain",
    "fit_cells": ".api.fit_cells",
    "draw": ".explanation.views",
    "load_plugins": ".plugins",
    "register_model": ".models.registry",
    "register_attention": ".nn.parts",
    "register_pooling": ".nn.parts",
    "register_readout": ".nn.parts",
    "Columns": ".data.file_format",
    "FileFormat": ".data.file_format",
    "ShardOptions": ".inference.shard_options",
    "SplitOptions": ".data.splits.options",
    "CANClassifier": ".estimator",
    "CANRegressor": ".estimator",
    "CellAttentionError": ".errors",
    "CellAttentionNetwork": ".nn.network",
    "CellAttentionWarning": ".errors",
    "CellComplex": ".topology.complex",
    "CellPredictor": ".nn.cell_predictor",
    "CellData": ".topology.pyg",
    "CellularLifting": ".topology.pyg",
    "Limits": ".topology.limits",
    "Model": ".inference.model_folder",
    "NetworkConfig": ".nn.config",
    "TrainingConfig": ".training.config",
    "from_incidence": ".topology.interop",
    "from_networkx": ".topology.interop",
    "from_toponetx": ".topology.interop",
    "lift": ".data.lifting",
    "load_dataset": ".data.sources",
    "load_model": ".inference.model_folder",
    "to_networkx": ".topology.interop",
    "to_pyg": ".topology.pyg",
    "to_toponetx": ".topology.interop",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return load_lazily(__name__, _HOMES, name)
