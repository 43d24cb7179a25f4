"""Cell attention networks as scikit-learn estimators: `CANClassifier` and `CANRegressor`.

X is a sequence of SMILES, InChI or RDKit molecules, of PyG `Data` or networkx graphs, or one
CellComplex. The estimators work wherever scikit-learn accepts X as a list.
"""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from cell_attention.api.reading import Reading
from cell_attention.api.train import train
from cell_attention.data.file_format import Columns, Kind
from cell_attention.data.splits.folds import Fold, Splits
from cell_attention.data.splits.options import SplitOptions
from cell_attention.errors import InputError
from cell_attention.estimator_config import changed_by, or_usual, seed_of
from cell_attention.estimator_input import (
    OnBadGraph,
    class_column,
    complexes_for,
    evaluation_pair,
    joined,
    read_graphs,
    value_columns,
    weight_column,
)
from cell_attention.inference.model_folder import Model
from cell_attention.inference.prediction import (
    fingerprints,
    predict_complexes,
)
from cell_attention.nn.config import NetworkConfig
from cell_attention.topology.complex import CellComplex
from cell_attention.training.config import TrainingConfig
from cell_attention.training.metric_choice import choose_metric


class _CellAttentionEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of both estimators.

    network, training: the base configurations; by default NetworkConfig.molecules() and
        TrainingConfig.molecules().
    max_polygon … schedule: single fields of these, for a grid search; None keeps the base value.
        `lift`, `lift_heads` and `attention` belong to the paper's design (NetworkConfig.edges()),
        `weights` to the network on every rank.
    validation: share of the training graphs used to choose the threshold, and with
        `patience` the epoch.
    metric: the score, which with `patience` chooses the epoch; None is ROC-AUC for two classes,
        accuracy for more, RMSE for values.
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

    def transform(self, X: Any, *, on_error: OnBadGraph = "raise") -> Any:
        """Return (graphs, ·) the readout vector h_C of every graph.

        on_error: whether to "raise" an error for graphs that cannot be read, or to return "nan".
        """
        return self._rows(X, on_error, lambda model, graphs: fingerprints(model, graphs).numpy())

    def _rows(
        self, X: Any, on_error: OnBadGraph, compute: Callable[[Model, CellComplex], Any]
    ) -> Any:
        """Compute something for every graph that can be read; NaN for the others."""
        model = self._fitted()
        read = complexes_for(X, model, on_error)
        return read.spread(compute(model, read.graphs))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors`, which `cell-attention predict` can load."""
        self._fitted().save_pretrained(folder)

    def _configs(self) -> tuple[NetworkConfig, TrainingConfig]:
        network = or_usual("network", self.network, NetworkConfig)
        training = or_usual("training", self.training, TrainingConfig)
        training = replace(training, seed=seed_of(self.random_state))
        return changed_by(network, self), changed_by(training, self)

    def _fit(
        self,
        X: Any,
        targets: torch.Tensor,
        *,
        names: tuple[str, ...],
        kind: Kind,
        sample_weight: Any,
        watched: tuple[Any, torch.Tensor] | None,
    ) -> None:
        """Train on graphs; watched: graphs and targets of the evaluation set, if there is one."""
        network, training = self._configs()
        count: Any = self.ensemble
        if not isinstance(count, Integral) or count < 1:
            raise InputError(f"ensemble must be a whole number of at least 1, got {count!r}")
        things, others = (X, 0) if watched is None else joined(X, watched[0])
        found = read_graphs(things, network.max_polygon, self._descriptors(network))
        own, weights = len(targets), None
        if len(found.graphs) - others != own:
            raise InputError(
                f"X and y are inconsistent: {len(found.graphs) - others} graphs, but {own} targets"
            )
        if sample_weight is not None:
            weights = weight_column(sample_weight, own)
        if watched is not None:
            if len(watched[1]) != others:
                theirs = f"{others} graphs, but {len(watched[1])} targets"
                raise InputError(f"eval_set is inconsistent: {theirs}")
            targets = torch.cat([targets, watched[1]])
            if weights is not None:  # theirs have no effect
                weights = torch.cat([weights, weights.new_ones(others)])
        graphs = replace(found.graphs, targets=targets, target_bounds=None)
        graph_set = replace(found, graphs=graphs, class_names=names, kind=kind)
        if watched is None:
            options = SplitOptions(seed=training.seed)
            split = options.holdout(graph_set, self.validation, 0.0)
        else:
            fold = Fold(tuple(range(own)), tuple(range(own, len(targets))))
            split = Splits.of((fold,), "eval_set")
        metric, _ = choose_metric(self.metric, graph_set, split.folds, ranked=True)
        self.model_ = train(
            graph_set, network=network, training=training, split=split, metric=metric,
            class_weights=self.class_weights, sample_weights=weights, ensemble=int(count),
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None) -> Self:
        """Train on graphs and their classes.

        sample_weight: (graphs,) what the loss of every graph is multiplied by.
        eval_set: (X, y) of other graphs, which choose the epoch, the threshold and the temperature
            in the place of a share of X.
        """
        labels = class_column(y)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y must hold at least two classes, got {len(self.classes_)} class")
        watched = None
        if eval_set is not None:
            graphs, theirs = evaluation_pair(eval_set)
            column = class_column(theirs)
            foreign = column[~np.isin(column, self.classes_)]
            if foreign.size:
                raise InputError(
                    f"eval_set has the class {str(foreign[0])!r}, which y does not have"
                )
            watched = graphs, torch.from_numpy(np.searchsorted(self.classes_, column))
        targets = torch.from_numpy(codes.astype(np.int64))
        names = tuple(map(str, self.classes_))
        self._fit(
            X, targets, names=names, kind="classes", sample_weight=sample_weight, watched=watched
        )
        return self

    def predict_proba(self, X: Any, *, on_error: OnBadGraph = "raise") -> Any:
        """Return (graphs, classes) calibrated probabilities, in the order of `classes_`.

        on_error: as for `transform`.
        """
        return self._rows(
            X, on_error, lambda m, graphs: predict_complexes(m, graphs).values.numpy()
        )

    def predict(self, X: Any, *, on_error: OnBadGraph = "raise") -> Any:
        """Return the class of every graph; of two classes, the validation threshold decides.

        on_error: as for `transform`; with "nan" classes that are no numbers come back as objects.
        """
        codes = self._rows(
            X, on_error, lambda m, graphs: predict_complexes(m, graphs).decided(m).numpy()
        )
        known = ~np.isnan(codes)
        if known.all():
            return self.classes_[codes.astype(np.int64)]
        numbers = self.classes_.dtype.kind in "iuf"
        found = np.full(len(codes), np.nan, dtype=np.float64 if numbers else object)
        found[known] = self.classes_[codes[known].astype(np.int64)]
        return found


class CANRegressor(RegressorMixin, _CellAttentionEstimator):  # type: ignore[misc]
    """A cell attention network that predicts numbers for graphs.

    model_: the trained model, which predicts in the units of y.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None) -> Self:
        """Train on graphs and their values: one per graph, or a row of them (NaN if unknown).

        sample_weight, eval_set: as for `CANClassifier.fit`.
        """
        targets = value_columns("y", y)
        self._single = np.ndim(y) == 1
        watched = None
        if eval_set is not None:
            graphs, theirs = evaluation_pair(eval_set)
            watched = graphs, value_columns("y of eval_set", theirs)
            if watched[1].size(1) != targets.size(1):
                raise InputError(
                    f"y of eval_set must have {targets.size(1)} columns, got {watched[1].size(1)}"
                )
        self._fit(X, targets, names=(), kind="values", sample_weight=sample_weight, watched=watched)
        return self

    def predict(self, X: Any, *, on_error: OnBadGraph = "raise") -> Any:
        """Return (graphs,) or (graphs, columns) values, in the shape of y.

        on_error: as for `transform`.
        """
        found = self._rows(X, on_error, _values)
        return found[:, 0] if self._single else found


def _values(model: Model, graphs: CellComplex) -> Any:
    return predict_complexes(model, graphs).values.numpy()
