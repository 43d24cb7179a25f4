"""The models of a cross-validation by name; no torch, so that help is quick."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from cell_attention.data.dataset import is_molecule_file
from cell_attention.errors import InputError
from cell_attention.nn.config import NetworkConfig, TrainingConfig

Name = Literal[
    "can", "cin", "sin", "gin", "gsn", "gat", "dgcnn", "bag", "wl", "propagation", "graphlet",
    "random-walk", "forest", "majority",
]  # fmt: skip
PRESETS = ("MUTAG", "PTC_MM", "PROTEINS", "NCI1", "NCI109")
"""The sets that the paper has a configuration for."""


@dataclass(frozen=True)
class Model:
    """What a name stands for."""

    title: str
    """With its source, for people."""
    reads: tuple[str, ...]
    """The fields of NetworkConfig that it depends on."""
    network: dict[str, Any] = field(default_factory=dict)
    """Its own defaults of these."""
    epochs: bool = True
    """Whether it is trained by epochs; otherwise it gives one number per fold."""
    packages: tuple[str, ...] = ()
    """What else its numbers depend on."""
    molecules: bool = False
    """Whether it reads molecules rather than graphs; such a model gives probabilities."""


_NODES = ("hidden", "dropout")
_FIVE = {"hidden": (32,) * 5, "dropout": 0.5}
"""Five layers, as in the published configuration of GIN, with the wider of its two widths."""
_PYG, _GRAKEL = ("torch-geometric",), ("grakel",)
_CELLS = {"hidden": (32,) * 3, "dropout": 0.5}

MODELS: dict[str, Model] = {
    "can": Model(
        "cell attention network (Giusti et al. 2022)",
        tuple(entry.name for entry in fields(NetworkConfig)),
    ),
    "cin": Model("cell isomorphism network (Bodnar et al. 2021)", ("max_polygon", *_NODES), _CELLS),
    "sin": Model(
        "simplicial isomorphism network, triangles (Bodnar et al. 2021)",
        _NODES,
        {**_CELLS, "max_polygon": 3},
    ),
    "gin": Model("graph isomorphism network (Xu et al. 2019)", _NODES, _FIVE, packages=_PYG),
    "gsn": Model(
        "GIN with polygon counts at the nodes (after Bouritsas et al. 2022)",
        ("max_polygon", *_NODES),
        _FIVE,
        packages=_PYG,
    ),
    "gat": Model(
        "graph attention network (Veličković et al. 2018)",
        ("heads", *_NODES),
        {"hidden": (8,) * 3, "heads": (4,) * 3, "dropout": 0.5},
        packages=_PYG,
    ),
    "dgcnn": Model(
        "deep graph CNN, sort pooling (Zhang et al. 2018)",
        ("head_hidden", *_NODES),
        {"hidden": (32, 32, 32), "head_hidden": 128, "dropout": 0.5},
        packages=_PYG,
    ),
    "bag": Model(
        "sum of node features through an MLP (Errica et al. 2020)",
        ("head_hidden", "dropout"),
        {"head_hidden": 128},
    ),
    "wl": Model("Weisfeiler–Leman subtree kernel, SVM", (), epochs=False, packages=_GRAKEL),
    "propagation": Model("propagation kernel, SVM", (), epochs=False, packages=_GRAKEL),
    "graphlet": Model("graphlet kernel of three nodes, SVM", (), epochs=False, packages=_GRAKEL),
    "random-walk": Model("random walk kernel, SVM", (), epochs=False, packages=_GRAKEL),
    "forest": Model(
        "random forest on Morgan fingerprints",
        (),
        epochs=False,
        packages=("rdkit",),
        molecules=True,
    ),
    "majority": Model("the largest class alone", (), epochs=False),
}

_TRAINING = TrainingConfig(
    batch_size=64, learning_rate=0.01, weight_decay=0.0, epochs=200, schedule="step"
)
"""Of rivals: Adam from 0.01 and halved on the way, as Xu et al. 2019 and Bodnar et al. 2021 do.

Deviation: one configuration for all data sets, halved six times within 200 epochs. The papers tune
for every set, and Xu et al. halve every 50 epochs; tuning all rivals is a search of its own.
"""


def model_named(name: str) -> Model:
    """One of MODELS, or a sentence."""
    if name not in MODELS:
        raise InputError(f"model must be one of {', '.join(get_args(Name))}, got {name!r}")
    return MODELS[name]


def defaults(name: str, source: str) -> tuple[NetworkConfig, TrainingConfig]:
    """What a model is where nothing else is said: the paper's preset for cell attention on one of
    the paper's sets, ours for files of molecules, a rival's own configuration everywhere.
    """
    model = model_named(name)
    if name != "can":
        # Without pooling, so that no rule of it binds the widths of a model that knows none.
        longest = NetworkConfig.molecules() if is_molecule_file(source) else NetworkConfig()
        plain = NetworkConfig(pooling="none", max_polygon=longest.max_polygon)
        return replace(plain, **with_heads(name, model.network)), _TRAINING
    if source in PRESETS:
        return NetworkConfig.paper(source), TrainingConfig.paper(source)
    if is_molecule_file(source):
        return NetworkConfig.molecules(), TrainingConfig.molecules()
    return NetworkConfig(), TrainingConfig()


def with_heads(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes, with one head per layer where the layers change and the model knows no heads."""
    if "heads" in model_named(name).reads or not isinstance(changes.get("hidden"), list | tuple):
        return changes
    return {"heads": (1,) * len(changes["hidden"]), **changes}


def check_reads(
    name: str,
    changed: NetworkConfig,
    training: TrainingConfig,
    network: NetworkConfig,
    usual: TrainingConfig,
) -> None:
    """Refuse changes of these two configurations that the model would not notice."""
    model = model_named(name)
    for entry in fields(NetworkConfig):
        expected = getattr(network, entry.name)
        if (
            entry.name == "heads" and "hidden" in model.reads
        ):  # one entry per layer, whether they matter or not
            expected = (1,) * len(changed.hidden)
        if entry.name not in model.reads and getattr(changed, entry.name) != expected:
            raise InputError(_unread(name, entry.name, model.reads))
    if not model.epochs:
        for entry in fields(TrainingConfig):
            if getattr(training, entry.name) != getattr(usual, entry.name):
                raise InputError(_unread(name, entry.name, ()))


def _unread(name: str, field_name: str, reads: tuple[str, ...]) -> str:
    known = f"; of the network it reads {', '.join(reads)}" if reads else ""
    return f"model {name!r} does not know {field_name}{known}"
