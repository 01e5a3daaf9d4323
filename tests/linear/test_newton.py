"""Logistic regressions on sparse rows, compared with scikit-learn's."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from setconv import linear
from setconv.linear import minimise_logistic


@pytest.fixture
def exact(monkeypatch):
    """Go on to the minimum, as far as float32 tells it."""
    monkeypatch.setattr(linear, "_STEPS", 60)
    monkeypatch.setattr(linear, "_INNER", 100)
    monkeypatch.setattr(linear, "_ACCURACY", 1e-5)


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


def loss(rows, scale, signs, mass, penalty, weights, intercept):
    margin = signs * (rows.toarray().astype(float) @ weights + intercept)
    return mass @ np.logaddexp(0, -margin) + penalty * np.sum((weights / scale) ** 2) / 2


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("penalty", [1e-3, 1e-2, 0.3])
@pytest.mark.parametrize("size", [0.05, 1.0, 20.0])
def test_the_minimum_is_scikit_learns(size, penalty):
    rows, scale, signs, mass = make_problem(size=size)
    # A penalty means the same to rows of any size.
    penalty *= size**2
    weights, intercepts = minimise_logistic(rows, scale, signs, mass, np.array([penalty]))
    expected, intercept = peer(rows, scale[:, 0], signs[:, 0], mass[:, 0], penalty)
    np.testing.assert_allclose(weights[:, 0] * size, expected * size, rtol=0, atol=2e-3)
    assert intercepts[0] == pytest.approx(intercept, abs=2e-3)


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_few_steps_come_close_to_the_minimum(share):
    rows, scale, signs, mass = make_problem(n=400, d=300, seed=2)
    mass = np.where(signs == 1, share, 1 - share).astype(np.float32) * mass
    mass /= mass.sum()
    given = rows, scale[:, 0], signs[:, 0], mass[:, 0], 0.01
    weights, intercepts = minimise_logistic(rows, scale, signs, mass, np.array([0.01]))
    least = loss(*given, *peer(*given))
    found = loss(*given, weights[:, 0], intercepts[0])
    nothing = loss(*given, np.zeros(300), 0.0)
    assert least <= found + 1e-6
    assert found - least < 0.01 * (nothing - least)


@pytest.mark.usefixtures("exact")
def test_several_at_once_are_each_by_itself():
    rows, scale, signs, mass = make_problem(columns=4, seed=1)
    penalties = np.array([0.003, 0.01, 0.1, 1.0])
    weights, intercepts = minimise_logistic(rows, scale, signs, mass, penalties)
    for place in range(4):
        own = (one[:, [place]] for one in (scale, signs, mass))
        alone, intercept = minimise_logistic(rows, *own, penalties[[place]])
        np.testing.assert_allclose(weights[:, [place]], alone, rtol=0, atol=1e-3)
        np.testing.assert_allclose(intercepts[[place]], intercept, rtol=0, atol=1e-3)


@pytest.mark.usefixtures("exact")
def test_rows_of_no_mass_do_not_count():
    rows, scale, signs, mass = make_problem()
    mass[::3] = 0
    weights, intercepts = minimise_logistic(rows, scale, signs, mass, np.array([0.01]))
    kept = np.arange(len(mass)) % 3 > 0
    fewer, intercept = minimise_logistic(
        rows[np.flatnonzero(kept)], scale, signs[kept], mass[kept], np.array([0.01])
    )
    np.testing.assert_allclose(weights, fewer, rtol=0, atol=1e-3)
    np.testing.assert_allclose(intercepts, intercept, rtol=0, atol=1e-3)


def test_a_column_that_weighs_nothing_gets_no_weight():
    rows, scale, signs, mass = make_problem()
    scale[7] = 0
    weights, _ = minimise_logistic(rows, scale, signs, mass, np.array([0.01]))
    assert weights[7] == 0
    assert weights.any()


def test_rows_of_zeros_have_only_an_intercept():
    rows = sparse.csr_matrix((10, 3), dtype=np.float32)
    signs = np.where(np.arange(10) < 2, 1, -1).astype(np.float32)[:, None]
    mass = np.full((10, 1), 0.1, dtype=np.float32)
    weights, intercepts = minimise_logistic(rows, np.ones((3, 1), "f4"), signs, mass, np.ones(1))
    assert not weights.any()
    assert intercepts[0] == pytest.approx(np.log(0.2 / 0.8), rel=0.02)


def test_sides_that_a_line_parts_give_finite_weights():
    rows = sparse.csr_matrix(np.repeat(np.eye(2), 20, axis=0), dtype=np.float32)
    signs = np.repeat([1, -1], 20).astype(np.float32)[:, None]
    mass = np.full((40, 1), 1 / 40, dtype=np.float32)
    weights, _ = minimise_logistic(rows, np.ones((2, 1), "f4"), signs, mass, np.array([1e-6]))
    assert np.isfinite(weights).all()
    assert weights[0] > 1 > -1 > weights[1]
