"""Wrong parameters, small classes, constant columns, copies and imbalance, for every baseline."""

import numpy as np
import pytest
from easy_rows import rows, short

from setconv import baselines
from setconv.errors import LabelError, ParameterError

WRONG = {
    "SMOTE": {"k_neighbors": [0, 2.5, "5"], "sampling_strategy": ["most"]},
    "KMeans-SMOTE": {
        "n_clusters": [0],
        "k_neighbors": [0],
        "imbalance_ratio_threshold": [0, "none", np.nan],
        "density_exponent": [-1, np.inf, "auto"],
    },
    "MWMOTE": {
        "k1": [0],
        "k2": [1.5],
        "k3": ["third", 0],
        "cp": [0],
        "cf_threshold": [np.inf],
        "normalise": ["median"],
        "max_clustered": [1],
    },
    "IHT": {"cv": [1, 2.5], "mode": ["half"], "threshold": [1.5, "high"]},
    "EUS": {"population": [1], "max_evaluations": [0], "penalty": [-1, np.nan]},
    "CLEMS": {
        "cost": ["cheap", np.ones((3, 3)), [[0, -1], [1, 0]], np.zeros((2, 2))],
        "tau": [0],
        "n_init": [0],
    },
    "IML": {"n_per_class": [0], "match_threshold": [80], "max_iter": [0], "n_components": [0]},
    "WEOB2": {
        "n_estimators": [0],
        "hidden": [1.5],
        "theta": [1.0],
        "theta_recall": [-0.1],
        "recall_window": [0],
        "lr": [0],
    },
    "CS-MLP": {
        "hidden": [0],
        "lam": [0, 1.0, "half", None],
        "mu": [0],
        "beta": [1],
        "max_iter": [0],
        "tol": [-1],
        "n_components": [0],
        "validation_fraction": [1.0],
        "patience": [0],
    },
    "CS-DMLP": {
        "hidden_layer_sizes": [3, (0,)],
        "dropout": [1.0],
        "alpha": [-1],
        "lr": [0],
        "batch_size": [0],
        "max_epochs": [1.5],
        "validation_fraction": [0],
        "cost": ["equal"],
    },
}


@pytest.mark.parametrize("one", baselines.all(), ids=lambda one: one.name)
def test_a_wrong_parameter_is_named_at_the_fit(one):
    X, y = rows(2)
    for name, values in WRONG[one.name].items():
        for value in values:
            estimator = one.estimator(**{name: value})
            with pytest.raises(ParameterError) as refused:
                getattr(estimator, "fit_resample", getattr(estimator, "fit", None))(X, y)
            assert refused.value.parameter == name


@pytest.mark.parametrize("one", baselines.all(), ids=lambda one: one.name)
def test_rows_that_are_no_numbers_and_labels_that_are_no_classes_are_refused(one):
    X, y = rows(2)
    with pytest.raises(ValueError, match="class"):
        short(one).fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="continuous"):
        short(one).fit(X, X[:, 0])
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        short(one).fit(X, y)


@pytest.mark.filterwarnings("ignore::setconv.baselines.FallbackWarning")
@pytest.mark.parametrize("minority", [1, 2, 3])
@pytest.mark.parametrize("one", baselines.all(), ids=lambda one: one.name)
def test_a_class_of_few_rows_works_or_is_named_with_its_rows(one, minority):
    X, y = rows(2)
    X, y = X[: 100 + minority], y[: 100 + minority]
    model, labels = short(one), np.array(["often", "rare"])[y]
    if one.name == "EUS" and minority == 1:
        with pytest.raises(LabelError, match="'rare' has 1 row"):
            model.fit(X, labels)
    else:
        assert np.isfinite(model.fit(X, labels).predict_proba(X)).all()


@pytest.mark.filterwarnings("ignore::setconv.baselines.FallbackWarning")
@pytest.mark.parametrize("one", baselines.all(), ids=lambda one: one.name)
def test_constant_columns_and_copies_of_rows_give_finite_scores(one):
    X, y = rows(2)
    X[:, 1] = 3.0
    X, y = np.repeat(X[::4], 4, axis=0), np.repeat(y[::4], 4)
    assert np.isfinite(short(one).fit(X, y).predict_proba(X)).all()


@pytest.mark.filterwarnings("ignore::setconv.baselines.FallbackWarning")
@pytest.mark.parametrize("one", baselines.all(), ids=lambda one: one.name)
def test_an_imbalance_of_500_works(one):
    rng = np.random.default_rng(0)
    y = (np.arange(1503) % 501 == 0).astype(int)
    X = rng.standard_normal((1503, 3)) + 3 * y[:, None]
    scores = short(one).fit(X, y).predict_proba(X)[:, 1]
    assert np.isfinite(scores).all()
