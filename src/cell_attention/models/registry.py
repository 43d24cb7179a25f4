"""The models by name; does not import torch, so that --help is quick.

Register a model of your own before you use it; then `--model` accepts its name:

    @register_model("mlp", title="node features through an MLP", reads=("hidden", "dropout"))
    class MLP(nn.Module):
        def __init__(self, config, node_features, edge_features, outputs): ...
        def forward(self, complexes): ...          # (num_complexes, outputs)
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, version
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

from cell_attention.arguments import require
from cell_attention.data.file_format import is_molecule_file
from cell_attention.errors import InputError
from cell_attention.models.entries import MODELS as MODELS
from cell_attention.models.entries import ModelEntry
from cell_attention.nn.config import FIELDS_OF, NetworkConfig
from cell_attention.nn.parts import (
    HOW,
    PARTS,
    Slot,
    home_of,
    require_call,
    require_fields,
    require_method,
    title_of,
    unread_fields,
)
from cell_attention.training.config import TrainingConfig

if TYPE_CHECKING:
    from torch import nn

    from cell_attention.models.fitting import Fitter
    from cell_attention.topology.complex import CellComplex

PRESETS = ("MUTAG", "PTC_MM", "PROTEINS", "NCI1", "NCI109")
"""The data sets that the paper has a configuration for."""
Made = TypeVar("Made", bound=Callable[..., Any])
Configs = tuple[NetworkConfig, TrainingConfig]
"""The configuration of a model: of its network and of its training."""

_TRAINING = TrainingConfig.plain(
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
    require("name", isinstance(name, str) and bool(name), "be a text", repr(name))

    def register(made: Made) -> Made:
        label = title_of("model", name, made)
        known = MODELS.get(name)
        if known is not None and home_of(known.implementation) != home_of(made):
            raise InputError(
                f"model {name!r} is already registered, by {home_of(known.implementation)}; choose "
                "another name"
            )
        epochs = not hasattr(made, "fit_fold")
        require_fields(f"{label}: reads", reads)
        require_fields(f"{label}: network", list(network or {}))
        _require_packages(label, packages)
        _require_calls(label, made, epochs)
        MODELS[name] = ModelEntry(
            title or f"{name} ({home_of(made)})", made, tuple(reads) if epochs else (),
            network or {}, epochs=epochs, packages=tuple(packages),
        )  # fmt: skip
        return made

    return register


def _require_packages(label: str, packages: Sequence[str]) -> None:
    """Refuse packages whose version could not be recorded."""
    for package in packages:
        try:
            version(package)
        except PackageNotFoundError:
            raise InputError(
                f"{label}: packages must be installed packages, got {package!r}"
            ) from None


def _require_calls(label: str, made: Any, epochs: bool) -> None:
    """Refuse a class that cannot be built or called as a network or as a `Fitter`."""
    if epochs:
        sizes = ("node_features", "edge_features", "outputs")
        require_call(label, made, ("config",), keywords=sizes, rule="built with")
        if isinstance(made, type):
            require_method(label, made, "forward", names=("self", "complexes"))
        return
    if not isinstance(made, type):
        raise InputError(f"{label} has fit_fold, so it must be a class, which is built with (name)")
    require_call(label, made, ("name",), rule="built with")
    require_method(label, made, "require", names=("self", "settings", "complexes"))
    require_method(label, made, "fit_fold", names=("self", "task"))


def find_model(name: str) -> ModelEntry:
    """Look up a model by name; raise InputError if there is none."""
    if name not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}, got {name!r}; {HOW}")
    return MODELS[name]


def fitter(name: str) -> "Fitter":
    """Make the `Fitter` of a model."""
    entry = find_model(name)
    if entry.epochs:
        from cell_attention.models.network_fitter import NetworkFitter

        return NetworkFitter(name)
    made: Fitter = entry.load()(name)
    if isinstance(entry.implementation, str):
        return made
    from cell_attention.models.model_checks import CheckedFitter

    return CheckedFitter(title_of("model", name, entry.implementation), made)


def defaults(name: str, source: str, design: str = "ranks") -> Configs:
    """Return the default configuration of a model: for cell attention the network on every rank or,
    with design "paper", the paper's preset on its data sets; for a rival its own.
    """
    model = find_model(name)
    molecules = is_molecule_file(source)
    if name != "can":
        # Without pooling, whose rules would restrict the widths of a model that does not pool.
        longest = NetworkConfig.molecules() if molecules else NetworkConfig()
        plain = NetworkConfig.edges(pooling="none", max_polygon=longest.max_polygon)
        own = with_heads(name, {"hidden": plain.hidden, **model.network})
        return replace(plain, **own), replace(_TRAINING, **model.training)
    if design == "paper":
        return _edges_alone(source)
    if molecules:
        return NetworkConfig.molecules(), TrainingConfig.molecules()
    return NetworkConfig(), TrainingConfig()


def _edges_alone(source: str) -> Configs:
    """Return the configuration of the paper's design: its preset where there is one."""
    if source in PRESETS:
        return NetworkConfig.paper(source), TrainingConfig.paper(source)
    if not is_molecule_file(source):
        return NetworkConfig.edges(), TrainingConfig.plain()
    network = NetworkConfig.edges(
        max_polygon=8, lift_heads=64, hidden=(32, 32, 32), heads=(4, 4, 4), dropout=0.2,
        layer_readout="cat", node_readout=64, head_hidden=64,
    )  # fmt: skip
    # At twice the learning rate, ten epochs on the 41,120 molecules of HIV learn nothing.
    return network, TrainingConfig.plain(
        batch_size=32, learning_rate=1e-3, epochs=100, patience=30, schedule="cosine"
    )


