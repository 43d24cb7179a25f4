"""The models of the package, by name; does not import torch, so that --help is quick."""

from dataclasses import dataclass, field, fields
from pkgutil import resolve_name
from typing import Any, Literal

from cell_attention.nn.config import NetworkConfig


@dataclass(frozen=True)
class ModelEntry:
    """One model of the registry."""

    title: str
    """Its full name and source, for people."""
    implementation: Any
    """A network class (trained in epochs) or a `Fitter` class (one number per fold), or where to
    import it from, as `module:name`. A network is built with (config, node_features, edge_features,
    outputs)."""
    reads: tuple[str, ...] = ()
    """The fields of NetworkConfig that it depends on."""
    network: dict[str, Any] = field(default_factory=dict)
    """Its own defaults for these fields."""
    training: dict[str, Any] = field(default_factory=dict)
    """Its own defaults for fields of TrainingConfig, where those of the rivals do not suit it."""
    epochs: bool = True
    """Whether it is a network that is trained in epochs."""
    packages: tuple[str, ...] = ()
    """Further packages whose version its numbers depend on."""
    molecules: bool = False
    """Whether it reads molecules rather than graphs; such a model predicts probabilities."""
    sizes: str = ""
    """`module:name` of a function that computes further sizes of the network from the graphs."""

    def load(self) -> Any:
        """Import and return the class of the network or of the `Fitter`."""
        made = self.implementation
        return resolve_name(made) if isinstance(made, str) else made

    def usual_protocol(self, molecules: bool) -> Literal["paper", "fair"]:
        """Return the protocol of its cross-validation by default: fair for files of molecules if it
        has epochs to choose from, else the paper's.
        """
        return "fair" if molecules and self.epochs else "paper"


_NODES = ("hidden", "dropout")
_FIVE = {"hidden": (32,) * 5, "dropout": 0.5}
"""Five layers, as in the published configuration of GIN, with the wider of its two widths."""
_PYG, _GRAKEL, _RDKIT = ("torch-geometric",), ("grakel",), ("rdkit",)
_CELLS = {"hidden": (32,) * 3, "dropout": 0.5}

_NOAM = {
    "batch_size": 50, "learning_rate": 1e-3, "epochs": 30, "schedule": "one_cycle",
    "warmup": 2 / 30,
}  # fmt: skip
"""For the directed message passing network: Adam to 10⁻³ in two epochs of thirty, and down again.

Deviation: Yang et al. rise along a line from 10⁻⁴ and fall exponentially back to it.
"""

