"""The line over all sparse columns: one a head and member, each from its own rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from setconv import linear
from setconv.linear import LINEAR_PARTS, Supports, count_supports, fit_lines, minimise_logistic


@pytest.fixture
def exact(monkeypatch):
    """Go on to the minimum, where members cannot depend on when others are done."""
    monkeypatch.setattr(linear, "_STEPS", 60)
    monkeypatch.setattr(linear, "_INNER", 100)
    monkeypatch.setattr(linear, "_ACCURACY", 1e-5)


def make_rows(n=160, d=50, classes=2, seed=0):
    """Counts; each class has words of its own."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(classes, n, p=[0.7, *[0.3 / (classes - 1)] * (classes - 1)])
    codes[: 4 * classes] = np.arange(4 * classes) % classes
    often = 0.1 + 0.6 * (np.arange(d) % classes == codes[:, None])
    return sparse.csr_matrix(rng.poisson(often), dtype=np.float32), codes


def fit(rows, codes, left_out=None, weights=None, classes=2):
    n = rows.shape[0]
    left_out = np.zeros((1, n), bool) if left_out is None else left_out
    return fit_lines(rows, codes, np.ones(n) if weights is None else weights, left_out, classes)


def score(found, rows):
    return found(rows, None, 1)


def assert_same(found, expected):
    np.testing.assert_allclose(found.weights, expected.weights, rtol=0, atol=2e-3)
    np.testing.assert_allclose(found.intercepts, expected.intercepts, rtol=0, atol=2e-3)


@pytest.mark.usefixtures("exact")
def test_a_line_is_logistic_regression_in_which_both_sides_and_all_rows_weigh_one():
    rows, codes = make_rows()
    scale = count_supports(rows, codes, np.ones(160), 2).column_weights()[:, 0]
    scaled = rows.toarray() * scale
    mass = 0.5 / np.bincount(codes)[codes]
    scaled /= np.sqrt(mass @ np.square(scaled).sum(axis=1))
    peer = LogisticRegression(C=160, tol=1e-8, max_iter=10_000)
    expected = peer.fit(scaled, codes, sample_weight=mass).decision_function(scaled)
    found = score(fit(rows, codes), rows)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("classes", [2, 3])
def test_a_member_does_not_learn_from_the_rows_that_it_leaves_out(classes):
    rows, codes = make_rows(classes=classes)
    left_out = np.zeros((2, 160), bool)
    left_out[1, ::3] = True
    heads = 1 if classes == 2 else classes
    kept = np.flatnonzero(~left_out[1])
    alone = fit(rows[kept], codes[kept], classes=classes)
    spoilt = rows.toarray()
    spoilt[left_out[1]] = 9 - spoilt[left_out[1]]
    for given_rows in (rows, sparse.csr_matrix(spoilt)):
        both = fit(given_rows, codes, left_out, classes=classes)
        assert both.weights.shape == (50, 2 * heads)
        np.testing.assert_allclose(both.weights[:, heads:], alone.weights, rtol=0, atol=2e-3)
        np.testing.assert_allclose(both.intercepts[heads:], alone.intercepts, rtol=0, atol=2e-3)
        assert not np.allclose(both.weights[:, :heads], both.weights[:, heads:], atol=0.02)


@pytest.mark.usefixtures("exact")
def test_order_and_unit_of_rows_are_nothing_and_rows_of_no_weight_are_not_there(rng):
    rows, codes = make_rows()
    weights = np.where(np.arange(160) % 4 > 0, rng.random(160) + 0.5, 0)
    one = fit(rows, codes, weights=weights)
    kept = rng.permutation(np.flatnonzero(weights))
    assert_same(fit(rows[kept], codes[kept], weights=weights[kept]), one)
    large = fit(1000 * rows, codes, weights=weights)
    np.testing.assert_allclose(score(large, 1000 * rows), score(one, rows), rtol=0, atol=0.02)


