"""Cell attention networks as scikit-learn estimators: `CANClassifier` and `CANRegressor`.

X is a sequence of SMILES, InChI or RDKit molecules, of PyG `Data` or networkx graphs, or one
CellComplex. The estimators work wherever scikit-learn accepts X as a list.
"""

from dataclasses import fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from cell_attention.api.experiment import Reading
from cell_attention.api.train import train
from cell_attention.data.file_format import Columns, Kind
from cell_attention.data.splits.options import SplitOptions
from cell_attention.errors import InputError
from cell_attention.estimator_input import (
    class_column,
    complexes_for,
    read_graphs,
    required_targets,
)
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import (
    fingerprints,
    predict_complexes,
)
from cell_attention.nn.config import NetworkConfig
from cell_attention.training.config import TrainingConfig
from cell_attention.training.tasks import choose_metric


class _CellAttentionEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of both estimators.

    network, training: the base configurations; by default NetworkConfig.molecules() and
        TrainingConfig.molecules().
    max_polygon … schedule: single fields of these, for a grid search; None keeps the base value.
        `lift`, `lift_heads` and `attention` belong to the paper's design (NetworkConfig.edges()),
        `weights` to the network on every rank.
    validation: share of the training graphs used to choose the epoch and the threshold.
    metric: chooses the epoch; None is ROC-AUC for two classes, accuracy for more, RMSE for values.
    ensemble: number of networks, which differ in their seed; predictions are their mean.
    class_weights: whether rare classes count as much as common ones in the loss.
    descriptors: what the network also reads of molecules: "rdkit", "rdkit-all" or "none"; None is
        "rdkit" for the network on every rank.
    """

    def __init__(
        self,
        network: NetworkConfig | None = None,
        training: TrainingConfig | None = None,
        *,
        max_polygon: int | None = None,
        lift: str | None = None,
        lift_heads: int | None = None,
        hidden: tuple[int, ...] | None = None,
        heads: tuple[int, ...] | None = None,
        attention: str | None = None,
        weights: str | None = None,
        pooling: str | None = None,
        ratio: float | None = None,
        readout: str | None = None,
        dropout: float | None = None,
        head_hidden: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        schedule: str | None = None,
        validation: float = 0.1,
        metric: str | None = None,
        ensemble: int = 1,
        class_weights: bool = False,
        descriptors: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.network, self.training = network, training
        self.max_polygon, self.lift, self.lift_heads = max_polygon, lift, lift_heads
        self.hidden, self.heads, self.attention = hidden, heads, attention
        self.weights = weights
        self.pooling, self.ratio, self.readout = pooling, ratio, readout
        self.dropout, self.head_hidden = dropout, head_hidden
        self.batch_size, self.learning_rate = batch_size, learning_rate
        self.weight_decay, self.epochs, self.patience = weight_decay, epochs, patience
        self.schedule, self.validation, self.metric = schedule, validation, metric
        self.ensemble, self.class_weights = ensemble, class_weights
        self.descriptors = descriptors
        self.random_state = random_state

    def transform(self, X: Any) -> Any:
        """Return (graphs, ·) the readout vector h_C of every graph."""
        model = self._fitted()
        return fingerprints(model, complexes_for(X, model)).numpy()

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors`, which `cell-attention predict` can load."""
        self._fitted().save_pretrained(folder)

    def _configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        network = _or_usual("network", self.network, NetworkConfig)
        training = _or_usual("training", self.training, TrainingConfig)
        training = replace(training, seed=_seed(self.random_state))
        return _changed(network, self), _changed(training, self)

    def _fit(self, X: Any, targets: torch.Tensor, *, names: tuple[str, ...], kind: Kind) -> None:
        network, training = self._configs()
        count: Any = self.ensemble
        if not isinstance(count, Integral) or count < 1:
            raise InputError(f"ensemble must be a whole number of at least 1, got {count!r}")
        found = read_graphs(X, network.max_polygon, self._descriptors(network))
        if len(found.graphs) != len(targets):
            raise InputError(
                f"X and y are inconsistent: {len(found.graphs)} graphs, but {len(targets)} targets"
            )
        graphs = replace(found.graphs, targets=targets, target_bounds=None)
        graph_set = replace(found, graphs=graphs, class_names=names, kind=kind)
        split = SplitOptions(seed=training.seed)
        metric, _ = choose_metric(
            self.metric,
            graph_set,
            split.holdout(graph_set, self.validation, 0.0).folds,
            ranked=True,
        )
        self.model_ = train(
            graph_set, network=network, training=training, validation=self.validation, test=0.0,
            split=split, metric=metric, class_weights=self.class_weights, ensemble=int(count),
        )  # fmt: skip

    def _descriptors(self, network: NetworkConfig) -> tuple[str, ...]:
        """Return the names of the descriptors that molecules get."""
        from cell_attention.data.molecules.descriptors import chosen_descriptors

        columns = Columns(descriptors=self.descriptors)
        usual = Reading(columns=columns).for_network("x.smi", "can", network).columns.descriptors
        names, unknown = chosen_descriptors(usual or ())
        if unknown:
            raise InputError(f"descriptors must be rdkit, rdkit-all or none, got {unknown[0]!r}")
        return names

    def _fitted(self) -> Model:
        check_is_fitted(self, "model_")
        model: Model = self.model_
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.no_validation = True
        tags.non_deterministic = False
        return tags


