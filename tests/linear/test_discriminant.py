"""The linear part of a member's scores: Fisher's discriminant of its own rows."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setconv.data import MERGED
from setconv.fitting import automatic_linear_share
from setconv.linear import LINEAR_PARTS, DiscriminantSums
from setconv.sampling import Split


def make_rows(classes=2, n=150, d=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.choice(classes, n, p=[0.7, *[0.3 / (classes - 1)] * (classes - 1)])
    codes[:classes] = np.arange(classes)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 2 * np.eye(classes, d)[codes]
    return X.astype(np.float32), codes


def fit(X, codes, left_out=None, weights=None, classes=2, size=1000):
    """Fit rows, or several views of them, that come in chunks of a size."""
    views = torch.from_numpy(X if X.ndim == 3 else X[None])
    n_rows = views.shape[1]
    left_out = np.zeros((1, n_rows), bool) if left_out is None else left_out
    weights = np.ones(n_rows) if weights is None else weights
    split = Split.of(codes, left_out, left_out, np.ones(len(left_out), bool))
    sums = DiscriminantSums(codes, weights, split, classes)
    for at in range(0, n_rows, size):
        sums.add(slice(at, at + size), views[:, at : at + size])
    return sums.fit()


def score(found, X, n_members=1):
    return found(X, torch.from_numpy(X if X.ndim == 3 else X[None]), n_members)


def test_the_weights_are_fishers_under_a_covariance_drawn_to_the_identity():
    X, codes = make_rows()
    means = [X[codes == c].mean(axis=0) for c in (0, 1)]
    within = np.cov((X - np.stack(means)[codes]).T, bias=True)
    metric = 0.4 * within + 0.6 * np.trace(within) / len(within) * np.eye(len(within))
    expected = np.linalg.inv(metric) @ (means[1] - means[0])
    assert np.allclose(fit(X, codes).weights[0], expected, rtol=1e-3)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_score_is_zero_half_way_between_the_sides_of_a_head(classes):
    X, codes = make_rows(classes)
    found = fit(X, codes, classes=classes)
    for place, code in enumerate([1] if classes == 2 else range(classes)):
        inside, outside = X[codes == code].mean(axis=0), X[codes != code].mean(axis=0)
        middle, ahead = score(found, np.stack([(inside + outside) / 2, inside]))[:, place]
        assert abs(middle) < 1e-4
        assert ahead > 0


def test_a_member_does_not_learn_from_the_rows_that_it_leaves_out():
    X, codes = make_rows()
    left_out = np.zeros((2, len(X)), bool)
    left_out[1, ::3] = True
    both = fit(X, codes, left_out)
    alone = fit(X[~left_out[1]], codes[~left_out[1]])
    np.testing.assert_allclose(both.weights[1], alone.weights[0], rtol=1e-4, atol=1e-5)
    assert not np.allclose(both.weights[0], both.weights[1], rtol=1e-3)


@given(st.integers(0, 10**6))
def test_a_weight_of_two_is_the_row_twice_and_the_order_of_rows_is_nothing(seed):
    X, codes = make_rows(n=40, seed=seed)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 3, len(X))
    repeated = rng.permutation(np.repeat(np.arange(len(X)), weights))
    weighed = fit(X, codes, weights=weights.astype(float))
    twice = fit(X[repeated], codes[repeated])
    np.testing.assert_allclose(weighed.weights, twice.weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [1, 64])
@pytest.mark.parametrize("merged", [64, MERGED])
@pytest.mark.parametrize("classes", [2, 3])
def test_rows_that_come_in_chunks_give_the_same(size, merged, classes, rng, monkeypatch):
    monkeypatch.setattr("setconv.data.MERGED", merged)
    X, codes = make_rows(classes)
    views = np.stack([X, X**2])
    known = codes, rng.random((3, len(X))) < 0.3, rng.random(len(X)) + 0.5, classes
    whole, parts = fit(views, *known), fit(views, *known, size)
    np.testing.assert_allclose(parts.weights, whole.weights, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(parts.intercepts, whole.intercepts, rtol=1e-4, atol=1e-4)


def test_it_is_scaled_by_head_and_survives_as_arrays():
    X, codes = make_rows(3)
    found = fit(X, codes, classes=3)
    scaled = found.scaled(np.array([2.0, 0.0, 1.0]))
    np.testing.assert_allclose(score(scaled, X), score(found, X) * [2, 0, 1], rtol=1e-5)
    restored = LINEAR_PARTS[found.kind].restore(found.arrays())
    assert np.array_equal(score(restored, X), score(found, X))
    assert restored.fits(3, 99, 6)
    assert not restored.fits(3, 6, 7)
    assert not restored.fits(4, 6, 6)


def test_the_automatic_share_falls_with_the_rows_and_is_nothing_for_tables():
    shares = [automatic_linear_share(rows, 384) for rows in (100, 5000, 10_000, 50_000)]
    assert shares == [0.25, 0.25, 0.125, 0.025]
    assert automatic_linear_share(10_000, 384, n_groups=4) == 0.5
    assert automatic_linear_share(10_000, 384, n_groups=5000) == 0.125
    assert automatic_linear_share(100, 100) == automatic_linear_share(100, 5000) == 0
