"""The models by name; does not import torch, so that --help is quick.

Register a model of your own before you use it; then `--model` accepts its name:

    @register_model("mlp", title="node features through an MLP", reads=("hidden", "dropout"))
    class MLP(nn.Module):
        def __init__(self, config, node_features, edge_features, outputs): ...
        def forward(self, complexes): ...          # (num_complexes, outputs)
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from cell_attention.data.dataset import is_molecule_file
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig
from cell_attention.nn.parts import load_name
from cell_attention.training.config import TrainingConfig

if TYPE_CHECKING:
    from torch import nn

    from cell_attention.models.fitting import Fitter
    from cell_attention.topology.complex import CellComplex

PRESETS = ("MUTAG", "PTC_MM", "PROTEINS", "NCI1", "NCI109")
"""The data sets that the paper has a configuration for."""
Made = TypeVar("Made", bound=Callable[..., Any])


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
        return load_name(made) if isinstance(made, str) else made


_NODES = ("hidden", "dropout")
_FIVE = {"hidden": (32,) * 5, "dropout": 0.5}
"""Five layers, as in the published configuration of GIN, with the wider of its two widths."""
_PYG, _GRAKEL = ("torch-geometric",), ("grakel",)
_CELLS = {"hidden": (32,) * 3, "dropout": 0.5}

MODELS: dict[str, ModelEntry] = {
    "can": ModelEntry(
        "cell attention network (Giusti et al. 2022)",
        "cell_attention.nn.network:CellAttentionNetwork",
        tuple(entry.name for entry in fields(NetworkConfig)),
    ),
    "cin": ModelEntry(
        "cell isomorphism network (Bodnar et al. 2021)",
        "cell_attention.models.cin:CellIsomorphismNetwork",
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
    "dgcnn": ModelEntry(
        "deep graph CNN, sort pooling (Zhang et al. 2018)",
        "cell_attention.models.node_networks:DGCNN",
        ("head_hidden", *_NODES),
        {"hidden": (32, 32, 32), "head_hidden": 128, "dropout": 0.5},
        packages=_PYG,
        sizes="cell_attention.models.node_networks:kept_nodes",
    ),
    "bag": ModelEntry(
        "sum of node features through an MLP (Errica et al. 2020)",
        "cell_attention.models.node_networks:Bag",
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
        "cell_attention.models.forest:ForestFitter",
        (),
        epochs=False,
        packages=("rdkit",),
        molecules=True,
    ),
    "majority": ModelEntry(
        "the largest class alone", "cell_attention.models.majority:MajorityFitter", (), epochs=False
    ),
}

_TRAINING = TrainingConfig(
    batch_size=64, learning_rate=0.01, weight_decay=0.0, epochs=200, schedule="step"
)
"""For rivals: Adam from 0.01, halved at steps, as in Xu et al. 2019 and Bodnar et al. 2021.

