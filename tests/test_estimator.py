"""The estimators keep scikit-learn's contract, with its own checks where these need no numbers."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from rdkit import Chem
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from torch_geometric.data import Data

from cell_attention import (
    CANClassifier,
    CANRegressor,
    NetworkConfig,
    lift,
    load_dataset,
    load_model,
)
from cell_attention.data.molecules.features import featurise, featuriser_of
from cell_attention.errors import CellAttentionError
from cell_attention.inference.prediction import predict_complexes
from cell_attention.nn.rank_network import RankNetwork
from cell_attention.topology.pyg import to_pyg
from cell_attention.training.tasks import task_of

SMALL: dict[str, Any] = {"hidden": (4, 4), "heads": (2, 2), "epochs": 3, "validation": 0.2}
SMILES = ["C" * n + "O" if n % 2 else "C1CCCCC1" + "C" * n + "N" for n in range(1, 41)]
CLASSES = ["even" if n % 2 else "odd" for n in range(40)]
VALUES = [100.0 + len(text) for text in SMILES]

# The checks of scikit-learn that give an estimator no array of numbers, or refuse to be given one
# before it is looked at.
CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_get_params_invariance",
    "check_set_params",
    "check_parameters_default_constructible",
    "check_mixin_order",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimators_unfitted",
    "check_requires_y_none",
]


@pytest.mark.parametrize("kind", [CANClassifier, CANRegressor])
@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learns_own_checks_pass(kind: Any, name: str) -> None:
    check = getattr(estimator_checks, name)
    assert len(inspect.signature(check).parameters) == 2
    check(kind.__name__, kind(**SMALL))


def forms() -> dict[str, list[Any]]:
    """The same kind of graphs in every form that is taken."""
    molecules = [Chem.MolFromSmiles(text) for text in SMILES]
    rings = [nx.cycle_graph(3 + n % 5) for n in range(40)]
    for graph in rings:
        nx.set_node_attributes(graph, {v: [1.0, float(graph.degree(v))] for v in graph}, "x")
    mutag = load_dataset("MUTAG")
    data: list[Data] = to_pyg(mutag[torch.arange(40)])
    return {"smiles": SMILES, "rdkit": molecules, "networkx": rings, "pyg": data}


@pytest.mark.parametrize("form", ["smiles", "rdkit", "networkx", "pyg"])
def test_every_form_of_graphs_is_taken(form: str) -> None:
    graphs = forms()[form]
    found = CANClassifier(**SMALL).fit(graphs, CLASSES)
    assert found.classes_.tolist() == ["even", "odd"]
    shares = found.predict_proba(graphs)
    assert shares.shape == (40, 2)
    np.testing.assert_allclose(shares.sum(1), 1.0, atol=1e-6)
    assert set(found.predict(graphs)) <= {"even", "odd"}
    limit = found.model_.thresholds[0]
    np.testing.assert_array_equal(found.predict(graphs) == "odd", shares[:, 1] >= limit)
    assert found.score(graphs, CLASSES) == np.mean(found.predict(graphs) == np.array(CLASSES))
    assert found.transform(graphs).shape == (40, found.model_.network.config.readout_width)


def test_a_regressor_predicts_in_the_units_of_its_targets() -> None:
    found = CANRegressor(**{**SMALL, "epochs": 30}, ensemble=2).fit(SMILES, VALUES)
    guessed = found.predict(SMILES)
    assert guessed.shape == (40,)
    assert abs(guessed.mean() - np.mean(VALUES)) < np.std(VALUES) < 20
    two = CANRegressor(**SMALL).fit(SMILES, np.stack([VALUES, VALUES], 1))
    assert two.predict(SMILES[:3]).shape == (3, 2)


def test_the_same_seed_gives_the_same_estimator_and_another_one_does_not() -> None:
    one = CANRegressor(**SMALL).fit(SMILES, VALUES).predict(SMILES)
    same = clone(CANRegressor(**SMALL)).fit(SMILES, VALUES).predict(SMILES)
    np.testing.assert_array_equal(one, same)
    other = CANRegressor(**SMALL, random_state=1).fit(SMILES, VALUES).predict(SMILES)
    assert not np.array_equal(one, other)


def test_pipelines_and_cross_validation_work_on_lists_and_columns() -> None:
    strip = FunctionTransformer(lambda texts: [str(text).strip() for text in texts])
    pipeline = make_pipeline(strip, CANClassifier(**SMALL))
    array = np.array([f" {text} " for text in SMILES], dtype=object)
    assert len(cross_val_score(pipeline, array, CLASSES, cv=2)) == 2


def test_a_grid_search_over_mutag_runs_and_refits() -> None:
    mutag = load_dataset("MUTAG")
    assert mutag.targets is not None
    grid = {"dropout": [0.0, 0.5], "hidden": [(4, 4), (8, 8)]}
    search = GridSearchCV(CANClassifier(**SMALL), grid, cv=2, error_score="raise")
    chosen = list(range(0, 188, 2))
    search.fit(to_pyg(mutag[chosen]), mutag.targets[chosen].numpy())
    assert set(search.best_params_) == {"dropout", "hidden"}
    assert search.best_estimator_.model_.network.config.hidden == search.best_params_["hidden"]
    assert len(search.cv_results_["params"]) == 4


def test_saved_estimators_predict_the_same_again(tmp_path: Path) -> None:
    made = CANClassifier(**SMALL, ensemble=2).fit(SMILES, CLASSES)
    made.save_pretrained(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "config.json", "model.safetensors",
    ]  # fmt: skip
    again = load_model(tmp_path / "model")
    found = featurise(map(Chem.MolFromSmiles, SMILES), featuriser_of(again.featuriser))
    shares = predict_complexes(again, lift(found.graphs, 8)).values.numpy()
    np.testing.assert_array_equal(made.predict_proba(SMILES), shares)
    assert again.labels == ("even", "odd")
    assert again.seen["elements"] == (6, 7, 8)


@pytest.mark.parametrize(
    ("graphs", "targets", "message"),
    [
        (SMILES, CLASSES[:-1], "40 graphs, but 39"),
        (SMILES, ["one"] * 40, "at least two classes"),
        ([], [], "y must be"),
        ("CCO", ["a", "b"], "put it into a list"),
        (np.zeros((40, 3)), CLASSES, "X must be a sequence of graphs"),
        (["C1CC", "CC"], ["a", "b"], "molecule 0: RDKit cannot read 'C1CC'"),
        (3, CLASSES, "X must be a sequence of graphs, got int"),
    ],
)
def test_bad_input_is_named(graphs: Any, targets: Any, message: str) -> None:
    with pytest.raises((CellAttentionError, ValueError), match=message):
        CANClassifier(**SMALL).fit(graphs, targets)


def test_an_estimator_that_is_not_fitted_or_meets_other_graphs_says_so() -> None:
    with pytest.raises(NotFittedError):
        CANClassifier().predict(SMILES)
    fitted = CANClassifier(**SMALL).fit(SMILES, CLASSES)
    with pytest.raises(CellAttentionError, match="X does not have the features"):
        fitted.predict(forms()["pyg"])
    with pytest.raises(CellAttentionError, match="hidden and heads must have one entry"):
        CANClassifier(hidden=(4,)).fit(SMILES, CLASSES)


def test_an_estimator_takes_the_fields_of_its_design_alone() -> None:
    gates = CANClassifier(**SMALL, weights="gate").fit(SMILES, CLASSES)
    assert isinstance(gates.model_.network, RankNetwork)
    assert gates.model_.config.weights == "gate"
    paper = NetworkConfig.edges(max_polygon=8)
    edges = CANClassifier(paper, **SMALL, lift_heads=4, attention="lower").fit(SMILES, CLASSES)
    assert not isinstance(edges.model_.network, RankNetwork)
    assert (edges.model_.config.lift_heads, edges.model_.config.attention) == (4, "lower")
    with pytest.raises(CellAttentionError, match="design 'ranks' does not use lift_heads"):
        CANClassifier(**SMALL, lift_heads=4).fit(SMILES, CLASSES)
    with pytest.raises(CellAttentionError, match="design 'paper' does not use weights"):
        CANClassifier(paper, **SMALL, weights="gate").fit(SMILES, CLASSES)


def test_small_and_lopsided_sets_are_learned_all_the_same() -> None:
    for count, rare in ((10, 5), (12, 6), (40, 4)):
        classes = [int(n < rare) for n in range(count)]
        for seed in range(3):
            CANClassifier(**{**SMALL, "epochs": 1, "validation": 0.1}, random_state=seed).fit(
                SMILES[:count], classes
            )


def test_zeros_and_ones_are_values_to_a_regressor() -> None:
    found = CANRegressor(**SMALL).fit(SMILES, [float(n % 2) for n in range(40)])
    assert found.model_.task == "values"
    assert np.isfinite(found.predict(SMILES)).all()
    with pytest.raises(CellAttentionError, match="finite in float32"):
        CANRegressor(**SMALL).fit(SMILES, [1e39] * 40)
    huge = CANRegressor(**SMALL).fit(SMILES, [1e30 * value for value in VALUES])
    assert np.isfinite(huge.predict(SMILES)).all()


def test_numbers_of_numpy_are_numbers() -> None:
    words = {**SMALL, "epochs": np.int64(2), "ensemble": np.int64(2), "hidden": [np.int64(4)] * 2}
    assert len(CANRegressor(**words).fit(SMILES, VALUES).model_.members) == 2
    CANRegressor(**SMALL, random_state=np.random.default_rng(0)).fit(SMILES, VALUES)
    with pytest.raises(CellAttentionError, match="random_state must be a whole number"):
        CANRegressor(**SMALL, random_state="x").fit(SMILES, VALUES)  # type: ignore[arg-type]


def test_sample_weights_multiply_the_loss_of_every_graph() -> None:
    complexes, every = load_dataset("MUTAG"), torch.arange(188)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(188, generator=generator)
    kinds: list[tuple[Any, torch.Tensor]] = [
        ("classes", torch.randint(0, 3, (188,), generator=generator)),
        ("labels", torch.randint(0, 2, (188, 2), generator=generator).float()),
        ("values", torch.rand(188, 2, generator=generator)),
    ]
    for kind, targets in kinds:
        if kind != "classes":
            targets[::7, 1] = torch.nan
        graphs = replace(complexes, targets=targets)
        for balanced in (False, True) if kind != "values" else (False,):
            task = task_of(graphs, every, kind=kind, class_weights=balanced)
            outputs = torch.randn(188, task.outputs, generator=generator)
            alike = task.loss(outputs, targets, 0.1)
            same = task.loss(outputs, targets, 0.1, sample_weights=torch.ones(188))
            torch.testing.assert_close(same, alike)
            found = task.loss(outputs, targets, 0.1, sample_weights=weights)
            single = torch.stack([task.loss(outputs[[k]], targets[[k]], 0.1) for k in range(188)])
            share = (~targets.isnan()).reshape(188, -1).sum(1).float()
            if kind == "classes" and task.weights is not None:
                share = task.weights[targets]
            if kind != "labels" or not balanced:
                torch.testing.assert_close(found, (weights * share * single).sum() / share.sum())
            assert not torch.isclose(found, alike, rtol=1e-4)
            one = task.loss(outputs, targets, sample_weights=torch.eye(188)[5])
            outputs[6] += 1.0  # nothing but graph 5 counts
            assert one == task.loss(outputs, targets, sample_weights=torch.eye(188)[5])


def test_graphs_of_weight_zero_teach_nothing() -> None:
    wrong = ["even" if index % 3 else CLASSES[index] for index in range(40)]
    weights = [float(mine == right) for mine, right in zip(wrong, CLASSES, strict=True)]
    sizes = {**SMALL, "epochs": 30, "descriptors": "none"}
    test = SMILES[:10], CLASSES[:10]
    fitted = CANClassifier(**sizes).fit(SMILES, wrong, sample_weight=weights, eval_set=test)
    assert fitted.score(SMILES, CLASSES) > 0.9
    scaled = CANClassifier(**sizes).fit(
        SMILES, wrong, sample_weight=np.array(weights) * 8, eval_set=[test]
    )
    np.testing.assert_array_equal(scaled.predict_proba(SMILES), fitted.predict_proba(SMILES))


@pytest.mark.parametrize("form", ["smiles", "complex"])
def test_an_evaluation_set_takes_the_place_of_a_share_of_the_graphs(form: str) -> None:
    graphs: Any = SMILES if form == "smiles" else lift(SMILES)
    for kind, targets in ((CANClassifier, CLASSES), (CANRegressor, VALUES)):
        fitted = kind(**SMALL).fit(graphs[:30], targets[:30], eval_set=(graphs[30:], targets[30:]))
        known = fitted.model_.provenance
        assert known["splits"] == "eval_set"
        assert known["reached"]["train"]["graphs"] == 30
        assert known["reached"]["validation"]["graphs"] == 10
        if kind is CANRegressor:
            errors = np.sort(np.abs(fitted.predict(graphs[30:]) - np.array(VALUES[30:])))
            assert fitted.model_.margins == pytest.approx((errors[9],), rel=1e-4)


BAD = [*SMILES[:2], "C1CC", *SMILES[2:4], "nonsense"]


def test_graphs_that_cannot_be_read_are_nan_where_the_user_says_so() -> None:
    good = [0, 1, 3, 4]
    for kind, targets in ((CANClassifier, CLASSES), (CANRegressor, VALUES)):
        fitted = kind(**SMALL).fit(SMILES, targets)
        for method in ("predict", "transform", "predict_proba"):
            if kind is CANRegressor and method == "predict_proba":
                continue
            compute = getattr(fitted, method)
            with pytest.raises(CellAttentionError, match="C1CC"):
                compute(BAD)
            found, expected = compute(BAD, on_error="nan"), compute(SMILES[:4])
            assert found.shape == (6, *expected.shape[1:])
            np.testing.assert_array_equal(found[good], expected)
            assert all(np.all(found[row] != found[row]) for row in (2, 5))  # NaN
            nothing = compute(["C1CC"], on_error="nan")
            assert nothing.shape == (1, *expected.shape[1:])
            np.testing.assert_array_equal(compute(SMILES[:4], on_error="nan"), expected)
            with pytest.raises(CellAttentionError, match="on_error must be 'raise' or 'nan'"):
                compute(BAD, on_error="skip")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"sample_weight": [1.0]}, r"sample_weight must be \(40,\), got shape \(1,\)"),
        ({"sample_weight": ["a"] * 40}, "sample_weight must be numbers"),
        ({"sample_weight": [-1.0] * 40}, "must be finite and not negative"),
        ({"sample_weight": [float("nan")] * 40}, "must be finite and not negative"),
        ({"sample_weight": [0.0] * 40}, "must not be zero for all training graphs"),
        ({"eval_set": SMILES}, r"eval_set must be \(X, y\)"),
        ({"eval_set": (SMILES, CLASSES[:3])}, "eval_set is inconsistent: 40 graphs, but 3"),
        ({"eval_set": (SMILES[:1], ["other"])}, "eval_set has the class 'other'"),
        ({"eval_set": (lift(SMILES[:2]), CLASSES[:2])}, "must both be a CellComplex"),
        ({"eval_set": ([], [])}, "eval_set|y must be"),
    ],
)
def test_weights_and_evaluation_sets_that_do_not_fit_are_named(
    words: dict[str, Any], message: str
) -> None:
    with pytest.raises(CellAttentionError, match=message):
        CANClassifier(**SMALL).fit(SMILES, CLASSES, **words)