def test_scores_are_of_a_row_alone_can_be_scaled_and_survive_as_arrays():
    rows, codes = make_rows(classes=3)
    found = fit(rows, codes, classes=3)
    whole = score(found, rows)
    assert np.array_equal(score(found, rows[40:47]), whole[40:47])
    assert np.array_equal(score(found, rows.toarray()), whole)
    np.testing.assert_allclose(
        score(found.scaled(np.array([2.0, 0.0, 1.0])), rows), whole * [2, 0, 1]
    )
    np.testing.assert_allclose(whole, rows.toarray() @ found.weights + found.intercepts, atol=1e-4)
    restored = LINEAR_PARTS[found.kind].restore(found.arrays())
    assert np.array_equal(score(restored, rows), whole)
    assert restored.fits(3, 50, 99)
    assert not restored.fits(3, 51, 50)


# ------------------------------------------------------------------------------- Newton's method


def make_problem(n=150, d=60, columns=1, size=1.0, seed=0):
    """Counts of ``d`` words, and for each column of the problem sides, masses and scales."""
    rng = np.random.default_rng(seed)
    rows = sparse.csr_matrix(size * rng.poisson(0.2, (n, d)), dtype=np.float32)
    truth = rng.standard_normal((d, columns)) / size
    signs = np.where(rows @ truth + 0.7 * rng.standard_normal((n, columns)) > 0.3, 1, -1)
    mass = rng.random((n, columns)) + 0.1
    mass /= mass.sum(axis=0)
    scale = rng.random((d, columns)) + 0.5
    return rows, *(one.astype(np.float32) for one in (scale, signs, mass))


def peer(rows, scale, signs, mass, penalty):
    """scikit-learn's minimum of the same loss: weights and intercept."""
    fitted = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=10_000)
    fitted.fit(rows.toarray().astype(float) * scale, signs, sample_weight=mass)
    return fitted.coef_[0] * scale, fitted.intercept_[0]


# ------------------------------------------------------ supports: how often a column occurs


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_few_steps_come_close_to_the_minimum(share):
    rows, scale, signs, mass = make_problem(n=400, d=300, seed=2)
    mass = np.where(signs == 1, share, 1 - share).astype(np.float32) * mass
    mass /= mass.sum()

    def loss(weights, intercept):
        margin = signs[:, 0] * (rows.toarray().astype(float) @ weights + intercept)
        penalty = 0.01 * np.sum((weights / scale[:, 0]) ** 2) / 2
        return mass[:, 0] @ np.logaddexp(0, -margin) + penalty

    weights, intercepts = minimise_logistic(rows, scale, signs, mass, np.array([0.01]))
    least = loss(*peer(rows, scale[:, 0], signs[:, 0], mass[:, 0], 0.01))
    found, nothing = loss(weights[:, 0], intercepts[0]), loss(np.zeros(300), 0.0)
    assert least <= found + 1e-6
    assert found - least < 0.01 * (nothing - least)


def make_counts(n=30, d=9, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = sparse.csr_matrix(rng.poisson(0.4, (n, d)) * rng.standard_normal((n, d)))
    return rows, rng.integers(0, classes, n), rng.random(n)


@given(st.integers(0, 10**6))
def test_supports_are_counts_by_hand(seed):
    rows, codes, weights = make_counts(seed=seed)
    rows.data[::2] = 0  # a zero that is stored does not occur
    found = count_supports(rows, codes, weights, 3)
    of_class = (codes[:, None] == np.arange(3)) * weights[:, None]
    np.testing.assert_allclose(found.occurring, (rows.toarray() != 0).T.astype(float) @ of_class)
    np.testing.assert_allclose(found.mass, of_class.sum(axis=0))


def test_the_weight_is_the_root_of_the_log_ratio_of_smoothed_frequencies():
    supports = Supports(np.array([[6.0, 3.0], [15.0, 5.0]]), np.array([30.0, 10.0]))
    inside, outside = (3 + 2 / 4) / (10 + 2 / 4), (6 + 2 * 3 / 4) / (30 + 2 * 3 / 4)
    expected = np.sqrt(abs(np.log(inside / outside)))
    (found,), (even,) = supports.column_weights()
    assert found == pytest.approx(expected, rel=1e-6)
    assert 0 <= even < found
    # Columns of which none tells anything weigh the same.
    nothing = Supports(np.array([[30.0, 10.0]] * 4), np.array([30.0, 10.0])).column_weights()
    np.testing.assert_array_equal(nothing, np.ones((4, 1)))
