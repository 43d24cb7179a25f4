"""The model whose weights a training starts from."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from torch import nn

from cell_attention.data.dataset import GraphSet
from cell_attention.data.file_format import USUAL_DESCRIPTORS
from cell_attention.errors import DataError, InputError
from cell_attention.inference.model_folder import Model, load_model
from cell_attention.inference.model_saving import weights_digest
from cell_attention.inference.prediction import require_same_features
from cell_attention.models.registry import find_model, sizes_of
from cell_attention.models.settings import Settings
from cell_attention.models.transfer import parts, start_at
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.start import Start
from cell_attention.training.tasks import Task


@dataclass(frozen=True)
class Origin:
    """A trained model, and the parts of its network that stay as they are."""

    model: Model
    digest: str
    """SHA-256 of its weights, as in its MODEL_DIR."""
    freeze: tuple[str, ...] = ()

    @staticmethod
    def of(model: Model | str | Path, freeze: tuple[str, ...] = ()) -> "Origin":
        """Load the model, if it is given as a MODEL_DIR."""
        known = model if isinstance(model, Model) else load_model(model)
        return Origin(known, weights_digest(known), freeze)

    @property
    def descriptors(self) -> tuple[str, ...]:
        """The words for the descriptors of molecules that the model reads."""
        from cell_attention.data.molecules.descriptors import words_of  # RDKit is slow to import

        if self.model.task == "none":  # it has learned nothing from descriptors
            return USUAL_DESCRIPTORS
        return words_of(self.model.featuriser)

    def require_fitting(self, name: str, config: NetworkConfig, graph_set: GraphSet) -> None:
        """Refuse a network or features other than those of the model."""
        there, sizes = self.model, sizes_of(name, graph_set.graphs, 1)
        if name != there.name:
            raise InputError(f"model must be {there.name!r}, as in from_model, got {name!r}")
        for entry in fields(NetworkConfig):
            before, now = getattr(there.config, entry.name), getattr(config, entry.name)
            free = entry.name not in find_model(name).reads or entry.name.endswith("dropout")
            if before != now and not free:
                raise InputError(f"{entry.name} must be {before}, as in from_model, got {now}")
        unread = {"descriptors"} if there.task == "none" else set()
        if graph_set.featuriser:  # complexes do not have one
            features = {k: v for k, v in graph_set.featuriser.items() if k not in unread}
            require_same_features(there, features, graph_set.name)
        for key, size in there.sizes.items():
            if key != "outputs" and sizes.get(key, 0) != size:
                raise InputError(
                    f"{graph_set.name} has {key} {sizes.get(key, 0)}, from_model needs {size}"
                )

    def start(self, member: int, settings: Settings, *, graph_set: GraphSet, task: Task) -> Start:
        """Return the start of one network; those of an ensemble start from those of the model."""
        there = self.model
        sizes = sizes_of(settings.model, graph_set.graphs, task.outputs)
        meaning = task.kind, task.outputs, graph_set.class_names, graph_set.target_names
        learned = there.provenance.get("learned")
        if learned is not None and not (
            isinstance(learned, list) and all(isinstance(name, str) for name in learned)
        ):
            raise DataError(
                f"from_model: provenance.learned must be a list of names, got {learned}"
            )
        same = meaning == (there.task, there.outputs, there.labels, there.target_names)
        return start_at(
            there.members[member % len(there.members)], settings.model, settings.network,
            sizes=sizes, task=task if same else None, learned=learned,
            freeze=self.freeze,
        )  # fmt: skip

    def leak(self, settings: Settings) -> str:
        """Return the warning about a model that has seen graphs which are held out here, or ""."""
        known = self.model.provenance
        if known.get("data") != settings.data or known.get("folds") == settings.folds:
            return ""
        return (
            "from_model was trained on these graphs with another split: it may have learned from "
            "graphs that are held out here"
        )


def transfer(start: Start, network: nn.Module) -> dict[str, dict[str, Any]]:
    """Return which weights of a network are copied, new and frozen: their number and parts."""
    sizes = {name: value.numel() for name, value in network.named_parameters()}
    copied = sizes.keys() & start.weights.keys()
    groups = {"copied": copied, "new": sizes.keys() - copied, "frozen": sizes.keys() & start.fixed}
    return {
        group: {"weights": sum(sizes[name] for name in names), "parts": parts(sizes, names)}
        for group, names in groups.items()
    }


def transfer_line(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Describe the same in one line."""
    texts = [
        f"{each['weights']:,} weights {group}"
        + (f" ({', '.join(each['parts'])})" if each["parts"] else "")
        for group, each in found.items()
    ]
    return f"from_model: {'; '.join(texts)}"