Deviation: one configuration for all data sets, halved six times within 200 epochs. The papers tune
it for every set, and Xu et al. halve it every 50 epochs; use `search` to tune a rival.
"""


def register_model(
    name: str,
    *,
    title: str = "",
    reads: tuple[str, ...] = ("max_polygon", "hidden", "heads", "dropout"),
    network: dict[str, Any] | None = None,
    packages: tuple[str, ...] = (),
) -> Callable[[Made], Made]:
    """Register a network or a `Fitter` of your own under a name.

    reads: the fields of NetworkConfig that it depends on; changes of other fields are refused.
    network: its own defaults for these fields.
    packages: installed packages whose version its numbers depend on.
    """

    def register(made: Made) -> Made:
        known = MODELS.get(name)
        if known is not None and _home(known.implementation) != _home(made):
            raise InputError(
                f"model {name!r} is already registered, by {_home(known.implementation)}; choose "
                "another name"
            )
        epochs = not hasattr(made, "fit_fold")
        MODELS[name] = ModelEntry(
            title or f"{name} ({_home(made)})", made, reads if epochs else (), network or {},
            epochs=epochs, packages=packages,
        )  # fmt: skip
        return made

    return register


def _home(made: Any) -> str:
    return made if isinstance(made, str) else f"{made.__module__}:{made.__qualname__}"


def find_model(name: str) -> ModelEntry:
    """Look up a model by name; raise InputError if there is none."""
    if name not in MODELS:
        raise InputError(
            f"model must be one of {', '.join(MODELS)}, got {name!r}; a model of your own must be "
            "registered first (--plugin FILE on the command line)"
        )
    return MODELS[name]


def fitter(name: str) -> "Fitter":
    """Make the `Fitter` of a model."""
    entry = find_model(name)
    if entry.epochs:
        from cell_attention.models.network_fitter import NetworkFitter

        return NetworkFitter(name)
    made: Fitter = entry.load()(name)
    return made


def defaults(name: str, source: str) -> tuple[NetworkConfig, TrainingConfig]:
    """Return the default configuration of a model: for cell attention the paper's preset on the
    paper's data sets and `molecules()` for files of molecules; for a rival its own.
    """
    model = find_model(name)
    if name != "can":
        # Without pooling, whose rules would restrict the widths of a model that does not pool.
        longest = NetworkConfig.molecules() if is_molecule_file(source) else NetworkConfig()
        plain = NetworkConfig(pooling="none", max_polygon=longest.max_polygon)
        own = with_heads(name, {"hidden": plain.hidden, **model.network})
        return replace(plain, **own), _TRAINING
    if source in PRESETS:
        return NetworkConfig.paper(source), TrainingConfig.paper(source)
    if is_molecule_file(source):
        return NetworkConfig.molecules(), TrainingConfig.molecules()
    return NetworkConfig(), TrainingConfig()


def with_heads(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Add one head per layer if `hidden` changes and the model has no heads."""
    if "heads" in find_model(name).reads or not isinstance(changes.get("hidden"), list | tuple):
        return changes
    return {"heads": (1,) * len(changes["hidden"]), **changes}


def require_read(
    name: str,
    changed: NetworkConfig,
    training: TrainingConfig,
    network: NetworkConfig,
    usual: TrainingConfig,
) -> None:
    """Refuse changes of the configurations that the model would ignore."""
    model = find_model(name)
    for entry in fields(NetworkConfig):
        expected = getattr(network, entry.name)
        if (
            entry.name == "heads" and "hidden" in model.reads
        ):  # one entry per layer, even if the model ignores them
            expected = (1,) * len(changed.hidden)
        if entry.name not in model.reads and getattr(changed, entry.name) != expected:
            raise InputError(_unread(name, entry.name, model.reads))
    if not model.epochs:
        for entry in fields(TrainingConfig):
            if getattr(training, entry.name) != getattr(usual, entry.name):
                raise InputError(_unread(name, entry.name, ()))


def _unread(name: str, field_name: str, reads: tuple[str, ...]) -> str:
    known = f"; its network fields are {', '.join(reads)}" if reads else ""
    return f"model {name!r} does not use {field_name}, which must keep its default{known}"


def sizes_of(name: str, graphs: "CellComplex", outputs: int) -> dict[str, int]:
    """Return the sizes that a network is built with, by the names of its arguments."""
    edges = graphs.edge_features
    sizes = {
        "node_features": graphs.node_features.size(1),
        "edge_features": 0 if edges is None else edges.size(1),
        "outputs": outputs,
    }
    more = find_model(name).sizes
    return {**sizes, **load_name(more)(graphs)} if more else sizes


def build_network(name: str, config: NetworkConfig, sizes: dict[str, int]) -> "nn.Module":
    """Build a network by its name; it maps a CellComplex to (num_complexes, outputs)."""
    entry = find_model(name)
    if not entry.epochs:
        raise InputError(f"model must be a network that is trained in epochs, got {name!r}")
    network: nn.Module = entry.load()(config, **sizes)
    return network