class CANClassifier(ClassifierMixin, _CellAttentionEstimator):  # type: ignore[misc]
    """A cell attention network that classifies graphs.

    classes_: the classes, sorted; model_: the trained model with its threshold.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Train on graphs and their classes."""
        labels = class_column(y)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y must hold at least two classes, got {len(self.classes_)} class")
        targets = torch.from_numpy(codes.astype(np.int64))
        self._fit(X, targets, names=tuple(map(str, self.classes_)), kind="classes")
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return (graphs, classes) probabilities, in the order of `classes_`."""
        model = self._fitted()
        return predict_complexes(model, complexes_for(X, model)).values.numpy()

    def predict(self, X: Any) -> Any:
        """Return the class of every graph; of two classes, the validation threshold decides."""
        model = self._fitted()
        return self.classes_[
            predict_complexes(model, complexes_for(X, model)).decided(model).numpy()
        ]


class CANRegressor(RegressorMixin, _CellAttentionEstimator):  # type: ignore[misc]
    """A cell attention network that predicts numbers for graphs.

    model_: the trained model, which predicts in the units of y.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Train on graphs and their values: one per graph, or a row of them (NaN if unknown)."""
        with np.errstate(over="ignore"):  # overflow becomes infinite and is refused below
            values = np.asarray(required_targets(y), dtype=np.float64).astype(np.float32)
        if values.ndim not in (1, 2) or np.isinf(values).any() or np.isnan(values).all():
            rule = "finite in float32 or NaN, and not all NaN"
            raise InputError(f"y must be (graphs,) or (graphs, columns), {rule}")
        self._single = values.ndim == 1
        targets = torch.from_numpy(values).reshape(len(values), -1)
        self._fit(X, targets, names=(), kind="values")
        return self

    def predict(self, X: Any) -> Any:
        """Return (graphs,) or (graphs, columns) values, in the shape of y."""
        model = self._fitted()
        found = predict_complexes(model, complexes_for(X, model)).values.numpy()
        return found[:, 0] if self._single else found


def _or_usual(name: str, config: Any, kind: Any) -> Any:
    """Return the given configuration, or the usual one for molecules; refuse anything else."""
    if config is not None and not isinstance(config, kind):
        raise InputError(f"{name} must be a {kind.__name__}, got {config!r:.60}")
    return config or kind.molecules()


def _changed(config: Any, estimator: Any) -> Any:
    """Replace the fields of a configuration that the estimator sets."""
    named = estimator.get_params(deep=False)
    given = {entry.name: named[entry.name] for entry in fields(config) if entry.name in named}
    return replace(
        config,
        **{name: _plain(value) for name, value in given.items() if value is not None},
    )


def _plain(value: Any) -> Any:
    """Convert lists to tuples and numpy numbers to Python's, as a configuration requires."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _seed(random_state: Any) -> int:
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if not isinstance(random_state, Integral) or random_state < 0:
        raise InputError(f"random_state must be a whole number of at least 0, got {random_state!r}")
    return int(random_state)
