"""Small classes, constant columns, copies and extreme imbalance, for every baseline."""

import numpy as np
import pytest
from easy_rows import rows, short

from setconv import baselines


@pytest.mark.filterwarnings("ignore::setconv.baselines.FallbackWarning")
@pytest.mark.parametrize("minority", [1, 2, 3])
@pytest.mark.parametrize("one", baselines.all(), ids=lambda one: one.name)
def test_a_class_of_few_rows_works_or_is_named_with_its_rows(one, minority):
    X, y = rows(2)
    X, y = X[: 100 + minority], y[: 100 + minority]
    model, refused = short(one), None
    try:
        model.fit(X, np.array(["often", "rare"])[y])
    except ValueError as error:
        refused = str(error)
    if refused is None:
        assert np.isfinite(model.predict_proba(X)).all()
    else:
        assert "'rare'" in refused
        assert f"{minority} row" in refused


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
