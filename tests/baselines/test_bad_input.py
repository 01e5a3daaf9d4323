"""Wrong parameters, small classes, constant columns, copies and imbalance, for every baseline."""

import numpy as np
import pytest
from easy_rows import rows, short

from setconv import baselines
from setconv.errors import LabelError, ParameterError

# Parameters that are checked by the scikit-learn estimator that gets them.
ELSEWHERE = {"random_state", "estimator", "regressor"}
# A value of the right type that cannot work, beside one of no type that can.
WRONG = {
    "SMOTE": {"k_neighbors": 0},
    "KMeans-SMOTE": {"imbalance_ratio_threshold": np.nan, "density_exponent": np.inf},
    "MWMOTE": {"k3": "third", "cf_threshold": np.inf},
    "IHT": {"cv": 2.5, "threshold": 1.5},
    "EUS": {"penalty": np.nan, "population": 1, "sampling_strategy": {0: 0}},
    "CLEMS": {"cost": [[0, -1], [1, 0]]},
    "IML": {"match_threshold": 80},
    "WEOB2": {"theta": 1.0, "theta_recall": -0.1},
    "CS-MLP": {"lam": 1.0, "beta": 1, "validation_fraction": 1.0},
    "CS-DMLP": {"hidden_layer_sizes": (0,), "dropout": 1.0, "cost": "equal"},
}


@pytest.mark.parametrize("one", baselines.all(), ids=lambda one: one.name)
def test_every_parameter_is_checked_and_named_at_the_fit(one):
    X, y = rows(2)
    names = set(one.estimator().get_params()) - ELSEWHERE
    for name, value in [*((name, object()) for name in names), *WRONG[one.name].items()]:
        estimator = one.estimator(**{name: value})
        with pytest.raises(ParameterError) as refused:
            getattr(estimator, "fit_resample", getattr(estimator, "fit", None))(X, y)
        assert refused.value.parameter == name


@pytest.mark.parametrize("cost", [np.ones((3, 3)), np.zeros((2, 2))])
def test_costs_of_another_shape_or_of_nothing_are_refused(cost):
    with pytest.raises(ParameterError) as refused:
        baselines.CLEMSClassifier(cost=cost).fit(*rows(2))
    assert refused.value.parameter == "cost"


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
        with pytest.raises(LabelError):
            model.fit(X, labels)
    else:
        assert np.isfinite(model.fit(X, labels).predict_proba(X)).all()


def constant_columns_and_copies():
    X, y = rows(2)
    X[:, 1] = 3.0
    return np.repeat(X[::4], 4, axis=0), np.repeat(y[::4], 4)


def an_imbalance_of_500():
    y = (np.arange(1503) % 501 == 0).astype(int)
    return np.random.default_rng(0).standard_normal((1503, 3)) + 3 * y[:, None], y


@pytest.mark.filterwarnings("ignore::setconv.baselines.FallbackWarning")
@pytest.mark.parametrize("data", [constant_columns_and_copies, an_imbalance_of_500])
@pytest.mark.parametrize("one", baselines.all(), ids=lambda one: one.name)
def test_hard_data_give_finite_scores(one, data):
    X, y = data()
    assert np.isfinite(short(one).fit(X, y).predict_proba(X)).all()