MODELS: dict[str, ModelEntry] = {
    "can": ModelEntry(
        "cell attention network, after Giusti et al. 2022",
        "cell_attention.nn.network:CellAttentionNetwork",
        tuple(entry.name for entry in fields(NetworkConfig)),
    ),
    "cin": ModelEntry(
        "cell isomorphism network (Bodnar et al. 2021)",
        "cell_attention.models.cin:CellIsomorphismNetwork",
        ("max_polygon", *_NODES),
        _CELLS,
    ),
    "cinpp": ModelEntry(
        "cell isomorphism network with lower messages, CIN++ (Giusti et al. 2023)",
        "cell_attention.models.cin:EnhancedCellIsomorphismNetwork",
        ("max_polygon", *_NODES),
        _CELLS,
    ),
    "sin": ModelEntry(
        "simplicial isomorphism network, triangles (Bodnar et al. 2021)",
        "cell_attention.models.cin:CellIsomorphismNetwork",
        _NODES,
        {**_CELLS, "max_polygon": 3},
    ),
    "gin": ModelEntry(
        "graph isomorphism network (Xu et al. 2019)",
        "cell_attention.models.node_networks:gin",
        _NODES,
        _FIVE,
        packages=_PYG,
    ),
    "gsn": ModelEntry(
        "GIN with polygon counts at the nodes (after Bouritsas et al. 2022)",
        "cell_attention.models.node_networks:gsn",
        ("max_polygon", *_NODES),
        _FIVE,
        packages=_PYG,
    ),
    "gat": ModelEntry(
        "graph attention network (Veličković et al. 2018)",
        "cell_attention.models.node_networks:gat",
        ("heads", *_NODES),
        {"hidden": (8,) * 3, "heads": (4,) * 3, "dropout": 0.5},
        packages=_PYG,
    ),
    "gine": ModelEntry(
        "graph isomorphism network with edge features (Hu et al. 2020)",
        "cell_attention.models.gine:gine",
        _NODES,
        _FIVE,
        packages=_PYG,
    ),
    "gps": ModelEntry(
        "graph transformer with GINE and random walk encodings (Rampášek et al. 2022)",
        "cell_attention.models.gine:gps",
        ("heads", "attention_dropout", *_NODES),
        {"hidden": (16,) * 5, "heads": (4,) * 5, "dropout": 0.0, "attention_dropout": 0.5},
        {"learning_rate": 1e-3, "weight_decay": 1e-5},
        packages=(*_PYG, "scipy"),
    ),
    "dgcnn": ModelEntry(
        "deep graph CNN, sort pooling (Zhang et al. 2018)",
        "cell_attention.models.node_networks:DGCNN",
        ("head_hidden", *_NODES),
        {"hidden": (32, 32, 32), "head_hidden": 128, "dropout": 0.5},
        packages=_PYG,
        sizes="cell_attention.models.node_networks:kept_nodes",
    ),
    "dcnn": ModelEntry(
        "diffusion-convolutional network (Atwood and Towsley 2016)",
        "cell_attention.models.dcnn:DiffusionNetwork",
        ("dropout",),
        {"dropout": 0.0},
        packages=_PYG,
    ),
    "ngn": ModelEntry(
        "natural graph network, local (de Haan et al. 2020)",
        "cell_attention.models.ngn:NaturalNetwork",
        _NODES,
        _CELLS,
        packages=_PYG,
        sizes="cell_attention.models.ngn:require_sparse",
    ),
    "ign": ModelEntry(
        "invariant graph network of order two (Maron et al. 2019)",
        "cell_attention.models.ign:InvariantNetwork",
        ("hidden", "head_hidden"),
        {"hidden": (16, 32, 256), "head_hidden": 512},
        {"learning_rate": 1e-3},
        sizes="cell_attention.models.pairs:require_small",
    ),
    "ppgn": ModelEntry(
        "provably powerful graph network (Maron et al. 2019)",
        "cell_attention.models.ppgn:PowerfulNetwork",
        ("hidden",),
        {"hidden": (32,) * 3},
        {"learning_rate": 1e-3},
        sizes="cell_attention.models.pairs:require_small",
    ),
    "dmpnn": ModelEntry(
        "directed message passing network (Yang et al. 2019)",
        "cell_attention.models.dmpnn:DirectedMessagePassing",
        ("head_hidden", *_NODES),
        {"hidden": (300,) * 3, "head_hidden": 300, "dropout": 0.0},
        training=_NOAM,
    ),
    "bag": ModelEntry(
        "sum of node features through an MLP (Errica et al. 2020)",
        "cell_attention.models.bag:Bag",
        ("head_hidden", "dropout"),
        {"head_hidden": 128},
    ),
    "wl": ModelEntry(
        "Weisfeiler–Leman subtree kernel, SVM",
        "cell_attention.models.graph_kernels:KernelFitter",
        (),
        epochs=False,
        packages=_GRAKEL,
    ),
    "propagation": ModelEntry(
        "propagation kernel, SVM",
        "cell_attention.models.graph_kernels:KernelFitter",
        (),
        epochs=False,
        packages=_GRAKEL,
    ),
    "graphlet": ModelEntry(
        "graphlet kernel of three nodes, SVM",
        "cell_attention.models.graph_kernels:KernelFitter",
        (),
        epochs=False,
        packages=_GRAKEL,
    ),
    "random-walk": ModelEntry(
        "random walk kernel, SVM",
        "cell_attention.models.graph_kernels:KernelFitter",
        (),
        epochs=False,
        packages=_GRAKEL,
    ),
    "forest": ModelEntry(
        "random forest on Morgan fingerprints",
        "cell_attention.models.molecule_tables:TableFitter",
        (),
        epochs=False,
        packages=_RDKIT,
        molecules=True,
    ),
    "forest-rdkit": ModelEntry(
        "random forest on all descriptors of RDKit",
        "cell_attention.models.molecule_tables:TableFitter",
        (),
        epochs=False,
        packages=_RDKIT,
        molecules=True,
    ),
    "boosting": ModelEntry(
        "gradient boosting on all descriptors of RDKit",
        "cell_attention.models.molecule_tables:TableFitter",
        (),
        epochs=False,
        packages=_RDKIT,
        molecules=True,
    ),
    "chemprop": ModelEntry(
        "chemprop, as it trains by default (Heid et al. 2024)",
        "cell_attention.models.chemprop:ChempropFitter",
        (),
        epochs=False,
        packages=("chemprop", *_RDKIT),
        molecules=True,
    ),
    "majority": ModelEntry(
        "the largest class alone", "cell_attention.models.majority:MajorityFitter", (), epochs=False
    ),
}