def with_heads(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Add one head per layer if `hidden` changes and the model has no heads."""
    if "heads" in find_model(name).reads or not isinstance(changes.get("hidden"), list | tuple):
        return changes
    return {"heads": (1,) * len(changes["hidden"]), **changes}


def require_read(name: str, configs: Configs, usual: Configs) -> None:
    """Refuse changes of the usual configurations that the model would ignore."""
    model, (network, training) = find_model(name), configs
    for entry in fields(NetworkConfig):
        expected = getattr(usual[0], entry.name)
        if (
            entry.name == "heads" and "hidden" in model.reads
        ):  # one entry per layer, even if the model ignores them
            expected = (1,) * len(network.hidden)
        if entry.name not in model.reads and getattr(network, entry.name) != expected:
            raise InputError(_unread(name, entry.name, model.reads))
    if name == "can":
        _require_effect(network, usual[0])
    if not model.epochs:
        for entry in fields(TrainingConfig):
            if getattr(training, entry.name) != getattr(usual[1], entry.name):
                raise InputError(_unread(name, entry.name, ()))


def _require_effect(changed: NetworkConfig, usual: NetworkConfig) -> None:
    """Refuse changes that the design or the chosen layers would ignore, as far as these state what
    they read.
    """
    for name in FIELDS_OF["paper" if changed.design == "ranks" else "ranks"]:
        if getattr(changed, name) != getattr(usual, name):
            raise InputError(
                f"design {changed.design!r} does not use {name}, which must keep its default"
            )
    if changed.design == "ranks" and changed.pooling == "none":
        for name in ("pooling_layer", "ratio", "pool_at", "pool_activation"):
            if getattr(changed, name) != getattr(usual, name):
                raise InputError(f"pooling 'none' does not use {name}; choose another pooling")
    chosen: dict[Slot, str] = {slot: getattr(changed, slot) for slot in PARTS}
    for name, part in unread_fields(chosen).items():
        value = getattr(changed, name)
        if value not in (getattr(usual, name), getattr(NetworkConfig, name)):
            raise InputError(f"{part} does not use {name}, which must keep its default")


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
    if name == "can" and graphs.complex_features is not None:
        sizes["complex_features"] = graphs.complex_features.size(1)
    more = find_model(name).sizes
    return {**sizes, **resolve_name(more)(graphs)} if more else sizes


def build_network(name: str, config: NetworkConfig, sizes: dict[str, int]) -> "nn.Module":
    """Build a network by its name; it maps a CellComplex to (num_complexes, outputs)."""
    entry = find_model(name)
    if not entry.epochs:
        raise InputError(f"model must be a network that is trained in epochs, got {name!r}")
    network: nn.Module = entry.load()(config, **sizes)
    if not isinstance(entry.implementation, str):  # not of this package
        from cell_attention.models.model_checks import check_network

        check_network(title_of("model", name, entry.implementation), network, sizes["outputs"])
    return network
